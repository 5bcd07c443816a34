"""How often each line was at an end of a site's articles, and when it counts as the site's own.

Knows what is counted, learnt and forgotten; knows nothing of texts, or of how counts are stored.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U64, Bool
from stream_dedup.compiled.hashing import EMPTY, empty_table, find_slot, place_all, table_size
from stream_dedup.compiled.kernel import kernel
from stream_dedup.settings.engine import TextSettings
from stream_dedup.text.idf import COUNT_DTYPE, Counts, DocumentCounts
from stream_dedup.text.lines import EndLines, site_of

_FORGOTTEN = 8  # with each epoch one in this many articles is forgotten, so that a site may change its lines


class LearnRule(NamedTuple):
    """When a line counts as its site's own.

    Attributes:
        articles: at least this many articles of the site have it.
        share: and at least this share of all its articles.
        most: maximum number of lines and sites that are counted.
    """

    articles: int
    share: float
    most: int


def learn_rule_of(settings: TextSettings) -> LearnRule:
    """Return the rule that the settings define."""
    return LearnRule(settings.learn_min, settings.learn_share, settings.learn_max)


class LineCounts:
    """The live counts of lines, and the lines learnt when the epoch began.

    Args:
        rule: when a line counts as its site's own.
        frozen: the counts when the epoch began, see `freeze`.

    Attributes:
        learnt: open-addressing table of the lines that are sites' own.
        lines: how many of them there are.
    """

    def __init__(self, rule: LearnRule, frozen: Counts | None = None) -> None:
        frozen = np.empty(0, COUNT_DTYPE) if frozen is None else frozen
        own = learnt_lines(frozen, rule)
        self.learnt, self.lines = empty_table(len(own) + 1), len(own)
        place_all(self.learnt, own)
        self._rule = rule
        self._counts = DocumentCounts(rule.most)
        self._counts.add(0, with_decay(frozen))

    def add(self, delta: Counts) -> None:
        """Add the counts of more articles: pairs of a line's or a site's number and how many articles have it."""
        self._counts.add(0, delta)

    def freeze(self, since: Sequence[Counts]) -> Counts:
        """Return the counts that the next epoch begins with, ascending by number; what was counted once is forgotten.

        Args:
            since: counts to add to the live counts first, in order.
        """
        counts = self._counts.copy()
        for delta in since:
            counts.add(0, delta)
        counts.make_room()
        frozen = counts.packed(least=2)
        return frozen[np.argsort(frozen["word"])]

    def followed_by(self, frozen: Counts) -> "LineCounts":
        """Return the counts of the next epoch, given those it begins with."""
        return LineCounts(self._rule, frozen)

    def packed(self) -> Counts:
        """Return the live counts as packed pairs."""
        return self._counts.packed()

    def fresh(self, lines: EndLines, articles: I64, since: Sequence[Counts]) -> I64:
        """Return which articles have a line that no earlier article of their site had.

        Only these are counted: a text that a site publishes twenty times, even with an editor's changes, must not
        teach its own first sentence.

        Args:
            lines: of n articles.
            articles: indices of some of them, ascending, shape (m,).
            since: counts added after the live counts, in order.
        """
        added = np.concatenate([np.empty(0, np.uint64), *(delta["word"] for delta in since)])
        known, added_known = self._counts.look_up(lines.keys) > 0, self._counts.look_up(added) > 0
        room = self._rule.most - self._counts.words
        fresh: I64 = articles[_fresh(lines.offsets, lines.keys, known, articles, added, added_known, room)]
        return fresh


def learnt_lines(frozen: Counts, rule: LearnRule) -> U64:
    """Return the numbers of the lines that are their sites' own.

    Args:
        frozen: how many articles each line and site has, ascending by number.
        rule: when a line is its site's own.
    """
    numbers, articles = frozen["word"].copy(), frozen["documents"].astype(np.int64)
    sites = _sites(numbers)
    places = np.minimum(np.searchsorted(numbers, sites), max(len(numbers) - 1, 0))
    of_site = np.where(numbers[places] == sites, articles[places], np.iinfo(np.int64).max)
    own = (numbers != sites) & (articles >= rule.articles) & (articles >= rule.share * of_site)
    learnt: U64 = numbers[own]
    return learnt


def with_decay(counts: Counts) -> Counts:
    """Return counts with an eighth of each, rounded up, forgotten; those that reach 0 are left out."""
    older = counts.copy()
    older["documents"] -= (counts["documents"] + _FORGOTTEN - 1) // _FORGOTTEN
    return older[older["documents"] > 0]


@kernel
def _sites(numbers: U64) -> U64:
    sites = np.empty_like(numbers)
    for i in range(len(numbers)):
        sites[i] = site_of(numbers[i])
    return sites


@kernel
def _fresh(offsets: I64, keys: U64, known: Bool, places: I64, added: U64, added_known: Bool, room: int) -> Bool:
    """Return for each article whether it has a new line, as if articles were counted one by one.

    A line counts as seen only if there was room for it, as will be the case in the counts: otherwise results would
    depend on where batches are cut once the counts are full.
    """
    seen = np.zeros(table_size(len(added) + len(keys) + 1), np.uint64)
    for i in range(len(added)):
        room -= _placed(seen, added[i], added_known[i], room)
    fresh = np.zeros(len(places), np.bool_)
    for i in range(len(places)):
        first, last = offsets[places[i]], offsets[places[i] + 1]
        for line in range(first + 1, last):
            fresh[i] |= not known[line] and seen[find_slot(seen, keys[line])] == EMPTY
        if fresh[i]:
            for line in range(first, last):
                room -= _placed(seen, keys[line], known[line], room)
    return fresh


@kernel
def _placed(seen: U64, key: np.uint64, known: bool, room: int) -> int:  # noqa: FBT001  # a kernel has no keyword-only arguments
    """Put a number into the table if it is new and there is room; return how many places it takes, 0 or 1."""
    slot = find_slot(seen, key)
    if known or seen[slot] != EMPTY or room <= 0:
        return 0
    seen[slot] = key
    return 1
