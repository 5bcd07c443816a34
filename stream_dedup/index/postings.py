"""Posting lists: under each key the newest entries that have it, read and written a batch at a time.

Knows keys and packed lists; knows nothing of where keys come from.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_dedup.hashing import I64, U64
from stream_dedup.index.records import keys_of
from stream_dedup.index.store import Family, Put, Store

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
        postings: of `kind.layout`.
        packed: each list as it is stored.
    """

    kind: PostingFamily
    keys: U64
    offsets: I64
    postings: NDArray[np.void]
    packed: Sequence[bytes]

    def with_new(self, key_indexes: I64, postings: NDArray[np.void]) -> Iterator[Put]:
        """Yield the writes that append postings to lists and drop what is over the cap.

        Args:
            key_indexes: for each posting the index of its key, in order of arrival.
            postings: of `kind.layout`, as many.
        """
        size = self.kind.layout.itemsize
        packed = postings.tobytes()
        added: defaultdict[int, list[bytes]] = defaultdict(list)
        for place, index in enumerate(key_indexes.tolist()):
            added[index].append(packed[place * size : (place + 1) * size])
        encoded = keys_of(self.keys[list(added)]) if added else []
        for key, (index, new) in zip(encoded, added.items(), strict=True):
            whole = self.packed[index] + b"".join(new)
            yield Put(self.kind.family, key, whole[-self.kind.cap * size :])


def read_lists(store: Store, kind: PostingFamily, keys: U64) -> PostingLists:
    """Read the posting lists of distinct, ascending keys with one look-up."""
    values = store.get_many(kind.family, keys_of(keys))
    packed = [value or b"" for value in values]
    offsets = np.zeros(len(keys) + 1, np.int64)
    np.cumsum([len(value) // kind.layout.itemsize for value in packed], out=offsets[1:])
    return PostingLists(kind, keys, offsets, np.frombuffer(b"".join(packed), kind.layout), packed)
