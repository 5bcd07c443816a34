"""Postings: which entries are indexed under a key, and what is known of each without reading it.

Knows kinds of posting lists; knows nothing of where they are kept or where keys come from.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from stream_dedup.arrays import I64, U64

Detail = Literal["none", "size", "fingerprint"]
_DETAIL_BYTES = {"none": 0, "size": 1, "fingerprint": 8}


@dataclass(frozen=True, slots=True)
class PostingKind:
    """A kind of posting lists.

    Attributes:
        name: its name.
        cap: how many postings are visible under a key, the newest.
        detail: what each posting holds besides the number of the entry: its fingerprint, its size class, or nothing.
    """

    name: str
    cap: int
    detail: Detail = "none"

    @property
    def detail_bytes(self) -> int:
        """Size of a posting's detail in bytes."""
        return _DETAIL_BYTES[self.detail]


class Postings(NamedTuple):
    """Some postings.

    Attributes:
        entries: numbers of the entries, shape (n,).
        details: see `PostingKind`, 0 for nothing, shape (n,).
    """

    entries: U64
    details: U64


@dataclass(frozen=True, slots=True)
class PostingLists:
    """The lists of m keys, those of key i at offsets[i]:offsets[i + 1], oldest first.

    Attributes:
        keys: distinct, ascending, shape (m,).
        offsets: shape (m + 1,).
        postings: postings of all lists.
    """

    keys: U64
    offsets: I64
    postings: Postings
