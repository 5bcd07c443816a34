"""The table plan: the guaranteed distance holds for every pair, and is the largest possible."""

from itertools import combinations

import numpy as np
import pytest

from stream_dedup.arrays import U64, Bool
from stream_dedup.index.lookup.plan import TablePlan, rotate_left

_PLANS = [(8, 24), (4, 16), (16, 16), (3, 21), (5, 20), (2, 28), (1, 24), (7, 9), (32, 28), (12, 13)]


def _windows(plan: TablePlan) -> list[set[int]]:
    """Find the bits of each table's key by flipping every bit of a fingerprint."""
    singles = np.uint64(1) << np.arange(64, dtype=np.uint64)
    keys = plan.prefixes(singles)
    return [{bit for bit in range(64) if keys[bit, table]} for table in range(plan.tables)]


def _smallest_piercing(windows: list[set[int]], at_most: int) -> tuple[int, ...] | None:
    """Return the smallest set of bits that touches every window, if one of at most this size exists."""
    if not windows:
        return ()
    if at_most == 0:
        return None
    found: tuple[int, ...] | None = None
    for bit in sorted(windows[0]):
        rest = _smallest_piercing([window for window in windows if bit not in window], at_most - 1)
        if rest is not None and (found is None or len(rest) + 1 < len(found)):
            found, at_most = (bit, *rest), len(rest)
            if at_most == 0:
                break
    return found


def _flipped(distance: int) -> U64:
    """Return every set of `distance` flipped bits as a mask."""
    sets = combinations(range(64), distance)
    return np.array([sum(1 << bit for bit in bits) for bits in sets], np.uint64)


def _share_a_key(plan: TablePlan, fingerprint: np.uint64, flips: U64) -> Bool:
    keys, own = plan.prefixes(fingerprint ^ flips), plan.prefixes(np.array([fingerprint]))
    return np.asarray((keys == own).any(axis=1))


@pytest.mark.parametrize(("tables", "prefix_bits"), _PLANS)
def test_every_pair_within_the_guaranteed_distance_shares_a_key(tables: int, prefix_bits: int) -> None:
    """Exhaustive over all flips of up to 3 bits, 1 + 64 + 2,016 + 41,664 of them, of random fingerprints."""
    plan = TablePlan(tables, prefix_bits)
    fingerprint = np.random.default_rng(3).integers(0, 2**64, dtype=np.uint64)
    for distance in range(min(plan.guaranteed_distance(), 3) + 1):
        flips = _flipped(distance)
        assert _share_a_key(plan, fingerprint, flips).all()


def test_plan_of_16_tables_and_16_bits_guarantees_distance_3() -> None:
    """All 41,664 pairs at distance 3 share a key of 16 tables with 16 bits each."""
    plan = TablePlan(16, 16)
    flips = _flipped(3)
    assert plan.guaranteed_distance() == 3
    assert len(flips) == 41_664
    assert _share_a_key(plan, np.uint64(0x0123456789ABCDEF), flips).all()


@pytest.mark.parametrize(("tables", "prefix_bits"), _PLANS)
def test_guaranteed_distance_is_tight(tables: int, prefix_bits: int) -> None:
    """Some pair at one bit more than the guaranteed distance shares no key in any table."""
    plan = TablePlan(tables, prefix_bits)
    bits = _smallest_piercing(_windows(plan), plan.guaranteed_distance() + 1)
    assert bits is not None
    flips = np.array([sum(1 << bit for bit in bits)], np.uint64)
    assert not _share_a_key(plan, np.uint64(0xFEDCBA9876543210), flips).any()


@pytest.mark.parametrize(("tables", "prefix_bits"), _PLANS)
def test_guaranteed_distance_agrees_with_exhaustive_search(tables: int, prefix_bits: int) -> None:
    """No set of only as many bits as the guaranteed distance touches the keys of all tables."""
    plan = TablePlan(tables, prefix_bits)
    assert _smallest_piercing(_windows(plan), plan.guaranteed_distance()) is None


@pytest.mark.parametrize(("tables", "prefix_bits"), _PLANS)
def test_keys_are_windows_of_the_fingerprint(tables: int, prefix_bits: int) -> None:
    """Table t's key is the first bits of the fingerprint after rotating its 64 digits by 64 t / T."""
    plan = TablePlan(tables, prefix_bits)
    fingerprints = np.random.default_rng(4).integers(0, 2**64, 20, dtype=np.uint64)
    for fingerprint, keys in zip(fingerprints.tolist(), plan.prefixes(fingerprints).tolist(), strict=True):
        digits = f"{fingerprint:064b}" * 2
        starts = [table * 64 // tables for table in range(tables)]
        assert keys == [int(digits[start : start + prefix_bits], 2) for start in starts]


@pytest.mark.parametrize("by", [0, 1, 31, 32, 63])
def test_rotation_moves_the_first_bits_to_the_end(by: int) -> None:
    """Rotating left by b moves the first b of 64 digits to the end."""
    value = 0x0123456789ABCDEF
    digits = f"{value:064b}"
    assert rotate_left(np.uint64(value), np.uint64(by)) == int(digits[by:] + digits[:by], 2)
