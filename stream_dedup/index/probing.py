"""Which keys of the SimHash tables to look up: the likeliest first, and only those that may be occupied.

Knows bit volatility (Sood and Loguinov, CIKM 2011) and occupancy bitmaps; knows nothing of posting lists.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U64
from stream_dedup.index.plan import TablePlan, rotate_left

_TABLE_SHIFT = np.uint64(32)
TABLE_KEYS = np.uint64((1 << 37) - 1)  # the bits that 32 tables of 32-bit prefixes take


@cache
def flip_order(probes: int, prefix_bits: int) -> I64:
    """Return which bits to flip in each probe, as ranks of volatility, -1 where unused, shape (probes, most flips).

    Sums near zero flip first (Sood and Loguinov 2011). The smallest |sums| of a text grow about linearly with
    their rank, so a set of flips costs the sum of its ranks (the most volatile bit has rank 1) and the sets are
    ordered by cost: {}, {1}, {2}, {1, 2}, {3}, {1, 3}, {4}, ... Equal costs: fewer flips first.
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


class Occupancy:
    """A bit for each key of each table: whether it may hold entries. Answers most probes without the store.

    Args:
        plan: the tables; 2^prefix_bits bits each.
    """

    def __init__(self, plan: TablePlan) -> None:
        self.bits = np.zeros((plan.tables, max(1, (1 << plan.prefix_bits) // 64)), np.uint64)

    def mark(self, prefixes: U64) -> None:
        """Mark keys as occupied, shape (n, tables)."""
        _mark(self.bits, prefixes)

    def mark_keys(self, keys: Iterable[bytes]) -> None:
        """Mark stored keys, `table << 32 | prefix` as 8 bytes, big-endian, as occupied, whatever the bits above say."""
        keys = iter(keys)
        while chunk := b"".join(islice(keys, 1 << 16)):
            numbers = np.frombuffer(chunk, ">u8").astype(np.uint64)
            _mark_numbers(self.bits, numbers)

    @contextmanager
    def including(self, prefixes: U64) -> Iterator[None]:
        """Count keys as occupied for a while: those of the batch at hand, whose articles can match each other."""
        before = _marked(self.bits, prefixes)
        _mark(self.bits, prefixes)
        try:
            yield
        finally:
            _unmark(self.bits, prefixes, before)


class Occupancies:
    """An occupancy for each generation, and one for all of them together.

    Args:
        plan: the tables.
    """

    def __init__(self, plan: TablePlan) -> None:
        self._plan = plan
        self._parts: dict[int, Occupancy] = {}
        self.all = Occupancy(plan)

    def mark(self, generation: int, prefixes: U64) -> None:
        """Mark keys as occupied in a generation, shape (n, tables)."""
        self._part(generation).mark(prefixes)
        self.all.mark(prefixes)

    def mark_keys(self, generation: int, keys: Iterable[bytes]) -> None:
        """Mark the stored keys of a generation; see `Occupancy.mark_keys`."""
        part = self._part(generation)
        part.mark_keys(keys)
        self.all.bits |= part.bits

    def keep(self, generations: Sequence[int]) -> None:
        """Forget generations that have expired."""
        expired = [generation for generation in self._parts if generation not in generations]
        for generation in expired:
            del self._parts[generation]
        if expired:
            self.all.bits[:] = 0
            for part in self._parts.values():
                self.all.bits |= part.bits

    def _part(self, generation: int) -> Occupancy:
        if generation not in self._parts:
            self._parts[generation] = Occupancy(self._plan)
        return self._parts[generation]


def probe_keys(plan: TablePlan, fingerprints: U64, sums: I64, probes: int, occupancy: Occupancy) -> tuple[I64, U64]:
    """Return the occupied keys to look up for each article.

    Args:
        plan: the tables.
        fingerprints: shape (n,).
        sums: bit sums, shape (n, 64).
        probes: keys tried a table.
        occupancy: which keys may hold entries.

    Returns:
        How many keys each article looks up, shape (n,), and the keys, `table << 32 | prefix`, article by article.
    """
    return _probe(
        fingerprints,
        np.abs(sums),
        plan.rotations(),
        plan.prefix_bits,
        flip_order(probes, plan.prefix_bits),
        occupancy.bits,
    )


def table_keys(prefixes: U64) -> U64:
    """Return `table << 32 | prefix` of prefixes, shape (n, tables)."""
    tables = np.arange(prefixes.shape[1], dtype=np.uint64)
    return (tables << _TABLE_SHIFT) | prefixes


@kernel
def _probe(
    fingerprints: U64, volatility: I64, rotations: U64, prefix_bits: int, order: I64, bits: U64
) -> tuple[I64, U64]:
    articles, tables = len(fingerprints), len(rotations)
    counts = np.zeros(articles, np.int64)
    keys = np.empty(articles * tables * 4 + len(order) * tables, np.uint64)
    used = 0
    flip = np.empty(prefix_bits, np.uint64)
    costs = np.empty(prefix_bits, np.int64)
    for i in range(articles):
        if used + len(order) * tables > len(keys):
            more = np.empty(2 * len(keys) + len(order) * tables, np.uint64)
            more[:used] = keys[:used]
            keys = more
        first = used
        for table in range(tables):
            rotation = rotations[table]
            prefix = rotate_left(fingerprints[i], rotation) >> np.uint64(64 - prefix_bits)
            for place in range(prefix_bits):
                # Place 0 is the lowest bit of the key: bit 64 - prefix_bits of the rotated fingerprint.
                bit = (64 - prefix_bits + place - np.int64(rotation)) % 64
                _insert_by_cost(costs, flip, place, volatility[i, bit], np.uint64(1) << np.uint64(place))
            for probe in range(len(order)):
                key = prefix
                for step in range(order.shape[1]):
                    if order[probe, step] < 0:
                        break
                    key ^= flip[order[probe, step]]
                if _is_set(bits, table, key):
                    keys[used] = (np.uint64(table) << _TABLE_SHIFT) | key
                    used += 1
        counts[i] = used - first
    return counts, keys[:used]


@kernel
def _insert_by_cost(costs: I64, flip: U64, used: int, cost: int, mask: np.uint64) -> None:
    place = used
    while place > 0 and costs[place - 1] > cost:
        costs[place], flip[place] = costs[place - 1], flip[place - 1]
        place -= 1
    costs[place], flip[place] = cost, mask


@kernel
def _is_set(bits: U64, table: int, prefix: np.uint64) -> bool:
    word = bits[table, np.int64(prefix >> np.uint64(6))]
    return bool((word >> (prefix & np.uint64(63))) & np.uint64(1))


@kernel
def _mark(bits: U64, prefixes: U64) -> None:
    for i in range(prefixes.shape[0]):
        for table in range(prefixes.shape[1]):
            prefix = prefixes[i, table]
            bits[table, np.int64(prefix >> np.uint64(6))] |= np.uint64(1) << (prefix & np.uint64(63))


@kernel
def _mark_numbers(bits: U64, keys: U64) -> None:
    for key in keys:
        prefix, table = key & np.uint64(0xFFFFFFFF), (key & TABLE_KEYS) >> _TABLE_SHIFT
        bits[np.int64(table), np.int64(prefix >> np.uint64(6))] |= np.uint64(1) << (prefix & np.uint64(63))


@kernel
def _marked(bits: U64, prefixes: U64) -> NDArray[np.bool_]:
    marked = np.empty(prefixes.shape, np.bool_)
    for i in range(prefixes.shape[0]):
        for table in range(prefixes.shape[1]):
            marked[i, table] = _is_set(bits, table, prefixes[i, table])
    return marked


@kernel
def _unmark(bits: U64, prefixes: U64, keep: NDArray[np.bool_]) -> None:
    for i in range(prefixes.shape[0]):
        for table in range(prefixes.shape[1]):
            if not keep[i, table]:
                prefix = prefixes[i, table]
                bits[table, np.int64(prefix >> np.uint64(6))] &= ~(np.uint64(1) << (prefix & np.uint64(63)))
