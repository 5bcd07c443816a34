"""Promises of the probing: the likeliest keys first, none missed, none twice, and bitmaps that keep no trace."""

from itertools import combinations

import numpy as np
import pytest

from stream_dedup.hashing import I64, U64
from stream_dedup.index.plan import TablePlan
from stream_dedup.index.probing import Occupancies, Occupancy, flip_order, probe_keys, table_keys


def _sets(order: I64) -> list[tuple[int, ...]]:
    """Return the rows as sets of ranks, counted from 1."""
    return [tuple(sorted(int(rank) + 1 for rank in row if rank >= 0)) for row in order]


def _random(seed: int, articles: int) -> tuple[U64, I64]:
    rng = np.random.default_rng(seed)
    sums = rng.permuted(np.tile(np.arange(1, 65), (articles, 1)), axis=1) * rng.choice([-1, 1], (articles, 64))
    fingerprints = np.array([sum(1 << bit for bit in range(64) if row[bit] > 0) for row in sums], np.uint64)
    return fingerprints, sums.astype(np.int64) * 1000


def _naive_keys(plan: TablePlan, fingerprint: int, sums: list[int], flips: list[tuple[int, ...]]) -> list[set[int]]:
    """Try, in each table, the key and the key with the bits of the smallest |sums| flipped."""
    tables = []
    for table in range(plan.tables):
        rotation = table * 64 // plan.tables
        bits = [(63 - place - rotation) % 64 for place in range(plan.prefix_bits)]
        volatile = sorted(bits, key=lambda bit: abs(sums[bit]))
        keys = set()
        for ranks in flips:
            value = fingerprint
            for rank in ranks:
                value ^= 1 << volatile[rank - 1]
            keys.add(int("".join(str(value >> bit & 1) for bit in bits), 2))
        tables.append(keys)
    return tables


@pytest.mark.parametrize(("probes", "prefix_bits"), [(128, 24), (1, 24), (4096, 28), (1000, 10), (37, 8)])
def test_flips_are_distinct_sets_in_order_of_their_rank_sums(probes: int, prefix_bits: int) -> None:
    """The first set flips nothing, no set comes twice, and the sums of ranks never fall."""
    sets = _sets(flip_order(probes, prefix_bits))
    assert len(sets) == len(set(sets)) == probes
    assert sets[0] == ()
    assert [sum(ranks) for ranks in sets] == sorted(sum(ranks) for ranks in sets)
    assert all(len(set(ranks)) == len(ranks) and max(ranks, default=1) <= prefix_bits for ranks in sets)


def test_flips_begin_as_documented() -> None:
    """The first sets are {}, {1}, {2}, {3}, {1, 2}, {4}, {1, 3}: by rank sum, fewer flips first among equals."""
    assert _sets(flip_order(7, 24)) == [(), (1,), (2,), (3,), (1, 2), (4,), (1, 3)]


@pytest.mark.parametrize("probes", [1, 2, 50, 300, 1024])
def test_flips_agree_with_brute_force(probes: int) -> None:
    """Over all 1,024 subsets of 10 ranks, the chosen ones are the cheapest, fewer flips first among equals."""
    subsets = [ranks for size in range(11) for ranks in combinations(range(1, 11), size)]
    cheapest = sorted((sum(ranks), len(ranks)) for ranks in subsets)[:probes]
    assert [(sum(ranks), len(ranks)) for ranks in _sets(flip_order(probes, 10))] == cheapest


def test_no_more_probes_than_there_are_keys() -> None:
    """A key of 8 bits has 256 values, each of which is tried once."""
    sets = _sets(flip_order(4096, 8))
    assert len(sets) == len(set(sets)) == 256


@pytest.mark.parametrize(("tables", "prefix_bits", "probes"), [(8, 12, 64), (3, 10, 7), (5, 9, 512), (1, 8, 1)])
def test_probed_keys_are_the_occupied_ones_of_the_naive_probing(tables: int, prefix_bits: int, probes: int) -> None:
    """Exactly those keys are looked up that the naive implementation would try and that are occupied."""
    plan = TablePlan(tables, prefix_bits)
    fingerprints, sums = _random(1, 30)
    occupancy = Occupancy(plan)
    stored, _ = _random(2, 200)
    prefixes = plan.prefixes(np.concatenate([stored, fingerprints[::3]]))
    occupancy.mark(prefixes)
    occupied = [set(prefixes[:, table].tolist()) for table in range(tables)]
    counts, keys = probe_keys(plan, fingerprints, sums, probes, occupancy)
    flips = _sets(flip_order(probes, prefix_bits))
    start = 0
    for i, count in enumerate(counts.tolist()):
        tried = _naive_keys(plan, int(fingerprints[i]), sums[i].tolist(), flips)
        expected = [table << 32 | key for table in range(tables) for key in tried[table] & occupied[table]]
        found = keys[start : start + count].tolist()
        assert sorted(found) == sorted(expected)
        start += count
    assert start == len(keys)


def test_all_probes_are_tried_where_everything_is_occupied() -> None:
    """With every key occupied each article looks up all its probes in all tables, however many there are."""
    plan = TablePlan(8, 10)
    occupancy = Occupancy(plan)
    occupancy.bits[:] = np.uint64(2**64 - 1)
    fingerprints, sums = _random(3, 300)
    counts, keys = probe_keys(plan, fingerprints, sums, 128, occupancy)
    assert counts.tolist() == [8 * 128] * 300
    assert all(len(set(row)) == 8 * 128 for row in keys.reshape(300, -1).tolist())


def test_likeliest_key_comes_first() -> None:
    """In each table the article's own key is tried first, then that with its most volatile bit flipped."""
    plan = TablePlan(1, 8)
    occupancy = Occupancy(plan)
    occupancy.bits[:] = np.uint64(2**64 - 1)
    sums = np.full((1, 64), 100, np.int64)
    sums[0, 60] = 1
    _, keys = probe_keys(plan, np.array([0], np.uint64), sums, 2, occupancy)
    assert keys.tolist() == [0, 1 << (60 - 56)]


def test_no_articles_look_up_nothing() -> None:
    """An empty batch probes nothing."""
    plan = TablePlan(8, 12)
    counts, keys = probe_keys(plan, np.empty(0, np.uint64), np.empty((0, 64), np.int64), 128, Occupancy(plan))
    assert (len(counts), len(keys)) == (0, 0)


def test_including_leaves_no_trace() -> None:
    """Keys that are included for a while are occupied within, and the bitmap is as before afterwards."""
    plan = TablePlan(4, 10)
    occupancy = Occupancy(plan)
    fingerprints, _ = _random(4, 60)
    occupancy.mark(plan.prefixes(fingerprints[:40]))
    before = occupancy.bits.copy()
    batch = plan.prefixes(np.concatenate([fingerprints[20:], fingerprints[50:]]))
    with occupancy.including(batch):
        within = Occupancy(plan)
        within.mark(plan.prefixes(fingerprints))
        assert (occupancy.bits == within.bits).all()
    assert (occupancy.bits == before).all()


def test_including_leaves_no_trace_after_an_error() -> None:
    """The same when the work within fails."""
    plan = TablePlan(4, 10)
    occupancy = Occupancy(plan)
    fingerprints, _ = _random(5, 20)
    with pytest.raises(KeyError), occupancy.including(plan.prefixes(fingerprints)):
        raise KeyError
    assert not occupancy.bits.any()


def test_marking_stored_keys_is_marking_prefixes() -> None:
    """Keys as they are stored mark the same bits as the prefixes that they are made of."""
    plan = TablePlan(5, 12)
    fingerprints, _ = _random(6, 100)
    prefixes = plan.prefixes(fingerprints)
    one, other = Occupancy(plan), Occupancy(plan)
    one.mark(prefixes)
    other.mark_keys(key.to_bytes(8, "big") for key in table_keys(prefixes).ravel().tolist())
    assert one.bits.any()
    assert (one.bits == other.bits).all()


def test_table_keys_are_table_and_prefix() -> None:
    """A key is the table's number shifted by 32 bits, and the prefix."""
    prefixes = np.array([[5, 6, 7]], np.uint64)
    assert table_keys(prefixes).tolist() == [[5, 1 << 32 | 6, 2 << 32 | 7]]


def test_occupancy_of_all_is_that_of_the_generations_left() -> None:
    """Keys of any generation are occupied until it has expired; what it shares with others stays."""
    plan = TablePlan(4, 10)
    occupancies, model = Occupancies(plan), {}
    for generation in range(4):
        prefixes = plan.prefixes(_random(10 + generation // 2, 20 + generation)[0])
        model[generation] = prefixes
        if generation % 2:
            occupancies.mark(generation, prefixes)
        else:
            keys = table_keys(prefixes).ravel().tolist()
            occupancies.mark_keys(generation, (key.to_bytes(8, "big") for key in keys))
    for live in ([0, 1, 2, 3], [1, 2, 3], [3], []):
        occupancies.keep(live)
        expected = Occupancy(plan)
        for generation in live:
            expected.mark(model[generation])
        assert (occupancies.all.bits == expected.bits).all()
