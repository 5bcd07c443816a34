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
from stream_dedup.hashing import I64, U32, U64

UNKNOWN_TIME = -(1 << 63)
NOT_INDEXED = -1
_RELATIONS: tuple[Relation | None, ...] = (None, *Relation)
_ARTICLE = struct.Struct("<qqBiqB")
_LENGTH = struct.Struct("<H")


class Rows(NamedTuple):
    """What n texts are compared by, one row each.

    Attributes:
        fingerprints: SimHash, shape (n,).
        contents: content hash, shape (n,).
        sketches: bottom-k sketch, shape (n, k).
        lengths: used values of each sketch, shape (n,).
        sizes: distinct n-grams, shape (n,).
        numbers: number sketch, shape (n, j).
        number_lengths: used values of each number sketch, shape (n,).
        number_sizes: distinct numbers, shape (n,).
    """

    fingerprints: U64
    contents: U64
    sketches: U32
    lengths: I64
    sizes: I64
    numbers: U32
    number_lengths: I64
    number_sizes: I64

    def followed_by(self, other: "Rows") -> "Rows":
        """Return the rows of both, these first."""
        pairs: Iterator[tuple[NDArray[Any], NDArray[Any]]] = zip(self, other, strict=True)
        return Rows(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True, slots=True)
class EntryNames:
    """Which article an entry is of, and of which cluster."""

    article: str
    canonical: str


class EntryFormat:
    """The layout of entries: a fixed part, then the article's id and its canonical article's.

    Args:
        sketch: values of a sketch.
        numbers: values of a number sketch.
    """

    def __init__(self, sketch: int, numbers: int) -> None:
        self._fixed = np.dtype(
            [
                ("fingerprint", "<u8"),
                ("content", "<u8"),
                ("published_ms", "<i8"),
                ("epoch", "<u4"),
                ("size", "<u4"),
                ("length", "<u2"),
                ("number_length", "<u2"),
                ("number_size", "<u4"),
                ("numbers", "<u4", (numbers,)),
                ("sketch", "<u4", (sketch,)),
            ]
        )

    def pack(
        self,
        rows: Rows,
        places: I64,
        epoch: int,
        published_ms: Sequence[int | None],
        names: Sequence[EntryNames],
    ) -> list[bytes]:
        """Return some rows as entries.

        Args:
            rows: all rows.
            places: which of them, shape (m,).
            epoch: number of the IDF epoch of their fingerprints.
            published_ms: event time of each of the m.
            names: ids of each of the m.
        """
        fixed = np.zeros(len(places), self._fixed)
        fixed["fingerprint"], fixed["content"] = rows.fingerprints[places], rows.contents[places]
        fixed["published_ms"] = [UNKNOWN_TIME if moment is None else moment for moment in published_ms]
        fixed["epoch"] = epoch
        fixed["size"], fixed["length"] = rows.sizes[places], rows.lengths[places]
        fixed["number_length"], fixed["number_size"] = rows.number_lengths[places], rows.number_sizes[places]
        fixed["numbers"], fixed["sketch"] = rows.numbers[places], rows.sketches[places]
        packed, size = fixed.tobytes(), self._fixed.itemsize
        return [
            packed[i * size : (i + 1) * size] + _packed_text(name.article) + _packed_text(name.canonical)
            for i, name in enumerate(names)
        ]

    def unpack(self, entries: Sequence[bytes]) -> Rows:
        """Return the rows of entries."""
        size = self._fixed.itemsize
        fixed = np.frombuffer(b"".join([entry[:size] for entry in entries]), self._fixed)
        return Rows(
            fixed["fingerprint"].copy(),
            fixed["content"].copy(),
            fixed["sketch"].copy(),
            fixed["length"].astype(np.int64),
            fixed["size"].astype(np.int64),
            fixed["numbers"].copy(),
            fixed["number_length"].astype(np.int64),
            fixed["number_size"].astype(np.int64),
        )

    def names(self, entry: bytes) -> EntryNames:
        """Return the ids that an entry holds."""
        article, rest = _unpacked_text(entry, self._fixed.itemsize)
        canonical, _ = _unpacked_text(entry, rest)
        return EntryNames(article, canonical)


@dataclass(frozen=True, slots=True)
class ArticleRecord:
    """What became of an article id.

    Attributes:
        contents: content hashes of the texts seen under the id, the newest first, at most 255.
        entry: number of its entry, `NOT_INDEXED` if it has none.
        published_ms: event time, None where unknown.
        relation: of its link, None if it has none.
        canonical: id of the cluster's canonical article; its own id if it is that.
        origin: the message that carried it.
    """

    contents: tuple[int, ...]
    entry: int
    published_ms: int | None
    relation: Relation | None
    canonical: str
    origin: Origin | None

    def pack(self) -> bytes:
        """Return the record as bytes."""
        published = UNKNOWN_TIME if self.published_ms is None else self.published_ms
        origin = self.origin or Origin("", -1, -1)
        fixed = _ARTICLE.pack(
            self.entry,
            published,
            _RELATIONS.index(self.relation),
            origin.partition,
            origin.offset,
            len(self.contents),
        )
        contents = struct.pack(f"<{len(self.contents)}Q", *self.contents)
        return fixed + contents + _packed_text(self.canonical) + _packed_text(origin.topic)

    @classmethod
    def unpack(cls, record: bytes) -> "ArticleRecord":
        """Return the record that bytes hold."""
        entry, published, relation, partition, offset, count = _ARTICLE.unpack_from(record)
        contents = struct.unpack_from(f"<{count}Q", record, _ARTICLE.size)
        canonical, rest = _unpacked_text(record, _ARTICLE.size + 8 * count)
        topic, _ = _unpacked_text(record, rest)
        return cls(
            contents,
            entry,
            None if published == UNKNOWN_TIME else published,
            _RELATIONS[relation],
            canonical,
            Origin(topic, partition, offset) if topic else None,
        )


def _packed_text(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH.pack(len(encoded)) + encoded


def _unpacked_text(record: bytes, start: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(record, start)
    stop = start + _LENGTH.size + length
    return record[start + _LENGTH.size : stop].decode(), stop


def key_of(number: int) -> bytes:
    """Return a number as a key: ascending numbers are ascending keys."""
    return number.to_bytes(8, "big")


def keys_of(numbers: U64) -> list[bytes]:
    """Return numbers as keys."""
    packed = numbers.astype(">u8").tobytes()
    return [packed[i : i + 8] for i in range(0, len(packed), 8)]
