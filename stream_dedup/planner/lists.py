"""What posting lists take: into which runs entries are divided, and the bytes of each in memory and on disk.

Knows how runs are made and packed; knows nothing of records, of recall or of time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import expm1
from typing import NamedTuple

import numpy as np

from stream_dedup.fingerprint.features import landmark_rule
from stream_dedup.fingerprint.sketch import LANDMARK_BITS, landmark_count
from stream_dedup.index.lookup.multi import posting_kinds
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.index.lookup.probing import TABLE_KEY_BITS
from stream_dedup.index.runs.blocks import block_bits_of, block_start, layout_of
from stream_dedup.index.runs.bloom import KEY_BITS, LINE_BITS, filter_bytes
from stream_dedup.index.runs.section import FENCE_BYTES
from stream_dedup.index.runs.shelf import FAN_OUT, LARGEST_ENTRIES, YOUNG_ENTRIES
from stream_dedup.settings import EngineSettings

GENERATIONS = 3  # that are live: two make a window, and a third is being written to
TYPICAL_GRAMS = 920  # distinct n-grams of an article that has 38 landmarks, as many as articles have in the mean
# On 18,000 labelled articles a landmark was new with a probability of (1 + t / 32,000)^-0.065 after t landmarks.
NEW_SCALE, NEW_DECAY = 32_000.0, 0.065
_CONTENT_BITS = 64
_MOST_IN_LINE = 2 * LINE_BITS  # keys; more come together nowhere


class Packed(NamedTuple):
    """A kind's part of a run.

    Attributes:
        blocks: how many it has.
        packed: bytes of these.
        filter: bytes of the filter.
        wrong: share of the absent keys that the filter takes for present.
    """

    blocks: int
    packed: int
    filter: int
    wrong: float

    @property
    def memory(self) -> float:
        """Bytes of filter and fences."""
        return self.filter + self.blocks * FENCE_BYTES

    @property
    def disk(self) -> float:
        """Bytes of the file."""
        return self.packed + self.filter + self.blocks * FENCE_BYTES


class Runs(NamedTuple):
    """Runs of a size.

    Attributes:
        entries: of each of them.
        number: how many there are.
    """

    entries: int
    number: int


@dataclass(frozen=True, slots=True)
class Lists:
    """Posting lists of a kind.

    Attributes:
        postings: of an entry.
        values: over which keys are spread evenly.
        key_bits: that keys may have.
        detail_bytes: of what a posting carries.
        recurring: whether keys come again as phrases do, and not by chance alone.
    """

    postings: int
    values: float
    key_bits: int
    detail_bytes: int
    recurring: bool = False

    def keys(self, entries: float) -> float:
        """Return how many distinct keys so many entries stand under."""
        postings = self.postings * entries
        if self.recurring:
            # The sum of the probabilities that each is new.
            left = 1 - NEW_DECAY
            postings = NEW_SCALE / left * ((1 + postings / NEW_SCALE) ** left - 1)
        return -self.values * expm1(-postings / self.values)


def tables_of(plan: TablePlan, settings: EngineSettings) -> Lists:
    """Return the posting lists of the SimHash tables."""
    _, _, kind = posting_kinds(settings)
    return Lists(plan.tables, plan.tables * 2.0**plan.prefix_bits, TABLE_KEY_BITS, kind.detail_bytes)


def others_of(settings: EngineSettings) -> Iterator[Lists]:
    """Yield the posting lists of contents, and those of landmarks where there are any."""
    contents, landmarks, _ = posting_kinds(settings)
    yield Lists(1, 2.0**_CONTENT_BITS, _CONTENT_BITS, contents.detail_bytes)
    if settings.landmarks.enabled:
        marks = landmark_count(TYPICAL_GRAMS, landmark_rule(settings))
        # Of the hashes of all n-grams they are the smallest.
        values = 2.0**LANDMARK_BITS * min(1.0, marks / TYPICAL_GRAMS)
        yield Lists(marks, values, LANDMARK_BITS, landmarks.detail_bytes, recurring=True)


@lru_cache
def runs_of(entries: float) -> tuple[Runs, ...]:
    """Return the runs by their sizes, when all generations are full and all that is due is merged."""
    generation, closed = round(entries / GENERATIONS), GENERATIONS - 1
    of_closed = (
        Runs(LARGEST_ENTRIES, closed * (generation // LARGEST_ENTRIES)),
        Runs(generation % LARGEST_ENTRIES, closed),
    )
    return tuple(runs for runs in (*of_closed, *_open_runs(generation)) if runs.entries and runs.number)


def _open_runs(entries: int) -> Iterator[Runs]:
    """Yield the runs of the generation that is written to: fewer of each size than are merged to the next."""
    size = YOUNG_ENTRIES
    while size * FAN_OUT <= LARGEST_ENTRIES:
        size *= FAN_OUT
    while size >= YOUNG_ENTRIES:
        yield Runs(size, entries // size)
        entries, size = entries % size, size // FAN_OUT
    yield Runs(entries, 1)  # not in a run yet, but soon


@lru_cache(maxsize=4096)
def packed(lists: Lists, entries: int) -> Packed:
    """Return what a kind's part of a run of so many entries takes."""
    postings, keys = lists.postings * entries, lists.keys(entries)
    layout = layout_of((0, entries), block_bits_of(postings), 64 - lists.key_bits, lists.detail_bytes)
    # A filter is made before it is known how many keys the runs that are merged have in common.
    frozen = entries <= YOUNG_ENTRIES
    most = postings if frozen else FAN_OUT * lists.keys(entries / FAN_OUT)
    size, blocks = filter_bytes(round(most)), 1 << layout.block_bits
    return Packed(blocks, block_start(layout, postings, blocks), size, wrong_share(8 * size / keys))


def wrong_share(bits: float) -> float:
    """Return the share of absent keys that a filter takes for present.

    Putze, Sanders and Singler 2007, section 3: a Bloom filter for each line, of as many keys as a Poisson
    distribution gives it.

    Args:
        bits: of the filter, a key.
    """
    counts = np.arange(1, _MOST_IN_LINE)
    mean = LINE_BITS / bits
    chances = np.exp(np.cumsum(np.log(mean / counts)) - mean)
    wrong = (1 - (1 - 1 / LINE_BITS) ** (KEY_BITS * counts)) ** KEY_BITS
    return float(chances @ wrong + max(0.0, 1 - np.exp(-mean) - chances.sum()))
