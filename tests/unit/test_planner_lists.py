"""The planner's posting lists have the runs, blocks, filters and fences of real runs."""

import numpy as np
import pytest

from stream_dedup.arrays import U64
from stream_dedup.fingerprint.sketch import LANDMARK_BITS
from stream_dedup.index.lookup.keys import spread
from stream_dedup.index.lookup.multi import posting_kinds
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.index.lookup.probing import TABLE_KEY_BITS, table_keys
from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.runs.blocks import KeyedPostings
from stream_dedup.index.runs.bloom import put_in_filter
from stream_dedup.index.runs.postings import PostingKind
from stream_dedup.index.runs.run import Run
from stream_dedup.index.runs.schedule import LARGEST_ENTRIES
from stream_dedup.index.runs.section import mark_present
from stream_dedup.index.runs.shelf import YOUNG_ENTRIES, Shelf
from stream_dedup.index.stores.store import MemoryStore
from stream_dedup.planner.lists import (
    GENERATIONS,
    Lists,
    Packed,
    false_positive_rate,
    others_of,
    packed,
    runs_of,
    tables_of,
)
from stream_dedup.settings import EngineSettings

SETTINGS = EngineSettings()


@pytest.mark.parametrize("entries", [3_000, 3 << 14, 250_002, 900_000])
@pytest.mark.slow
def test_runs_are_those_of_a_shelf_that_was_filled(entries: int) -> None:
    """Entries added one run at a time, in three generations, with all merges done, make runs of the same sizes."""
    store, generation = MemoryStore(), entries // GENERATIONS
    shelf = Shelf(store, [PostingKind("contents", cap=1)])
    starts = [number * generation for number in range(GENERATIONS)]
    for start in starts:
        for first in range(start, start + generation, YOUNG_ENTRIES):
            stop = min(first + YOUNG_ENTRIES, start + generation)
            numbers = np.arange(first, stop, dtype=np.uint64)
            shelf.add([KeyedPostings(spread(numbers, 64), numbers, np.zeros_like(numbers))], stop)
            # Ending one generation begins the next.
            live = tuple(Generation(number, 0, begin) for number, begin in enumerate(starts) if begin <= stop)
            shelf.finish(Progress(entries=stop, generations=live))
    young = entries - shelf.young_first
    sizes = [run.entries for run in shelf.runs] + [young] * (young > 0)
    shelf.close()
    store.close()
    assert sizes == [size for size, count in runs_of(entries) for _ in range(count)]


@pytest.mark.parametrize("entries", [1e9, 2e12])
def test_runs_of_any_number_of_entries_are_told_by_size(entries: float) -> None:
    """They hold all entries, and each size is listed once or twice, however many runs there are."""
    runs = runs_of(entries)
    assert sum(size * count for size, count in runs) == GENERATIONS * round(entries / GENERATIONS)
    assert sum(count for _, count in runs) >= entries / LARGEST_ENTRIES
    assert len(runs) < 10


@pytest.mark.parametrize("entries", [1_000, 16_384, 65_536, 200_000])
@pytest.mark.parametrize(("tables", "prefix_bits"), [(4, 28), (8, 16), (2, 22), (1, 14)])
def test_tables_take_what_is_planned(tables: int, prefix_bits: int, entries: int) -> None:
    """Runs of random fingerprints have as many blocks, bytes within 0.1%, and filters within 1% or a line."""
    plan = TablePlan(tables, prefix_bits)
    fingerprints = np.random.default_rng(1).integers(1 << 64, size=entries, dtype=np.uint64)
    keys = spread(table_keys(plan.prefixes(fingerprints)), TABLE_KEY_BITS)
    _, _, kind = posting_kinds(EngineSettings.model_validate({"simhash": {"bucket_cap": 4096}}))
    _assert_planned(_run(keys, fingerprints, kind), packed(tables_of(plan, SETTINGS), entries))


@pytest.mark.parametrize("entries", [1_000, 16_384, 65_536])
def test_contents_and_landmarks_take_what_is_planned(entries: int) -> None:
    """The same holds for random contents, and for landmarks that are the smallest of 920 random hashes."""
    contents, landmarks = others_of(SETTINGS)
    chance = np.random.default_rng(2)
    of_contents, of_landmarks, _ = posting_kinds(SETTINGS)
    keys = chance.integers(1 << 64, size=(entries, 1), dtype=np.uint64)
    _assert_planned(_run(keys, keys[:, 0] * np.uint64(0), of_contents), packed(contents, entries))
    keys = chance.exponential(2**40 / 920, (entries, landmarks.postings)).cumsum(axis=1).astype(np.uint64)
    apart = Lists(landmarks.postings, landmarks.values, landmarks.key_bits, landmarks.detail_bytes)
    keys = spread(keys, LANDMARK_BITS)
    _assert_planned(_run(keys, keys[:, 0] * np.uint64(0), of_landmarks), packed(apart, entries))


def _run(keys: U64, details: U64, kind: PostingKind) -> Run:
    """Return the closed run of entries under keys of shape (n, k) that a shelf makes of their generation."""
    store, first = MemoryStore(), (Generation(0, 0, 0),)
    shelf = Shelf(store, [kind])
    for begin in range(0, len(keys), YOUNG_ENTRIES):
        some = keys[begin : begin + YOUNG_ENTRIES]
        stop = begin + len(some)
        numbers = np.arange(begin, stop, dtype=np.uint64)
        columns = np.broadcast_arrays(some, numbers[:, None], details[begin:stop, None])
        shelf.add([KeyedPostings(*(column.ravel() for column in columns))], stop)
        shelf.finish(Progress(entries=stop, generations=first))
    shelf.finish(Progress(entries=len(keys), generations=(*first, Generation(1, 0, len(keys)))))
    [run] = shelf.runs
    shelf.close()
    store.close()
    return run


def _assert_planned(run: Run, planned: Packed) -> None:
    [section] = run.sections
    size = section.stop - section.start
    assert section.words.nbytes == pytest.approx(planned.filter, rel=0.01, abs=64)
    assert section.blocks == planned.blocks
    assert size == pytest.approx(planned.packed, rel=0.001)
    assert section.words.nbytes + section.fences.nbytes == pytest.approx(planned.memory, rel=0.01, abs=72)
    assert size + section.fences.nbytes + section.words.nbytes == pytest.approx(planned.disk, rel=0.01, abs=72)


@pytest.mark.parametrize("bits", [6, 9, 12, 16])
def test_filters_are_wrong_as_often_as_planned(bits: int) -> None:
    """Of a million absent keys, a filter with this many bits per key reports as many as the formula says."""
    keys = np.random.default_rng(3).integers(1 << 64, size=256_000, dtype=np.uint64)
    words = np.zeros(len(keys) * bits // 64, np.uint64)
    put_in_filter(words, keys)
    absent = np.random.default_rng(4).integers(1 << 64, size=1_000_000, dtype=np.uint64)
    found = np.zeros(len(absent), np.bool_)
    mark_present(words, absent, found)
    wrong = found.mean()
    assert wrong == pytest.approx(false_positive_rate(bits), abs=5 * float(np.sqrt(wrong / len(absent))))


def test_landmarks_come_again_as_was_measured() -> None:
    """Of the first 450,000 landmarks, the number of distinct ones is the sum of the probabilities of being new."""
    expected = ((1 + np.arange(450_000) / 32_000) ** -0.065).sum()
    lists = Lists(45, 2.0**64, 64, 1, recurring=True)
    assert lists.keys(10_000) == pytest.approx(expected, rel=1e-4)


def test_keys_that_meet_by_chance_are_those_of_random_draws() -> None:
    """A million draws from a million values hit 1 - 1 / e of them."""
    drawn = np.unique(np.random.default_rng(5).integers(1_000_000, size=1_000_000))
    assert Lists(1, 1e6, 64, 8).keys(1_000_000) == pytest.approx(len(drawn), rel=0.005)
