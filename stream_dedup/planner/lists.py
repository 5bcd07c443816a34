"""The size of posting lists: how entries are divided into runs, and the bytes of each run in memory and on disk.

Knows how runs are made and packed; knows nothing of records, of recall or of time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import expm1
from typing import NamedTuple

import numpy as np

from stream_dedup.engine.window import GENERATIONS_PER_WINDOW
from stream_dedup.fingerprint.features import landmark_rule
from stream_dedup.fingerprint.sketch import LANDMARK_BITS, landmark_count
from stream_dedup.index.lookup.multi import posting_kinds
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.index.lookup.probing import TABLE_KEY_BITS
from stream_dedup.index.runs.blocks import KEY_BITS, block_bits_of, block_start, layout_of
from stream_dedup.index.runs.bloom import BITS_SET, LINE_BITS, filter_bytes
from stream_dedup.index.runs.schedule import LARGEST_ENTRIES, sizes_after
from stream_dedup.index.runs.section import FENCE_BYTES
from stream_dedup.index.runs.shelf import YOUNG_ENTRIES
from stream_dedup.settings import EngineSettings

GENERATIONS = GENERATIONS_PER_WINDOW + 1  # live ones: those that make up a window, and one that is being written to
TYPICAL_GRAMS = 920  # distinct n-grams of an article with 38 landmarks, the mean number
# On 18,000 labelled articles, a landmark was new with probability (1 + t / 32,000)^-0.065 after t landmarks.
NEW_SCALE, NEW_DECAY = 32_000.0, 0.065
_MOST_IN_LINE = 2 * LINE_BITS  # keys; in practice no line gets more
_FULL_ENTRIES = sizes_after(LARGEST_ENTRIES // YOUNG_ENTRIES)[0] * YOUNG_ENTRIES  # of a run that is merged no more


class Packed(NamedTuple):
    """The part of a run for one kind of key.

    Attributes:
        blocks: number of blocks.
        packed: bytes of the blocks.
        filter: bytes of the filter.
        wrong: false-positive rate of the filter.
    """

    blocks: int
    packed: int
    filter: int
    wrong: float

    @property
    def memory(self) -> int:
        """Bytes of filter and fences."""
        return self.filter + self.blocks * FENCE_BYTES

    @property
    def disk(self) -> int:
        """Bytes of the file."""
        return self.packed + self.memory


class Runs(NamedTuple):
    """Runs of the same size.

    Attributes:
        entries: entries of each run.
        number: number of runs.
    """

    entries: int
    number: int


@dataclass(frozen=True, slots=True)
class Lists:
    """The posting lists of one kind of key.

    Attributes:
        postings: postings per entry.
        values: number of values over which keys are spread evenly.
        key_bits: bits of a key.
        detail_bytes: bytes of detail in a posting.
        recurring: whether keys recur as phrases do, and not only by chance.
    """

    postings: int
    values: float
    key_bits: int
    detail_bytes: int
    recurring: bool = False

    def keys(self, entries: float) -> float:
        """Return how many distinct keys a number of entries have."""
        postings = self.postings * entries
        if self.recurring:
            # The integral of the probabilities that each is new.
            left = 1 - NEW_DECAY
            postings = NEW_SCALE / left * ((1 + postings / NEW_SCALE) ** left - 1)
        return -self.values * expm1(-postings / self.values)


def tables_of(plan: TablePlan, settings: EngineSettings) -> Lists:
    """Return the posting lists of the SimHash tables."""
    _, _, kind = posting_kinds(settings)
    return Lists(plan.tables, plan.tables * 2.0**plan.prefix_bits, TABLE_KEY_BITS, kind.detail_bytes)


def others_of(settings: EngineSettings) -> Iterator[Lists]:
    """Yield the posting lists of contents, and those of landmarks if these are enabled."""
    contents, landmarks, _ = posting_kinds(settings)
    yield Lists(1, 2.0**KEY_BITS, KEY_BITS, contents.detail_bytes)
    if settings.landmarks.enabled:
        marks = landmark_count(TYPICAL_GRAMS, landmark_rule(settings))
        # They are the smallest of the hashes of all n-grams.
        values = 2.0**LANDMARK_BITS * min(1.0, marks / TYPICAL_GRAMS)
        yield Lists(marks, values, LANDMARK_BITS, landmarks.detail_bytes, recurring=True)


@lru_cache
def runs_of(entries: float) -> tuple[Runs, ...]:
    """Return the runs by size, once all generations are full and all due merges are done."""
    generation, closed = round(entries / GENERATIONS), GENERATIONS - 1
    full = max(0, -(-(generation - LARGEST_ENTRIES) // _FULL_ENTRIES))
    rest = generation - full * _FULL_ENTRIES
    runs = (Runs(_FULL_ENTRIES, GENERATIONS * full), Runs(rest, closed), *_open_runs(rest))
    return tuple(some for some in runs if some.entries and some.number)


def _open_runs(entries: int) -> Iterator[Runs]:
    """Return the runs of the generation being written to that are not full."""
    # The last are not in a run yet, but soon.
    return (Runs(size, 1) for size in _divided(entries, entries // YOUNG_ENTRIES))


@lru_cache(maxsize=4096)
def packed(lists: Lists, entries: int) -> Packed:
    """Return the size of one kind's part of a run of `entries` entries."""
    postings, keys = lists.postings * entries, lists.keys(entries)
    layout = layout_of((0, entries), block_bits_of(postings), KEY_BITS - lists.key_bits, lists.detail_bytes)
    # A filter is sized before it is known how many keys the merged runs have in common.
    frozen = entries <= YOUNG_ENTRIES
    # Of the runs that were merged into this one, the newest had just been frozen.
    parts = _divided(entries, (entries - 1) // YOUNG_ENTRIES)
    most = postings if frozen else sum(map(lists.keys, parts))
    size, blocks = filter_bytes(round(most)), 1 << layout.block_bits
    return Packed(blocks, block_start(layout, postings, blocks), size, false_positive_rate(8 * size / keys))


def _divided(entries: int, units: int) -> Iterator[int]:
    """Yield the sizes of the runs that so many frozen ones have become, then how many entries are left."""
    for size in sizes_after(units):
        yield size * YOUNG_ENTRIES
    yield entries - units * YOUNG_ENTRIES


def false_positive_rate(bits: float) -> float:
    """Return the false-positive rate of a filter: the share of absent keys that it takes for present.

    Putze, Sanders and Singler 2007, section 3: each line is a Bloom filter, and the number of its keys follows a
    Poisson distribution.

    Args:
        bits: bits of the filter per key.
    """
    counts = np.arange(1, _MOST_IN_LINE)
    mean = LINE_BITS / bits
    chances = np.exp(np.cumsum(np.log(mean / counts)) - mean)
    wrong = (1 - (1 - 1 / LINE_BITS) ** (BITS_SET * counts)) ** BITS_SET
    return float(chances @ wrong + max(0.0, 1 - np.exp(-mean) - chances.sum()))
