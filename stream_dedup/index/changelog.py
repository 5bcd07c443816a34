"""The changelog's records: encodes a commit as keys and values, and decodes it again.

Knows their bytes and versions; knows nothing of Kafka.

A commit is one record for each write to the document counts (key: `k` and the key of the count), which compaction thins
out, then its steps (key: `c`, the number of the last step and the part), split into parts if they are long. It is
complete once its last part has arrived. All integers are little-endian, except those in keys.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import orjson

from stream_dedup.arrays import I64, Bytes
from stream_dedup.compiled.kernel import kernel
from stream_dedup.index.entries.entries import Entries, EntryFormat
from stream_dedup.index.records.ledger import Positions, Progress
from stream_dedup.index.steps import Step
from stream_dedup.index.stores.store import Family, Put, Puts, StoreDamagedError

VERSION = 2
_PART_BYTES = 512 << 10
_COUNT, _COMMIT = b"k", b"c"
_COMMIT_KEY = struct.Struct(">cQH")
_PART = struct.Struct("<BHH")  # version, part, parts
_COUNT_VALUE = struct.Struct("<B")
_LENGTH = struct.Struct("<I")
_RECORD = struct.Struct("<BHi")  # family, length of the key, length of the value or -1; in bytes
_FAMILIES = (Family.ARTICLES, Family.URLS, Family.CLUSTERS, Family.MEMBERS)
_RECORD_BYTES = _RECORD.size
_DELETED = -1
_NO_VALUE = 0xFFFF_FFFF  # `_DELETED` without its sign

LogRecord = tuple[bytes, bytes | None]


class ChangelogError(Exception):
    """A record of the changelog cannot be read. The message says what to do."""


# Nothing else helps: `state rebuild` begins with the changelog too.
_JUDGE_AGAIN = "delete the topic and the state directory, and the input is judged again silently"


@dataclass(frozen=True, slots=True)
class Commit:
    """What one commit changes.

    Attributes:
        steps: in order.
        positions: next input offset by topic and partition, for the partitions that it advances.
    """

    steps: Sequence[Step]
    positions: Positions


def commit_records(commit: Commit) -> Iterator[LogRecord]:
    """Yield the records of a commit, in the order in which they must be written to the changelog."""
    for step in commit.steps:
        for put in step.counts:
            value = None if put.value is None else _COUNT_VALUE.pack(VERSION) + put.value
            yield _COUNT + put.key, value
    payload = _packed(commit)
    parts = range(0, len(payload), _PART_BYTES)
    number = commit.steps[-1].progress.steps
    for part, start in enumerate(parts):
        header = _PART.pack(VERSION, part, len(parts))
        yield _COMMIT_KEY.pack(_COMMIT, number, part), header + payload[start : start + _PART_BYTES]


def ends_commit(key: bytes, value: bytes | None, number: int) -> bool:
    """Tell whether a record is the last of the commit whose last step has this number."""
    if key[:1] != _COMMIT or not _is_ours(key[:1], value) or value is None:
        return False
    _, part, parts = _PART.unpack_from(value)
    return key == _COMMIT_KEY.pack(_COMMIT, number, part) and part + 1 == parts


class CommitReader:
    """Assembles commits from changelog records.

    Args:
        layout: format of the entries.
    """

    def __init__(self, layout: EntryFormat) -> None:
        self._format = layout
        self._counts: list[Put] = []
        self._parts: list[bytes] = []

    def feed(self, key: bytes | None, value: bytes | None) -> Commit | None:
        """Take the next record; return the commit that it completes, None if it completes none.

        Raises:
            ChangelogError: the record was not written by stream_dedup, or has an unknown version.
        """
        if key is None or not _is_ours(key[:1], value):
            raise ChangelogError(
                f"a record with key {key!r} does not belong in a changelog of stream_dedup: something else writes to "
                f"this topic. Stop it, then {_JUDGE_AGAIN}; or begin a new index (input.group, state.name and "
                "state.directory)"
            )
        if key[:1] == _COUNT or value is None:
            self._counts.append(Put(Family.COUNTS, key[1:], None if value is None else _count_value(value)))
            return None
        version, part, parts = _PART.unpack_from(value)
        _check_version(version)
        if part != len(self._parts):
            # Without transactions, a killed writer leaves some parts behind and the next one starts over with part 0.
            # Anything else that is missing shows up in the step numbers.
            self._parts = []
            if part:
                return None
        self._parts.append(value[_PART.size :])
        if part + 1 < parts:
            return None
        commit, own = _unpacked(b"".join(self._parts), self._format)
        counts = [put for put in self._counts if put.key in own]
        self._counts, self._parts = [], []
        # What compaction has taken away was deleted, here or later, unless a later commit writes it again.
        gone = own.difference(put.key for put in counts)
        counts += [Put(Family.COUNTS, key, None) for key in sorted(gone)]
        last = replace(commit.steps[-1], counts=counts)
        return replace(commit, steps=[*commit.steps[:-1], last])


def _is_ours(kind: bytes, value: bytes | None) -> bool:
    """Tell whether a record is a count, the deletion of one, or a part of a commit."""
    if value is None:
        return kind == _COUNT
    if kind == _COUNT:
        return len(value) >= _COUNT_VALUE.size
    return kind == _COMMIT and len(value) >= _PART.size


def _check_version(version: int) -> None:
    if version != VERSION:
        raise ChangelogError(
            f"the changelog holds records of version {version}, but this stream_dedup reads version {VERSION}: use the "
            f"version that wrote it, or {_JUDGE_AGAIN}"
        )


def _count_value(value: bytes) -> bytes:
    _check_version(value[0])
    return value[_COUNT_VALUE.size :]


def _packed(commit: Commit) -> bytes:
    positions = [[topic, partition, offset] for (topic, partition), offset in commit.positions.items()]
    counts = {put.key for step in commit.steps for put in step.counts}
    sections = [orjson.dumps(positions), orjson.dumps(sorted(key.hex() for key in counts))]
    for step in commit.steps:
        lengths = np.array([len(entry) for entry in step.packed], "<u4")
        sections += [
            step.progress.pack(),
            lengths.tobytes(),
            b"".join(step.packed),
            np.array(step.removed, "<u8").tobytes(),
            b"".join(_packed_records(step.records)),
        ]
    return b"".join([part for section in sections for part in (_LENGTH.pack(len(section)), section)])


def _packed_records(records: Sequence[Puts]) -> Iterator[bytes]:
    for puts in records:
        family = _FAMILIES.index(puts.family)
        for key, value in puts.pairs():
            yield _RECORD.pack(family, len(key), _DELETED if value is None else len(value))
            yield key
            yield value or b""


def _unpacked(payload: bytes, layout: EntryFormat) -> tuple[Commit, set[bytes]]:
    """Return a commit and the keys of its counts, which tell them from counts that a killed writer left before it."""
    sections = list(_sections(payload))
    positions = {(topic, partition): offset for topic, partition, offset in orjson.loads(sections[0])}
    first, fields = 2, 5
    steps = [_step(sections[at : at + fields], layout) for at in range(first, len(sections), fields)]
    return Commit(steps, positions), {bytes.fromhex(key) for key in orjson.loads(sections[1])}


def _step(sections: Sequence[bytes], layout: EntryFormat) -> Step:
    progress, lengths, entries, removed, records = sections
    packed = _cut(entries, np.frombuffer(lengths, "<u4").tolist())
    return Step(
        Progress.unpack(progress),
        _entries(packed, layout),
        packed,
        np.frombuffer(removed, "<u8").tolist(),
        _unpacked_records(records),
        [],
    )


def _entries(packed: Sequence[bytes], layout: EntryFormat) -> Entries:
    try:
        return layout.fixed(packed)
    except StoreDamagedError as error:
        raise ChangelogError(f"the changelog is damaged ({error}): {_JUDGE_AGAIN}") from None


def _sections(payload: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(payload):
        (length,) = _LENGTH.unpack_from(payload, at)
        at += _LENGTH.size
        yield payload[at : at + length]
        at += length


def _cut(joined: bytes, lengths: Sequence[int]) -> list[bytes]:
    pieces, at = [], 0
    for length in lengths:
        pieces.append(joined[at : at + length])
        at += length
    return pieces


def _unpacked_records(packed: bytes) -> list[Puts]:
    """Return the records; adjacent ones of the same family share one `Puts`."""
    bounds, sound = _record_bounds(np.frombuffer(packed, np.uint8))
    if not sound:
        raise ChangelogError(f"the changelog is damaged (records of articles that cannot be read): {_JUDGE_AGAIN}")
    families = bounds[:, 0]
    changes = np.flatnonzero(families[1:] != families[:-1]) + 1
    return [_puts(packed, part) for part in np.split(bounds, changes) if len(part)]


def _puts(packed: bytes, bounds: I64) -> Puts:
    """Return the records of one family, at least one; see `_record_bounds`."""
    families, starts, middles, stops = bounds.T.tolist()
    keys = [packed[start:middle] for start, middle in zip(starts, middles, strict=True)]
    values = [None if stop == _DELETED else packed[middle:stop] for middle, stop in zip(middles, stops, strict=True)]
    return Puts(_FAMILIES[families[0]], keys, values)


@kernel
def _record_bounds(packed: Bytes) -> tuple[I64, bool]:
    """Return where the records are, shape (n, 4), and whether all can be read.

    The columns are the index of the family, and where the key begins, the value begins and the value ends, which is
    `_DELETED` if there is none.
    """
    bounds = np.empty((len(packed) // _RECORD_BYTES, 4), np.int64)
    count = at = 0
    sound = True
    while at + _RECORD_BYTES <= len(packed):
        size = np.int64(0)
        for place in range(4):
            size |= np.int64(packed[at + 3 + place]) << (8 * place)
        sound &= packed[at] < len(_FAMILIES)
        record = bounds[count]
        record[0], record[1] = packed[at], at + _RECORD_BYTES
        record[2] = record[1] + packed[at + 1] + (np.int64(packed[at + 2]) << 8)
        record[3] = _DELETED if size == _NO_VALUE else record[2] + size
        at = max(record[2], record[3])
        count += 1
    return bounds[:count], sound and at == len(packed)
