"""Binary records: entries that later articles are compared with, and what became of each article id.

Knows their layout; knows nothing of when they are written.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.article import Origin, Relation
from stream_dedup.compiled import kernel
from stream_dedup.fingerprint.sketch import LANDMARK_BITS, VALUE_BITS, LandmarkRule
from stream_dedup.hashing import I64, U32, U64

UNKNOWN_TIME = -(1 << 62)
NOT_INDEXED = -1
# Flags of an entry: which keys it has (none in reserve), whether it is a drifted copy, whether its cluster takes no
# further ones into the index, and whether it is bare of content: then it has no keys at all.
COMPARABLE, WEIGHED, RESERVE, VARIANT, SEALED, BARE = 1, 2, 4, 8, 16, 32
_RELATIONS: tuple[Relation | None, ...] = (None, *Relation)
_ARTICLE = struct.Struct("<qqqQIQiqqBBB")
_LENGTH = struct.Struct("<H")
_SKETCH_BYTES = VALUE_BITS // 8  # of each value
_LANDMARK_BYTES = LANDMARK_BITS // 8 - _SKETCH_BYTES  # that the sketch does not hold already

Entries = NDArray[np.void]  # of `EntryFormat.layout`


@kernel
def outlived(moment: int, floor: int) -> bool:
    """Tell whether what is of a moment is forgotten by now; what is of no known moment goes with its generation only.

    Args:
        moment: milliseconds since 1970 in UTC, or `UNKNOWN_TIME`.
        floor: what is older is forgotten.
    """
    return moment < floor and moment != UNKNOWN_TIME


class Rows(NamedTuple):
    """What n texts are compared by, one row each.

    Attributes:
        fingerprints: SimHash, shape (n,).
        contents: content hash, shape (n,).
        times: window time, milliseconds since 1970 in UTC, shape (n,).
        sketches: bottom-k sketch, shape (n, k).
        lengths: used values of each sketch, shape (n,).
        sizes: distinct n-grams, shape (n,).
        numbers: number sketch, shape (n, j).
        number_lengths: used values of each number sketch, shape (n,).
        number_sizes: distinct numbers, shape (n,).
        places: sketch of the places that it names, shape (n, p).
        place_lengths: used values of each of these, shape (n,).
        place_sizes: distinct places, shape (n,).
        flags: `COMPARABLE` and so on, uint8, shape (n,).
        scopes: number of the scope, 0 for none, shape (n,).
    """

    fingerprints: U64
    contents: U64
    times: I64
    sketches: U32
    lengths: I64
    sizes: I64
    numbers: U32
    number_lengths: I64
    number_sizes: I64
    places: U32
    place_lengths: I64
    place_sizes: I64
    flags: NDArray[np.uint8]
    scopes: U64

    def followed_by(self, other: "Rows") -> "Rows":
        """Return the rows of both, these first."""
        pairs: Iterator[tuple[NDArray[Any], NDArray[Any]]] = zip(self, other, strict=True)
        return Rows(*(np.concatenate(pair) for pair in pairs))


class EntryFormat:
    """The layout of entries: a fixed part, then the article's name.

    The first values of the sketch are the upper bits of the landmarks, so only the other bits stand beside them.

    Args:
        sketch: values of a sketch.
        numbers: values of a number sketch.
        places: values of a sketch of places.
        rule: how many landmarks a text has.
    """

    def __init__(self, sketch: int, numbers: int, places: int, rule: LandmarkRule) -> None:
        self._rule = rule
        self.layout = np.dtype(
            [
                ("fingerprint", "<u8"),
                ("content", "<u8"),
                ("window_ms", "<i8"),
                ("cluster", "<u8"),
                ("scope", "<u8"),
                ("epoch", "<u4"),
                ("size", "<u4"),
                ("length", "<u2"),
                ("number_length", "<u2"),
                ("number_size", "<u4"),
                ("flags", "<u1"),
                ("place_length", "<u2"),
                ("place_size", "<u4"),
                ("numbers", "<u4", (numbers,)),
                ("places", "<u4", (places,)),
                ("sketch", "u1", (_SKETCH_BYTES * sketch,)),
                ("landmarks", "u1", (_LANDMARK_BYTES * rule.most,)),
            ]
        )

    def entries(self, rows: Rows, places: I64, landmarks: U64, epoch: int) -> Entries:
        """Return some rows as the fixed parts of entries, without clusters.

        Args:
            rows: all rows.
            places: which of them, shape (m,).
            landmarks: of each of the m, shape (m, rule.most).
            epoch: number of the IDF epoch of their fingerprints.
        """
        fixed = np.zeros(len(places), self.layout)
        fixed["fingerprint"], fixed["content"] = rows.fingerprints[places], rows.contents[places]
        fixed["window_ms"], fixed["epoch"] = rows.times[places], epoch
        fixed["size"], fixed["length"] = rows.sizes[places], rows.lengths[places]
        fixed["number_length"], fixed["number_size"] = rows.number_lengths[places], rows.number_sizes[places]
        fixed["place_length"], fixed["place_size"] = rows.place_lengths[places], rows.place_sizes[places]
        fixed["flags"], fixed["places"] = rows.flags[places], rows.places[places]
        fixed["scope"] = rows.scopes[places]
        fixed["numbers"], fixed["sketch"] = rows.numbers[places], _low_bytes(rows.sketches[places], _SKETCH_BYTES)
        fixed["landmarks"] = _low_bytes(landmarks, _LANDMARK_BYTES)
        return fixed

    def landmark_keys(self, entries: Entries) -> U64:
        """Return the landmarks of entries, 0 where a text has fewer, shape (m, rule.most)."""
        upper = _whole(entries["sketch"][:, : _SKETCH_BYTES * self._rule.most], _SKETCH_BYTES, np.dtype("<u8"))
        lower = _whole(entries["landmarks"], _LANDMARK_BYTES, np.dtype("<u8"))
        counts = self._rule.counts(entries["size"].astype(np.int64))
        there = np.arange(self._rule.most) < counts[:, np.newaxis]
        return np.where(there, upper << np.uint64(8 * _LANDMARK_BYTES) | lower, np.uint64(0))

    def pack(self, entries: Entries, names: Sequence[bytes]) -> list[bytes]:
        """Return whole entries: the fixed parts, each with the name of its article, as UTF-8."""
        packed, size = entries.tobytes(), self.layout.itemsize
        return [packed[i * size : (i + 1) * size] + name for i, name in enumerate(names)]

    def joined(self, parts: Sequence[Entries]) -> Entries:
        """Return fixed parts one behind the other: numpy's own way compares the layouts of all of them first."""
        return np.frombuffer(bytearray().join([part.tobytes() for part in parts]), self.layout)

    def fixed(self, entries: Sequence[bytes]) -> Entries:
        """Return the fixed parts of whole entries."""
        size = self.layout.itemsize
        return np.frombuffer(b"".join([entry[:size] for entry in entries]), self.layout)

    def name(self, entry: bytes) -> bytes:
        """Return the name of the article that an entry is of, as UTF-8."""
        return entry[self.layout.itemsize :]


def _low_bytes(values: NDArray[np.unsignedinteger[Any]], width: int) -> NDArray[np.uint8]:
    """Return the lower bytes of numbers one behind the other: of shape (n, k) become (n, k x width)."""
    size = values.dtype.itemsize
    parts = np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, size)
    return parts[:, :, :width].reshape(len(values), values.shape[1] * width)


def _whole(parts: NDArray[np.uint8], width: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return numbers of which the lower bytes stand one behind the other: of shape (n, k x width) become (n, k)."""
    count = parts.shape[1] // width
    whole = np.zeros((len(parts), count, kind.itemsize), np.uint8)
    whole[:, :, :width] = parts.reshape(len(parts), count, width)
    return whole.view(kind)[:, :, 0]


def rows_of_entries(entries: Entries) -> Rows:
    """Return the rows of entries."""
    return Rows(
        entries["fingerprint"].copy(),
        entries["content"].copy(),
        entries["window_ms"].copy(),
        _whole(entries["sketch"], _SKETCH_BYTES, np.dtype("<u4")),
        entries["length"].astype(np.int64),
        entries["size"].astype(np.int64),
        entries["numbers"].copy(),
        entries["number_length"].astype(np.int64),
        entries["number_size"].astype(np.int64),
        entries["places"].copy(),
        entries["place_length"].astype(np.int64),
        entries["place_size"].astype(np.int64),
        entries["flags"].copy(),
        entries["scope"].copy(),
    )


@dataclass(frozen=True, slots=True)
class ArticleRecord:
    """What became of an article id.

    Attributes:
        contents: content hashes of the texts seen under the id, the newest first, at most 255.
        entries: numbers of the entries that are kept of them, the newest first, at most 255.
        decided_ms: the stream's time at the decision on the newest, or when a copy last joined the cluster that is
            called by it.
        first_ms: when the message of the first text came, or else when that was published, milliseconds since 1970 in
            UTC; None where unknown.
        published_ms: event time, None where unknown.
        characters: of the body.
        relation: of its link, None if it has none.
        cluster: number of its cluster.
        url: hash of its URL, 0 if it has none.
        source: who published it.
        origin: the message that carried it.
    """

    contents: tuple[int, ...]
    entries: tuple[int, ...]
    decided_ms: int
    first_ms: int | None
    published_ms: int | None
    characters: int
    relation: Relation | None
    cluster: int
    url: int
    source: str
    origin: Origin | None

    @property
    def seen_ms(self) -> int | None:
        """When its message came, or else when it was published; milliseconds since 1970 in UTC."""
        return seen_ms(self.origin, self.published_ms)

    def pack(self) -> bytes:
        """Return the record as bytes."""
        origin = self.origin or Origin("", -1, -1)
        fixed = _ARTICLE.pack(
            self.decided_ms,
            _packed_time(self.first_ms),
            _packed_time(self.published_ms),
            self.cluster,
            self.characters,
            self.url,
            origin.partition,
            origin.offset,
            _packed_time(origin.timestamp_ms),
            _RELATIONS.index(self.relation),
            len(self.contents),
            len(self.entries),
        )
        hashes = struct.pack(f"<{len(self.contents) + len(self.entries)}Q", *self.contents, *self.entries)
        return fixed + hashes + _packed_text(self.source) + _packed_text(origin.topic)

    @classmethod
    def unpack(cls, record: bytes) -> "ArticleRecord":
        """Return the record that bytes hold."""
        decided, first, published, cluster, characters, url, partition, offset, timestamp, *kinds = (
            _ARTICLE.unpack_from(record)
        )
        relation, contents, entries = kinds
        hashes = struct.unpack_from(f"<{contents + entries}Q", record, _ARTICLE.size)
        source, rest = _unpacked_text(record, _ARTICLE.size + 8 * len(hashes))
        topic, _ = _unpacked_text(record, rest)
        return cls(
            hashes[:contents],
            hashes[contents:],
            decided,
            _known(first),
            _known(published),
            characters,
            _RELATIONS[relation],
            cluster,
            url,
            source,
            Origin(topic, partition, offset, _known(timestamp)) if topic else None,
        )


def seen_ms(origin: Origin | None, published_ms: int | None) -> int | None:
    """Return when a message came, or else when its article was published."""
    return origin.timestamp_ms if origin is not None and origin.timestamp_ms is not None else published_ms


def _packed_time(milliseconds: int | None) -> int:
    return UNKNOWN_TIME if milliseconds is None else milliseconds


def _known(milliseconds: int) -> int | None:
    return None if milliseconds == UNKNOWN_TIME else milliseconds


def _packed_text(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH.pack(len(encoded)) + encoded


def _unpacked_text(record: bytes, start: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(record, start)
    stop = start + _LENGTH.size + length
    return record[start + _LENGTH.size : stop].decode(), stop


_GENERATION_KEY = np.dtype([("generation", ">u4"), ("key", ">u8")])
_GENERATION = struct.Struct(">I")


def key_of(number: int) -> bytes:
    """Return a number as a key: ascending numbers are ascending keys."""
    return number.to_bytes(8, "big")


def keys_of(numbers: U64) -> list[bytes]:
    """Return numbers as keys."""
    packed = numbers.astype(">u8").tobytes()
    return [packed[i : i + 8] for i in range(0, len(packed), 8)]


def generation_prefix(generation: int) -> bytes:
    """Return what the keys of a generation begin with."""
    return _GENERATION.pack(generation)


def generation_keys(numbers: U64, generation: int) -> list[bytes]:
    """Return numbers as keys of a generation."""
    keys = np.empty(len(numbers), _GENERATION_KEY)
    keys["generation"], keys["key"] = generation, numbers
    packed = keys.tobytes()
    return [packed[i : i + 12] for i in range(0, len(packed), 12)]
