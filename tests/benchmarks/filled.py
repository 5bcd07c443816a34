"""An index filled with synthetic entries, and the records of as many articles as a stream with so many entries has.

Knows entries, records and generations; knows nothing of the queries on it.
"""

import time

import numpy as np

from stream_dedup.arrays import F64, U64
from stream_dedup.article import Origin
from stream_dedup.engine.state import State
from stream_dedup.fingerprint.features import Features
from stream_dedup.index.changelog import Commit
from stream_dedup.index.entries.entries import COMPARABLE, IN_TABLES
from stream_dedup.index.lookup.candidates import rows_of
from stream_dedup.index.lookup.keys import spread
from stream_dedup.index.lookup.multi import posting_kinds
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.index.lookup.probing import TABLE_KEY_BITS, table_keys
from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.records.records import ArticleRecord, key_of
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.shelf import YOUNG_ENTRIES, Shelf
from stream_dedup.index.steps import Step
from stream_dedup.index.stores.store import Family, MemoryStore, Puts
from stream_dedup.planner.lists import GENERATIONS
from stream_dedup.settings import EngineSettings
from tests.benchmarks.population import Population, fingerprints_of, slices

INDEXED_SHARE = 0.55
RECORDED = 8  # only one article in so many has its record written; the bytes of records are multiplied by it
RECORDS = (Family.ARTICLES, Family.URLS)
_DAY_MS = 86_400_000
_START_MS = 1_790_000_000_000


def fill(state: State, population: Population, entries: int, originals: U64, asked: int) -> F64:
    """Write entries in three generations, by the code that restores a state from its changelog, one run at a time.

    Args:
        state: a new state.
        population: draws the entries.
        entries: number of entries.
        originals: fingerprints for the first entries, shape (n,).
        asked: for how many of the first entries to return the sums.

    Returns:
        Bit sums of the first entries, shape (asked, 64).
    """
    first: F64 = np.empty((0, 64))
    for generation in slices(entries, -(-entries // GENERATIONS)):
        for part in slices(generation.stop - generation.start, YOUNG_ENTRIES):
            sums = population.sums(part.stop - part.start)
            fingerprints, _ = fingerprints_of(sums)
            if not len(first):
                first = sums[:asked]
                fingerprints[: len(originals)] = originals
            last = generation.start + part.stop
            features = population.features(len(fingerprints))
            step = step_of(state, features, fingerprints, ends_generation=generation.stop == last < entries)
            state.replay([(Commit([step], {}), last)], "bench")
    state.index.shelf.finish(state.progress)
    return first


def insertion_us(plan: TablePlan, settings: EngineSettings, population: Population, entries: int) -> float:
    """Return the CPU time in microseconds of an entry's postings in the tables, from fingerprint to merged runs."""
    shelf, progress, seconds = Shelf(MemoryStore(), posting_kinds(settings)[-1:]), Progress(), 0.0
    for part in slices(entries, YOUNG_ENTRIES):
        fingerprints, _ = fingerprints_of(population.sums(part.stop - part.start))
        numbers = np.repeat(np.arange(part.start, part.stop, dtype=np.uint64), plan.tables)
        began = time.process_time()
        keys = spread(table_keys(plan.prefixes(fingerprints)).ravel(), TABLE_KEY_BITS)
        shelf.add([KeyedPostings(keys, numbers, np.repeat(fingerprints, plan.tables))], part.stop)
        shelf.finish(progress)
        seconds += time.process_time() - began
    shelf.close()
    return seconds / entries * 1e6


def step_of(
    state: State, features: Features, fingerprints: U64, *, ends_generation: bool, recorded: int = RECORDED
) -> Step:
    """Return a step that adds entries, and the records of as many articles as a stream with so many entries has.

    Args:
        state: the state they are added to.
        features: features of their texts.
        fingerprints: shape (n,).
        ends_generation: whether the next entries belong to a new generation.
        recorded: one article in so many has its record written.
    """
    before, count = state.progress, len(fingerprints)
    articles = round(count / INDEXED_SHARE)
    times = _START_MS + _DAY_MS * np.arange(before.entries, before.entries + count) // 100_000
    flags = np.full(count, COMPARABLE | IN_TABLES, np.uint8)
    rows = rows_of(features, fingerprints, times, flags, np.zeros(count, np.uint64))
    fixed = state.index.format.entries(rows, np.arange(count), features.sketches.landmarks, 0)
    generations = before.generations
    if ends_generation:
        generations = (*generations, Generation(before.generation + 1, int(times[-1]), before.entries + count))
    progress = Progress(
        before.steps + 1,
        before.judged + articles,
        before.epoch_judged + articles,
        before.entries + count,
        int(times[-1]),
        generations,
    )
    names = [_name(number) for number in range(before.entries, progress.entries)]
    packed = state.index.format.pack(fixed, names)
    return Step(
        progress, fixed, packed, [], _records(range(before.judged, progress.judged, recorded), rows.contents), []
    )


def _records(articles: range, contents: U64) -> list[Puts]:
    """Return what is stored for each article, indexed or not: its record and its URL."""
    names = [_name(number) for number in articles]
    records, urls = [], []
    for number in articles:
        content, moment = int(contents[number % len(contents)]), _START_MS + number
        url = number * 0x9E3779B97F4A7C15 % 2**64
        record = ArticleRecord(
            (content,), (), moment, moment, moment, 900, None, number, url, "一家报社", Origin("in", 1, number, moment)
        )
        records.append(record.pack())
        urls.append(key_of(url))
    return [Puts(Family.ARTICLES, names, records), Puts(Family.URLS, urls, names)]


def _name(number: int) -> bytes:
    return f"https-article-{number:010d}".encode()
