"""How counts of words and lines are stored: the frozen counts of the epoch, and a delta for each step since, in parts.

Knows keys and packing; knows nothing of when an epoch ends.
"""

import struct
from collections.abc import Iterator

import numpy as np

from stream_dedup.arrays import U64
from stream_dedup.index.records.records import key_of
from stream_dedup.index.stores.store import Family, Put, Store
from stream_dedup.text.idf import COUNT_DTYPE, Counts, DocumentCounts, Epoch
from stream_dedup.text.learnt import LearnRule, LineCounts

_EPOCH_PREFIX = b"epoch"
_DELTA_PREFIX = b"delta"
_LINES_PREFIX = b"lines/"  # precedes both for counts of lines
_PART_WORDS = 1 << 15
_PART = struct.Struct(">H")
_HEADER = struct.Struct("<QQ")  # number of the epoch, and documents (0 except in the first part)


def load_counts(store: Store, max_words: int) -> tuple[DocumentCounts, Epoch]:
    """Return the live counts of words and the epoch as they were last committed."""
    counts, epoch = DocumentCounts(max_words), Epoch()
    if frozen := _frozen_words(store):
        number, documents, pairs = frozen
        counts.add(documents, pairs)
        epoch = Epoch.restored(number, documents, pairs)
    for documents, pairs in _since(store, _DELTA_PREFIX, epoch.number):
        counts.add(documents, pairs)
    return counts, epoch


def load_epoch(store: Store) -> Epoch:
    """Return the epoch that is stored."""
    frozen = _frozen_words(store)
    return Epoch.restored(*frozen) if frozen else Epoch()


def load_learnt(store: Store, rule: LearnRule, epoch: int) -> U64:
    """Return the lines that belong to their sites, as learnt for the epoch with this number; see `LineCounts`."""
    return LineCounts(rule, _frozen_lines(store, epoch)).learnt


def load_lines(store: Store, rule: LearnRule, epoch: int) -> LineCounts:
    """Return the live counts of lines as they were last committed, in the epoch with this number."""
    counts = LineCounts(rule, _frozen_lines(store, epoch))
    for _, pairs in _since(store, _LINES_PREFIX + _DELTA_PREFIX, epoch):
        counts.add(pairs)
    return counts


def delta_puts(sequence: int, epoch: int, documents: int, delta: Counts) -> Iterator[Put]:
    """Yield the writes that store what one step counted.

    Args:
        sequence: number of steps made before it; orders the deltas.
        epoch: number of the epoch in which it was counted.
        documents: number of articles counted.
        delta: how many of them contain each word.
    """
    yield from _parts(_DELTA_PREFIX + key_of(sequence), epoch, documents, delta)


def line_delta_puts(sequence: int, epoch: int, articles: int, delta: Counts) -> Iterator[Put]:
    """Yield the writes that store the lines that one step counted; see `delta_puts`."""
    yield from _parts(_LINES_PREFIX + _DELTA_PREFIX + key_of(sequence), epoch, articles, delta)


def epoch_puts(store: Store, epoch: Epoch) -> Iterator[Put]:
    """Yield the writes that replace the stored epoch and its deltas with a new epoch."""
    new = _parts(_EPOCH_PREFIX, epoch.number, epoch.documents, epoch.packed())
    yield from _replaced(store, b"", list(new))


def is_of_new_epoch(put: Put) -> bool:
    """Tell whether a write of counts is one of those that replace the stored epoch with a new one."""
    return put.key.startswith(_EPOCH_PREFIX)


def line_epoch_puts(store: Store, epoch: int, frozen: Counts) -> Iterator[Put]:
    """Yield the writes that replace the stored counts of lines with those that an epoch begins with."""
    new = _parts(_LINES_PREFIX + _EPOCH_PREFIX, epoch, 0, frozen) if len(frozen) else ()
    yield from _replaced(store, _LINES_PREFIX, list(new))


def _frozen_words(store: Store) -> tuple[int, int, Counts] | None:
    """Return number, documents and counts of the stored epoch, None if there is none."""
    parts = _stored(store, _EPOCH_PREFIX)
    if not parts:
        return None
    number, documents, _ = parts[0]
    # As in `_since`: further parts of an earlier, larger epoch do not count.
    return number, documents, np.concatenate([pairs for epoch, _, pairs in parts if epoch == number])


def _frozen_lines(store: Store, epoch: int) -> Counts | None:
    frozen = [pairs for _, pairs in _since(store, _LINES_PREFIX + _EPOCH_PREFIX, epoch)]
    return np.concatenate(frozen) if frozen else None


def _replaced(store: Store, kind: bytes, new: list[Put]) -> Iterator[Put]:
    kept = {put.key for put in new}
    yield from new
    for prefix in (kind + _EPOCH_PREFIX, kind + _DELTA_PREFIX):
        yield from (Put(Family.COUNTS, key, None) for key, _ in store.items(Family.COUNTS, prefix) if key not in kept)


def _parts(key: bytes, number: int, documents: int, pairs: Counts) -> Iterator[Put]:
    for part, start in enumerate(range(0, max(1, len(pairs)), _PART_WORDS)):
        header = _HEADER.pack(number, 0 if part else documents)
        yield Put(Family.COUNTS, key + _PART.pack(part), header + pairs[start : start + _PART_WORDS].tobytes())


def _stored(store: Store, prefix: bytes) -> list[tuple[int, int, Counts]]:
    return [_unpacked(stored) for _, stored in store.items(Family.COUNTS, prefix)]


def _since(store: Store, prefix: bytes, epoch: int) -> Iterator[tuple[int, Counts]]:
    """Yield the documents and counts of each part stored for an epoch; an earlier one's are never counted again."""
    yield from ((documents, pairs) for number, documents, pairs in _stored(store, prefix) if number == epoch)


def _unpacked(stored: bytes) -> tuple[int, int, Counts]:
    number, documents = _HEADER.unpack_from(stored)
    return number, documents, np.frombuffer(stored, COUNT_DTYPE, offset=_HEADER.size)
