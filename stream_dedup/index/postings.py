"""Posting lists: under each key the newest entries that have it, read and written a batch at a time.

Knows keys, generations and packed lists; knows nothing of where keys come from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from stream_dedup.hashing import I64, U64
from stream_dedup.index.records import generation_keys
from stream_dedup.index.store import Family, Puts, Store

_ENTRY_BYTES = 5  # of an entry number, little-endian, at the beginning of a posting
_ENTRY = np.dtype("<u8")
_DETAILS = {"none": np.dtype("V0"), "size": np.dtype("u1"), "fingerprint": np.dtype("<u8")}

Detail = Literal["none", "size", "fingerprint"]


@dataclass(frozen=True, slots=True)
class PostingFamily:
    """A family of posting lists.

    Attributes:
        family: where they are stored.
        cap: postings kept a key, the newest.
        detail: what each posting carries beside the number of the entry: its fingerprint, the class of its size, or
            nothing.
    """

    family: Family
    cap: int
    detail: Detail = "none"

    @property
    def width(self) -> int:
        """Bytes of a posting."""
        return _ENTRY_BYTES + _DETAILS[self.detail].itemsize

    def pack(self, postings: "Postings") -> bytes:
        """Return postings as bytes."""
        packed = np.empty((len(postings.entries), self.width), np.uint8)
        packed[:, :_ENTRY_BYTES] = postings.entries.astype(_ENTRY).view(np.uint8).reshape(-1, 8)[:, :_ENTRY_BYTES]
        if self.detail != "none":
            kind = _DETAILS[self.detail]
            packed[:, _ENTRY_BYTES:] = postings.details.astype(kind).view(np.uint8).reshape(-1, kind.itemsize)
        return packed.tobytes()

    def unpack(self, packed: bytes) -> "Postings":
        """Return the postings that bytes hold."""
        parts = np.frombuffer(packed, np.uint8).reshape(-1, self.width)
        entries = np.zeros((len(parts), 8), np.uint8)
        entries[:, :_ENTRY_BYTES] = parts[:, :_ENTRY_BYTES]
        details = np.zeros((len(parts), 8), np.uint8)
        details[:, : self.width - _ENTRY_BYTES] = parts[:, _ENTRY_BYTES:]
        return Postings(entries.view(_ENTRY)[:, 0], details.view(_ENTRY)[:, 0])


class Postings(NamedTuple):
    """Some postings.

    Attributes:
        entries: numbers of the entries, below 2^40, shape (n,).
        details: what their family's carry, 0 for nothing, shape (n,).
    """

    entries: U64
    details: U64


@dataclass(frozen=True, slots=True)
class PostingLists:
    """The lists of m keys, those of key i at offsets[i]:offsets[i + 1], oldest first.

    Attributes:
        kind: their family.
        keys: distinct, ascending, shape (m,).
        offsets: shape (m + 1,).
        postings: of all generations that were read.
        generation: the newest of them.
        newest: the lists in that generation, as they are stored, by the places of their keys; those that are there.
    """

    kind: PostingFamily
    keys: U64
    offsets: I64
    postings: Postings
    generation: int
    newest: Mapping[int, bytes]

    def with_new(self, keys: U64, postings: Postings) -> Puts:
        """Return the writes that append postings to lists of the newest generation and drop what is over the cap.

        Postings that a list has already are left out: after a crash a replay may meet them.

        Args:
            keys: key of each posting, in order of arrival, which is that of their entries; all of them were read.
            postings: as many.
        """
        if not len(keys):
            return Puts(self.kind.family, [], [])
        width = self.kind.width
        order = np.argsort(keys, kind="stable")
        packed = self.kind.pack(Postings(postings.entries[order], postings.details[order]))
        distinct, firsts, counts = np.unique(keys[order], return_index=True, return_counts=True)
        starts = (firsts * width).tolist()
        values = [packed[start:stop] for start, stop in zip(starts, [*starts[1:], len(packed)], strict=True)]
        most = self.kind.cap * width
        for at in np.flatnonzero(counts > self.kind.cap).tolist():
            values[at] = values[at][-most:]
        places = np.searchsorted(self.keys, distinct)
        for at in np.flatnonzero(np.isin(places, [*self.newest])).tolist():
            old = self.newest[int(places[at])]
            values[at] = (old + _behind(old, values[at], width))[-most:]
        return Puts(self.kind.family, generation_keys(distinct, self.generation), values)


def _behind(old: bytes, new: bytes, width: int) -> bytes:
    """Return the postings of a list that come behind the last of another: entry numbers ascend."""
    last = _number(old, len(old) - width)
    if _number(new, 0) > last:
        return new
    return b"".join([new[at : at + width] for at in range(0, len(new), width) if _number(new, at) > last])


def _number(packed: bytes, at: int) -> int:
    return int.from_bytes(packed[at : at + _ENTRY_BYTES], "little")


def read_lists(store: Store, kind: PostingFamily, keys: U64, generations: Sequence[int]) -> PostingLists:
    """Read the posting lists of distinct, ascending keys with one look-up a generation.

    Args:
        store: the state.
        kind: their family.
        keys: shape (m,).
        generations: the newest last; a list is that of the oldest followed by those of the newer ones.
    """
    layers = [_read(store, kind.family, keys, generation) for generation in generations]
    newest = layers[-1]
    lists = newest if len(layers) == 1 else _followed(layers)
    places = np.fromiter(lists, np.int64, len(lists))
    lengths = np.zeros(len(keys) + 1, np.int64)
    lengths[places + 1] = np.fromiter(map(len, lists.values()), np.int64, len(lists)) // kind.width
    postings = kind.unpack(b"".join(lists.values()))
    return PostingLists(kind, keys, np.cumsum(lengths), postings, generations[-1], newest)


def _read(store: Store, family: Family, keys: U64, generation: int) -> dict[int, bytes]:
    """Return the lists that are there, by the places of their keys, in order."""
    values = store.get_many(family, generation_keys(keys, generation))
    return {place: value for place, value in enumerate(values) if value}


def _followed(layers: Sequence[Mapping[int, bytes]]) -> dict[int, bytes]:
    """Return the lists of several generations, each that of the oldest followed by those of the newer ones."""
    places = sorted(set().union(*layers))
    return {place: b"".join([layer[place] for layer in layers if place in layer]) for place in places}
