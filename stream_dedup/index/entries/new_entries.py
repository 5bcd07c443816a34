"""Entries that a run adds, numbered in the order in which they are added.

Knows fixed parts, clusters and numbers; knows nothing of why an entry is added.
"""

from collections.abc import Sequence

import numpy as np

from stream_dedup.index.entries.entries import RESERVE, Entries, EntryFormat

# Index among the texts followed by the other entries; cluster; whether it is in reserve; name of the article.
_Added = tuple[int, int, bool, bytes]


class NewEntries:
    """Entries that a run adds, in the order of their numbers.

    Args:
        layout: format of the entries.
        first: number of the first entry.
        texts: fixed parts of the run's texts, most of which become entries, without clusters, shape (n,); None if only
            existing entries are added again.
    """

    def __init__(self, layout: EntryFormat, first: int, texts: Entries | None = None) -> None:
        self._format = layout
        self.first = first
        self.texts = np.empty(0, layout.layout) if texts is None else texts
        self._others: list[Entries] = []
        self._added: list[_Added] = []

    @property
    def next(self) -> int:
        """Number of the next entry."""
        return self.first + len(self._added)

    def add(self, place: int, name: bytes, cluster: int, *, reserve: bool) -> int:
        """Add a text of the run and return its number.

        Args:
            place: index of the text.
            name: name of its article, as UTF-8.
            cluster: number of its cluster.
            reserve: whether it is kept in reserve, out of the index.
        """
        self._added.append((place, cluster, reserve, name))
        return self.next - 1

    def add_again(self, fixed: Entries, name: bytes) -> int:
        """Add an existing entry again, with changes, and return its new number.

        Args:
            fixed: its fixed part, shape (1,).
            name: name of its article, as UTF-8.
        """
        self._others.append(fixed)
        return self.add(len(self.texts) + len(self._others) - 1, name, int(fixed["cluster"][0]), reserve=False)

    def get(self, number: int) -> Entries | None:
        """Return the fixed part of an entry, shape (1,), None if the run has not added one of that number."""
        if not self.first <= number < self.next:
            return None
        at = number - self.first
        return self._fixed(self._added[at : at + 1])

    def time(self, number: int) -> int:
        """Return the time from which an entry that the run has added is remembered; see `Times.window`."""
        place = self._added[number - self.first][0]
        own = len(self.texts)
        fixed, at = (self.texts, place) if place < own else (self._others[place - own], 0)
        return int(fixed["window_ms"][at])

    def all(self) -> tuple[Entries, list[bytes]]:
        """Return the fixed parts of all entries added, shape (m,), and the names of their articles, as UTF-8."""
        return self._fixed(self._added), [name for *_, name in self._added]

    def _fixed(self, added: Sequence[_Added]) -> Entries:
        rows, clusters, reserve, _ = zip(*added, strict=True) if added else [()] * 4
        texts = self._format.joined([self.texts, *self._others]) if self._others else self.texts
        fixed = self._format.only(texts, np.array(rows, np.int64))
        fixed["cluster"] = clusters
        fixed["flags"] |= np.uint8(RESERVE) * np.array(reserve, np.uint8)
        return fixed
