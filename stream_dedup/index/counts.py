"""Document counts as they are stored: the epoch's frozen counts, and a delta for each commit since.

Knows keys and packing; knows nothing of when an epoch ends.
"""

import struct
from collections.abc import Iterator

import numpy as np

from stream_dedup.index.records import key_of
from stream_dedup.index.store import Family, Put, Store
from stream_dedup.text.idf import COUNT_DTYPE, Counts, DocumentCounts, Epoch

_EPOCH_KEY = b"epoch"
_DELTA_PREFIX = b"delta"
_HEADER = struct.Struct("<QQ")  # number of the epoch (0 in deltas) and documents


def load_counts(store: Store, max_words: int) -> tuple[DocumentCounts, Epoch]:
    """Return the live counts and the epoch as they were last committed."""
    counts = DocumentCounts(max_words)
    epoch = Epoch()
    (stored,) = store.get_many(Family.COUNTS, [_EPOCH_KEY])
    if stored is not None:
        number, documents, pairs = _unpacked(stored)
        counts.add(documents, pairs)
        epoch = Epoch.restored(number, documents, pairs)
    for _, delta in store.items(Family.COUNTS, _DELTA_PREFIX):
        _, documents, pairs = _unpacked(delta)
        counts.add(documents, pairs)
    return counts, epoch


def delta_put(sequence: int, documents: int, delta: Counts) -> Put:
    """Return the write of what one commit counted.

    Args:
        sequence: articles judged when the commit began; orders the deltas.
        documents: articles counted.
        delta: how many of them hold each word.
    """
    return Put(Family.COUNTS, _DELTA_PREFIX + key_of(sequence), _HEADER.pack(0, documents) + delta.tobytes())


def epoch_puts(store: Store, epoch: Epoch) -> Iterator[Put]:
    """Yield the writes that replace the stored epoch and its deltas by a new epoch."""
    yield Put(Family.COUNTS, _EPOCH_KEY, _HEADER.pack(epoch.number, epoch.documents) + epoch.packed().tobytes())
    for key, _ in store.items(Family.COUNTS, _DELTA_PREFIX):
        yield Put(Family.COUNTS, key, None)


def _unpacked(stored: bytes) -> tuple[int, int, Counts]:
    number, documents = _HEADER.unpack_from(stored)
    return number, documents, np.frombuffer(stored, COUNT_DTYPE, offset=_HEADER.size)
