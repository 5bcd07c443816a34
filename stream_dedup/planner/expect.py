"""What to expect of an index with given settings: recall, look-ups, candidates, memory and disk.

Knows how the parts of the model fit together; knows nothing of how settings are chosen.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from stream_dedup.arrays import F64
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.planner.costs import Space, Traffic, microseconds, space_of, weighed
from stream_dedup.planner.distances import FlipMixture
from stream_dedup.planner.found import FARTHEST, found_pairs
from stream_dedup.planner.lists import Packed, packed, runs_of, tables_of
from stream_dedup.planner.strangers import stranger_hits
from stream_dedup.settings import Settings


@dataclass(frozen=True, slots=True)
class Shape:
    """The settings that the planner chooses.

    Attributes:
        tables: `simhash.tables`; 0 if the tables are switched off.
        prefix_bits: `simhash.prefix_bits`.
        probes: `simhash.probes`, per table.
        max_distance: `simhash.max_distance`.
    """

    tables: int
    prefix_bits: int
    probes: int
    max_distance: int

    @property
    def plan(self) -> TablePlan:
        """The tables."""
        return TablePlan(self.tables, self.prefix_bits)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What to expect of a shape; figures are per new article unless stated otherwise.

    Articles that are proved to be copies by content or first landmarks are not looked up in the tables.

    Attributes:
        shape: the settings.
        recall: share of the copies whose original is among the candidates of the SimHash tables.
        keys: keys looked up: the article's own, and others that the filter of some run may contain.
        blocks: blocks read for them, with full commits.
        postings: postings read.
        candidates: entries within the largest distance, which are read and compared.
        space: bytes of the whole index.
        disk_per_entry: bytes of the SimHash tables per indexed article.
        time_us: time that the tables take, microseconds of one core.
        cost: time, memory and disk as one figure, microseconds per article of the stream.
    """

    shape: Shape
    recall: float
    keys: float
    blocks: float
    postings: float
    candidates: float
    space: Space
    disk_per_entry: float
    time_us: float
    cost: float


@dataclass(frozen=True, slots=True)
class Model:
    """What an expectation depends on besides the shape.

    Attributes:
        copies: flip probabilities between articles and their copies.
        strangers: flip probabilities between unrelated articles.
        traffic: what the index has to hold.
        settings: all settings that are not planned.
    """

    copies: FlipMixture
    strangers: FlipMixture
    traffic: Traffic
    settings: Settings


def recalls(tables: int, prefix_bits: int, probes: int, model: Model) -> F64:
    """Return the recall for each largest distance from 0 to `FARTHEST`, shape (FARTHEST + 1,)."""
    shares = found_pairs(prefix_bits).shares(tables, probes, model.copies)
    found = np.cumsum(model.copies.distances()[: FARTHEST + 1] * shares)
    return np.asarray(found * kept_share(prefix_bits, model))


def kept_share(prefix_bits: int, model: Model) -> float:
    """Return the share of the originals that are visible, being among the newest of their posting lists.

    The newest `simhash.bucket_cap` postings of a key are visible. Lists are assumed to be as long as that of a randomly
    drawn article: families of bulletins make that longer than the mean over keys.
    """
    length = model.traffic.entries * model.strangers.agreement(prefix_bits)
    return min(1.0, model.settings.simhash.bucket_cap / max(length, 1.0))


def _blocks(shape: Shape, tried: int, part: Packed, entries: int, model: Model) -> float:
    """Return the blocks of a run read per article, with full commits, whose keys share some of the blocks."""
    met = stranger_hits(model.strangers, shape.prefix_bits, entries, part.wrong)
    articles = model.settings.commit.articles
    keys = articles * shape.tables * met.keys[tried - 1]
    return float(-part.blocks * np.expm1(-keys / part.blocks) / articles)


def expectation_of(shape: Shape, model: Model) -> Expectation:
    """Return what to expect of a shape."""
    shares = found_pairs(shape.prefix_bits).shares(shape.tables, shape.probes, model.strangers)[
        : shape.max_distance + 1
    ]
    entries = model.traffic.entries
    candidates = entries * float(model.strangers.distances()[: shape.max_distance + 1] @ shares)
    tables, runs = tables_of(shape.plan, model.settings), runs_of(entries)
    right_of_all = prod((1 - packed(tables, size).wrong) ** count for size, count in runs)
    met = stranger_hits(model.strangers, shape.prefix_bits, entries, 1 - right_of_all)
    tried = min(shape.probes, len(met.keys))
    # An article's own key is always looked up, as later articles of its batch may be found under it.
    keys, postings = shape.tables * (1 + met.keys[tried - 1] - met.keys[0]), shape.tables * met.postings[tried - 1]
    blocks = sum(_blocks(shape, tried, packed(tables, size), size, model) * count for size, count in runs)
    space = space_of(shape.plan, model.traffic, model.settings)
    asked = sum(count for _, count in runs)
    time_us = microseconds(shape.tables, shape.tables * tried, asked, keys, blocks, postings, candidates)
    return Expectation(
        shape,
        float(recalls(shape.tables, shape.prefix_bits, shape.probes, model)[shape.max_distance]),
        float(keys),
        blocks,
        float(postings),
        candidates,
        space,
        space.tables / max(entries, 1.0),
        float(time_us),
        weighed(float(time_us) * model.traffic.indexed_share, space),
    )


def expectation_without_tables(model: Model) -> Expectation:
    """Return what to expect with the tables switched off."""
    space = space_of(None, model.traffic, model.settings)
    return Expectation(Shape(0, 0, 0, 0), 0.0, 0.0, 0.0, 0.0, 0.0, space, 0.0, 0.0, weighed(0.0, space))
