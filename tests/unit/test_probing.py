"""Probing tries the likeliest keys first, and no key is missed or tried twice."""

from itertools import combinations

import numpy as np
import pytest

from stream_dedup.arrays import I64, U64
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.index.lookup.probing import flip_order, probe_keys, table_keys


def _sets(order: I64) -> list[tuple[int, ...]]:
    """Return the rows as sets of ranks, counted from 1."""
    return [tuple(sorted(int(rank) + 1 for rank in row if rank >= 0)) for row in order]


def _random(seed: int, articles: int) -> tuple[U64, I64]:
    rng = np.random.default_rng(seed)
    sums = rng.permuted(np.tile(np.arange(1, 65), (articles, 1)), axis=1) * rng.choice([-1, 1], (articles, 64))
    fingerprints = np.array([sum(1 << bit for bit in range(64) if row[bit] > 0) for row in sums], np.uint64)
    return fingerprints, sums.astype(np.int64) * 1000


def _naive_keys(plan: TablePlan, fingerprint: int, sums: list[int], flips: list[tuple[int, ...]]) -> list[set[int]]:
    """In each table, try the key, then the key with the bits of the smallest |sums| flipped."""
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
    """The first set flips nothing, all sets are distinct, and rank sums never decrease."""
    sets = _sets(flip_order(probes, prefix_bits))
    assert len(sets) == len(set(sets)) == probes
    assert sets[0] == ()
    assert [sum(ranks) for ranks in sets] == sorted(sum(ranks) for ranks in sets)
    assert all(len(set(ranks)) == len(ranks) and max(ranks, default=1) <= prefix_bits for ranks in sets)


def test_flips_begin_as_documented() -> None:
    """The first sets are {}, {1}, {2}, {3}, {1, 2}, {4}, {1, 3}: by rank sum, then fewer flips first."""
    assert _sets(flip_order(7, 24)) == [(), (1,), (2,), (3,), (1, 2), (4,), (1, 3)]


@pytest.mark.parametrize("probes", [1, 2, 50, 300, 1024])
def test_flips_agree_with_brute_force(probes: int) -> None:
    """Of all 1,024 subsets of 10 ranks, the cheapest are chosen, fewer flips first among equals."""
    subsets = [ranks for size in range(11) for ranks in combinations(range(1, 11), size)]
    cheapest = sorted((sum(ranks), len(ranks)) for ranks in subsets)[:probes]
    assert [(sum(ranks), len(ranks)) for ranks in _sets(flip_order(probes, 10))] == cheapest


def test_no_more_probes_than_there_are_keys() -> None:
    """A key of 8 bits has 256 values, each of which is tried once."""
    sets = _sets(flip_order(4096, 8))
    assert len(sets) == len(set(sets)) == 256


@pytest.mark.parametrize(
    ("tables", "prefix_bits", "probes"), [(8, 12, 64), (3, 10, 7), (5, 9, 512), (1, 8, 1), (8, 10, 128), (2, 8, 1000)]
)
def test_probed_keys_are_those_of_the_naive_probing(tables: int, prefix_bits: int, probes: int) -> None:
    """The keys looked up are exactly those of a naive implementation, each once, table by table."""
    plan = TablePlan(tables, prefix_bits)
    fingerprints, sums = _random(1, 30)
    keys = probe_keys(plan, fingerprints, sums, probes)
    flips = _sets(flip_order(probes, prefix_bits))
    assert keys.shape == (30, tables * min(probes, 2**prefix_bits))
    for i, row in enumerate(keys.reshape(30, tables, -1).tolist()):
        tried = _naive_keys(plan, int(fingerprints[i]), sums[i].tolist(), flips)
        assert [sorted(own) for own in row] == [
            sorted(table << 28 | key for key in tried[table]) for table in range(tables)
        ]


def test_keys_come_in_the_order_of_the_flips() -> None:
    """In each table the own key comes first, followed by one key for each set of flips, in their order."""
    plan = TablePlan(4, 12)
    fingerprints, sums = _random(2, 20)
    flips = _sets(flip_order(40, 12))
    rows = probe_keys(plan, fingerprints, sums, 40).reshape(20, 4, 40).tolist()
    for i, row in enumerate(rows):
        for table, own in enumerate(row):
            one_by_one = [
                _naive_keys(plan, int(fingerprints[i]), sums[i].tolist(), [ranks])[table].pop() for ranks in flips
            ]
            assert own == [table << 28 | key for key in one_by_one]


def test_likeliest_key_comes_first() -> None:
    """In each table the article's own key comes first, then the one with its most volatile bit flipped."""
    plan = TablePlan(1, 8)
    sums = np.full((1, 64), 100, np.int64)
    sums[0, 60] = 1
    assert probe_keys(plan, np.array([0], np.uint64), sums, 2).tolist() == [[0, 1 << (60 - 56)]]


def test_own_keys_are_the_first_of_each_table() -> None:
    """The keys an entry is indexed under are those that a copy with the same fingerprint tries first."""
    plan = TablePlan(5, 12)
    fingerprints, sums = _random(6, 100)
    first = probe_keys(plan, fingerprints, sums, 16).reshape(100, 5, 16)[:, :, 0]
    assert (first == table_keys(plan.prefixes(fingerprints))).all()


def test_no_articles_look_up_nothing() -> None:
    """An empty batch probes nothing."""
    keys = probe_keys(TablePlan(8, 12), np.empty(0, np.uint64), np.empty((0, 64), np.int64), 128)
    assert keys.shape == (0, 8 * 128)


def test_table_keys_are_table_and_prefix() -> None:
    """A key is the table's number shifted by 28 bits, plus the prefix."""
    prefixes = np.array([[5, 6, 7]], np.uint64)
    assert table_keys(prefixes).tolist() == [[5, 1 << 28 | 6, 2 << 28 | 7]]
