"""Binary records of what became of each article, and keys made from numbers and generations.

Knows their layout; knows nothing of when they are written.
"""

import struct
from functools import lru_cache
from typing import NamedTuple

from stream_dedup.arrays import U64
from stream_dedup.article import Origin, Relation
from stream_dedup.compiled.kernel import kernel
from stream_dedup.index.stores.store import StoreDamagedError

UNKNOWN_TIME = -(1 << 62)
NOT_INDEXED = -1
STORED_RELATIONS: tuple[Relation | None, ...] = (None, *Relation)  # by their numbers
RELATION_NUMBERS = {relation: number for number, relation in enumerate(STORED_RELATIONS)}
NO_ORIGIN = Origin("", -1, -1)
_ARTICLE = struct.Struct("<qqqQIQiqqBBB")
_COUNTS = _ARTICLE.size - 2  # offset of the numbers of contents and entries
_PLAIN = 10  # numbers before these
_LENGTH = struct.Struct("<H")
_SHOWN = 16  # bytes of a damaged value
_WHAT = "the record of an article"
_TEXTS_KEPT = 1 << 10  # recent sources and topics, as bytes


@kernel
def has_expired(moment: int, cutoff: int) -> bool:
    """Tell whether something has expired; if its time is unknown, it only expires with its generation.

    Args:
        moment: its time, milliseconds since 1970 in UTC, or `UNKNOWN_TIME`.
        cutoff: whatever is older has expired, milliseconds likewise.
    """
    return moment < cutoff and moment != UNKNOWN_TIME


class ArticleRecord(NamedTuple):
    """What became of an article id.

    Attributes:
        contents: content hashes of the texts seen under the id, the newest first, at most 255.
        entries: numbers of the entries that are kept for these texts, the newest first, at most 255.
        decided_ms: the stream's time at the decision on the newest text, or when a copy last joined the cluster that
            is named after the article.
        first_ms: when the message with the first text arrived, or else when that text was published, milliseconds
            since 1970 in UTC; None if unknown.
        published_ms: event time, None if unknown.
        characters: length of the body.
        relation: relation of its link, None if it has none.
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

    def renewed(self, decided_ms: int) -> "ArticleRecord":
        """Return the record with a later time of decision: `_replace`, in half the time."""
        return ArticleRecord(self.contents, self.entries, decided_ms, *self[3:])

    @property
    def seen_ms(self) -> int | None:
        """When its message arrived, or else when it was published; milliseconds since 1970 in UTC."""
        return seen_ms(self.origin, self.published_ms)

    def pack(self) -> bytes:
        """Return the record as bytes."""
        origin = self.origin or NO_ORIGIN
        numbers = _article(len(self.contents) + len(self.entries)).pack(
            self.decided_ms,
            time_number(self.first_ms),
            time_number(self.published_ms),
            self.cluster,
            self.characters,
            self.url,
            origin.partition,
            origin.offset,
            time_number(origin.timestamp_ms),
            RELATION_NUMBERS[self.relation],
            len(self.contents),
            len(self.entries),
            *self.contents,
            *self.entries,
        )
        return numbers + packed_text(self.source) + packed_text(origin.topic)

    @classmethod
    def unpack(cls, record: bytes) -> "ArticleRecord":
        """Return the record that bytes hold.

        Raises:
            StoreDamagedError: they are cut short, or are not such a record.
        """
        try:
            return cls._unpacked(record)
        except (struct.error, IndexError, ValueError):
            raise StoreDamagedError(damage_message(_WHAT, record)) from None

    @classmethod
    def _unpacked(cls, record: bytes) -> "ArticleRecord":
        contents, entries = record[_COUNTS : _ARTICLE.size]
        layout = _article(contents + entries)
        numbers = layout.unpack_from(record)
        decided, first, published, cluster, characters, url, partition, offset, timestamp, relation = numbers[:_PLAIN]
        hashes = numbers[_PLAIN + 2 :]
        source, rest = _unpacked_text(record, layout.size)
        topic, stop = _unpacked_text(record, rest)
        if stop != len(record):
            raise ValueError("it goes on after its texts")
        return cls(
            hashes[:contents],
            hashes[contents:],
            decided,
            None if first == UNKNOWN_TIME else first,
            None if published == UNKNOWN_TIME else published,
            characters,
            STORED_RELATIONS[relation],
            cluster,
            url,
            source,
            Origin(topic, partition, offset, None if timestamp == UNKNOWN_TIME else timestamp) if topic else None,
        )


class Sighting(NamedTuple):
    """What the record of an article says about when and where it was seen: read in a fifth of the time for all of it.

    Attributes:
        decided_ms: see `ArticleRecord`.
        moment_ms: when it was published, else when it arrived, else when it was decided on; milliseconds since 1970.
        cluster: see `ArticleRecord`.
        source: see `ArticleRecord`.
    """

    decided_ms: int
    moment_ms: int
    cluster: int
    source: str

    @classmethod
    def unpack(cls, record: bytes) -> "Sighting":
        """Return what the bytes of a record say.

        Raises:
            StoreDamagedError: they are cut short before the end of the source, or are not such a record.
        """
        try:
            decided, first, published, cluster, *_, contents, entries = _ARTICLE.unpack_from(record)
            source, _ = _unpacked_text(record, _article(contents + entries).size)
        except (struct.error, ValueError):
            raise StoreDamagedError(damage_message(_WHAT, record)) from None
        known = published if published != UNKNOWN_TIME else first
        return cls(decided, known if known != UNKNOWN_TIME else decided, cluster, source)


def time_number(milliseconds: int | None) -> int:
    """Return a time as a number: `UNKNOWN_TIME` for None."""
    return UNKNOWN_TIME if milliseconds is None else milliseconds


def damage_message(what: str, value: bytes) -> str:
    """Return what is wrong with a stored value that cannot be read."""
    return f"{what} is cut short or malformed: {value[:_SHOWN].hex()}... of {len(value)} bytes"


def seen_ms(origin: Origin | None, published_ms: int | None) -> int | None:
    """Return when a message arrived, or else when its article was published."""
    return origin.timestamp_ms if origin is not None and origin.timestamp_ms is not None else published_ms


@lru_cache
def _article(numbers: int) -> struct.Struct:
    """Return the layout of an article's record up to its texts, given the number of contents and entries in all."""
    return struct.Struct(f"{_ARTICLE.format}{numbers}Q")


@lru_cache(_TEXTS_KEPT)
def packed_text(text: str) -> bytes:
    """Return a source or a topic as bytes."""
    encoded = text.encode()
    return _LENGTH.pack(len(encoded)) + encoded


def _unpacked_text(record: bytes, start: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(record, start)
    stop = start + _LENGTH.size + length
    if stop > len(record):
        raise ValueError("a text is shorter than stated")
    return record[start + _LENGTH.size : stop].decode(), stop


_GENERATION = struct.Struct(">I")


def key_of(number: int) -> bytes:
    """Return a number as a key; keys sort like their numbers."""
    return number.to_bytes(8, "big")


def keys_of(numbers: U64) -> list[bytes]:
    """Return numbers as keys."""
    packed = numbers.astype(">u8").tobytes()
    return [packed[i : i + 8] for i in range(0, len(packed), 8)]


def generation_prefix(generation: int) -> bytes:
    """Return the prefix of the keys of a generation."""
    return _GENERATION.pack(generation)
