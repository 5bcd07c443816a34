"""Document counts as they are stored: the epoch's frozen counts, and a delta for each step since, both in parts.

Knows keys and packing; knows nothing of when an epoch ends.
"""

import struct
from collections.abc import Iterator

import numpy as np

from stream_dedup.index.records import key_of
from stream_dedup.index.store import Family, Put, Store
from stream_dedup.text.idf import COUNT_DTYPE, Counts, DocumentCounts, Epoch

_EPOCH_PREFIX = b"epoch"
_DELTA_PREFIX = b"delta"
_PART_WORDS = 1 << 15
_PART = struct.Struct(">H")
_HEADER = struct.Struct("<QQ")  # number of the epoch, and documents (0 but in the first part)


def load_counts(store: Store, max_words: int) -> tuple[DocumentCounts, Epoch]:
    """Return the live counts and the epoch as they were last committed."""
    counts = DocumentCounts(max_words)
    epoch = Epoch()
    parts = [_unpacked(stored) for _, stored in store.items(Family.COUNTS, _EPOCH_PREFIX)]
    if parts:
        number, documents, _ = parts[0]
        pairs = np.concatenate([pairs for _, _, pairs in parts])
        counts.add(documents, pairs)
        epoch = Epoch.restored(number, documents, pairs)
    for _, delta in store.items(Family.COUNTS, _DELTA_PREFIX):
        number, documents, pairs = _unpacked(delta)
        # Whoever was away for so long that Kafka has forgotten the deletion still has those of an earlier epoch.
        if number == epoch.number:
            counts.add(documents, pairs)
    return counts, epoch


def delta_puts(sequence: int, epoch: int, documents: int, delta: Counts) -> Iterator[Put]:
    """Yield the writes of what one step counted.

    Args:
        sequence: steps made when it began; orders the deltas.
        epoch: number of the epoch since which it was counted.
        documents: articles counted.
        delta: how many of them hold each word.
    """
    yield from _parts(_DELTA_PREFIX + key_of(sequence), epoch, documents, delta)


def epoch_puts(store: Store, epoch: Epoch) -> Iterator[Put]:
    """Yield the writes that replace the stored epoch and its deltas by a new epoch."""
    new = list(_parts(_EPOCH_PREFIX, epoch.number, epoch.documents, epoch.packed()))
    kept = {put.key for put in new}
    yield from new
    for prefix in (_EPOCH_PREFIX, _DELTA_PREFIX):
        yield from (Put(Family.COUNTS, key, None) for key, _ in store.items(Family.COUNTS, prefix) if key not in kept)


def _parts(key: bytes, number: int, documents: int, pairs: Counts) -> Iterator[Put]:
    for part, start in enumerate(range(0, max(1, len(pairs)), _PART_WORDS)):
        header = _HEADER.pack(number, 0 if part else documents)
        yield Put(Family.COUNTS, key + _PART.pack(part), header + pairs[start : start + _PART_WORDS].tobytes())


def _unpacked(stored: bytes) -> tuple[int, int, Counts]:
    number, documents = _HEADER.unpack_from(stored)
    return number, documents, np.frombuffer(stored, COUNT_DTYPE, offset=_HEADER.size)
