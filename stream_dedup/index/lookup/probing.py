"""Which keys of the SimHash tables to look up: the likeliest first.

Knows bit volatility (Sood and Loguinov, CIKM 2011); knows nothing of posting lists.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.simhash import BITS
from stream_dedup.index.lookup.plan import TablePlan, rotate_left

_TABLE_SHIFT = np.uint64(28)  # bits of the longest prefix
_STEADY = np.iinfo(np.int64).max  # no bit costs so much
TABLE_KEY_BITS = 33  # of a table's number, at most 31, and a prefix


@cache
def flip_order(probes: int, prefix_bits: int) -> I64:
    """Return which bits to flip in each probe, as ranks of volatility, -1 where unused, shape (probes, most flips).

    Sums near zero flip first (Sood and Loguinov 2011). The smallest |sums| of a text grow about linearly with
    their rank, so a set of flips costs the sum of its ranks (the most volatile bit has rank 1) and the sets are
    ordered by cost: {}, {1}, {2}, {3}, {1, 2}, {4}, {1, 3}, ... Equal costs: fewer flips first.
    """
    sets: list[tuple[int, ...]] = []
    cost = 0
    while len(sets) < min(probes, 2**prefix_bits):
        sets += sorted(_distinct_parts(cost, prefix_bits), key=len)
        cost += 1
    sets = sets[:probes]
    order = np.full((len(sets), max(1, *(len(flips) for flips in sets))), -1, np.int64)
    for row, flips in enumerate(sets):
        order[row, : len(flips)] = [rank - 1 for rank in flips]
    return order


def _distinct_parts(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Yield the sets of distinct numbers from 1 to `largest` that add up to `total`."""
    if total == 0:
        yield ()
    for part in range(min(total, largest), 0, -1):
        for rest in _distinct_parts(total - part, part - 1):
            yield (part, *rest)


def probe_keys(plan: TablePlan, fingerprints: U64, sums: I64, probes: int) -> U64:
    """Return the keys to look up for each article, `table << 28 | prefix`, table by table, the likeliest first.

    Args:
        plan: the tables.
        fingerprints: shape (n,).
        sums: bit sums, shape (n, 64).
        probes: keys tried per table.

    Returns:
        Keys, shape (n, tables * probes); where a prefix has fewer keys than `probes`, all of them.
    """
    return _probe(fingerprints, np.abs(sums), plan.rotations(), plan.prefix_bits, flip_order(probes, plan.prefix_bits))


def table_keys(prefixes: U64) -> U64:
    """Return `table << 28 | prefix` for each prefix, shape (n, tables)."""
    tables = np.arange(prefixes.shape[1], dtype=np.uint64)
    return (tables << _TABLE_SHIFT) | prefixes


@kernel
def _probe(fingerprints: U64, volatility: I64, rotations: U64, prefix_bits: int, order: I64) -> U64:
    articles, tables = len(fingerprints), len(rotations)
    keys = np.empty((articles, tables * len(order)), np.uint64)
    most = max(1, order.max() + 1)  # bits that are ever flipped, the most volatile
    flip = np.empty(most, np.uint64)
    costs = np.empty(most, np.int64)
    for i in range(articles):
        used = 0
        for table in range(tables):
            rotation = rotations[table]
            prefix = rotate_left(fingerprints[i], rotation) >> np.uint64(BITS - prefix_bits)
            costs[:] = _STEADY
            for place in range(prefix_bits):
                # Place 0 is the lowest bit of the key: bit BITS - prefix_bits of the rotated fingerprint.
                cost = volatility[i, (BITS - prefix_bits + place - np.int64(rotation)) % BITS]
                if cost < costs[most - 1]:
                    _insert_by_cost(costs, flip, cost, np.uint64(1) << np.uint64(place))
            for probe in range(len(order)):
                key = prefix
                for step in range(order.shape[1]):
                    if order[probe, step] < 0:
                        break
                    key ^= flip[order[probe, step]]
                keys[i, used] = (np.uint64(table) << _TABLE_SHIFT) | key
                used += 1
    return keys


@kernel
def _insert_by_cost(costs: I64, flip: U64, cost: int, mask: np.uint64) -> None:
    """Insert a bit in ascending order of cost, after those of the same cost, in place of the last."""
    place = len(costs) - 1
    while place > 0 and costs[place - 1] > cost:
        costs[place], flip[place] = costs[place - 1], flip[place - 1]
        place -= 1
    costs[place], flip[place] = cost, mask
