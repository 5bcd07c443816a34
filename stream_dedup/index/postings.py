"""Posting lists: under each key the newest entries that have it, read and written a batch at a time.

Knows keys, generations and packed lists; knows nothing of where keys come from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_dedup.hashing import I64, U64
from stream_dedup.index.records import generation_keys
from stream_dedup.index.store import Family, Puts, Store

_NUMBER_BYTES = 8  # of an entry number, little-endian, at the beginning of a posting
_PLAIN = np.dtype([("entry", "<u8")])
_WITH_FINGERPRINT = np.dtype([("entry", "<u8"), ("fingerprint", "<u8")])


@dataclass(frozen=True, slots=True)
class PostingFamily:
    """A family of posting lists.

    Attributes:
        family: where they are stored.
        cap: postings kept a key, the newest.
        fingerprints: whether each posting carries the entry's fingerprint beside its number.
    """

    family: Family
    cap: int
    fingerprints: bool = False

    @property
    def layout(self) -> np.dtype[np.void]:
        """Layout of a posting."""
        return _WITH_FINGERPRINT if self.fingerprints else _PLAIN


@dataclass(frozen=True, slots=True)
class PostingLists:
    """The lists of m keys, those of key i at offsets[i]:offsets[i + 1], oldest first.

    Attributes:
        kind: their family.
        keys: distinct, ascending, shape (m,).
        offsets: shape (m + 1,).
        postings: of `kind.layout`, of all generations that were read.
        generation: the newest of them.
        newest: the list of each key in that generation, as it is stored.
    """

    kind: PostingFamily
    keys: U64
    offsets: I64
    postings: NDArray[np.void]
    generation: int
    newest: Sequence[bytes | None]

    def with_new(self, keys: U64, postings: NDArray[np.void]) -> Puts:
        """Return the writes that append postings to lists of the newest generation and drop what is over the cap.

        Postings that a list has already are left out: after a crash a replay may meet them.

        Args:
            keys: key of each posting, in order of arrival, which is that of their entries; all of them were read.
            postings: of `kind.layout`, as many.
        """
        if not len(keys):
            return Puts(self.kind.family, [], [])
        size = self.kind.layout.itemsize
        order = np.argsort(keys, kind="stable")
        ordered = postings[order]
        packed = ordered.tobytes()
        distinct, firsts = np.unique(keys[order], return_index=True)
        starts = (firsts * size).tolist()
        values = [packed[start:stop] for start, stop in zip(starts, [*starts[1:], len(packed)], strict=True)]
        most = self.kind.cap * size
        for at, place in enumerate(np.searchsorted(self.keys, distinct).tolist()):
            old, new = self.newest[place], values[at]
            if old:
                values[at] = (old + _behind(old, new, size))[-most:]
            elif len(new) > most:
                values[at] = new[-most:]
        return Puts(self.kind.family, generation_keys(distinct, self.generation), values)


def _behind(old: bytes, new: bytes, size: int) -> bytes:
    """Return the postings of a list that come behind the last of another: entry numbers ascend."""
    last = old[-size:][:_NUMBER_BYTES]
    if new[:_NUMBER_BYTES][::-1] > last[::-1]:
        return new
    numbers = [new[at : at + _NUMBER_BYTES] for at in range(0, len(new), size)]
    return b"".join(
        [new[place * size : (place + 1) * size] for place, one in enumerate(numbers) if one[::-1] > last[::-1]]
    )


def read_lists(store: Store, kind: PostingFamily, keys: U64, generations: Sequence[int]) -> PostingLists:
    """Read the posting lists of distinct, ascending keys with one look-up a generation.

    Args:
        store: the state.
        kind: their family.
        keys: shape (m,).
        generations: the newest last; a list is that of the oldest followed by those of the newer ones.
    """
    layers = [store.get_many(kind.family, generation_keys(keys, generation)) for generation in generations]
    newest = layers[-1]
    if len(layers) == 1:
        packed = [value or b"" for value in newest]
    else:
        packed = [b"".join([value for value in values if value]) for values in zip(*layers, strict=True)]
    offsets = np.zeros(len(keys) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, packed), np.int64, len(packed)) // kind.layout.itemsize, out=offsets[1:])
    return PostingLists(kind, keys, offsets, np.frombuffer(b"".join(packed), kind.layout), generations[-1], newest)
