"""The permuted SimHash tables: which bits make up each table's key, and what the plan guarantees.

Knows rotations of 64 bits (Manku, Jain and Das Sarma, WWW 2007); knows nothing of storage.
"""

from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import U64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.simhash import BITS


@dataclass(frozen=True, slots=True)
class TablePlan:
    """T tables; table t is keyed by the first bits of the fingerprint rotated left by 64 t / T.

    Attributes:
        tables: T.
        prefix_bits: bits of a key.
    """

    tables: int
    prefix_bits: int

    def rotations(self) -> U64:
        """Return by how many bits each table rotates, shape (tables,)."""
        return np.array([table * BITS // self.tables for table in range(self.tables)], np.uint64)

    def guaranteed_distance(self) -> int:
        """Return the largest d at which two fingerprints always share the key of some table.

        It is one less than the fewest bits that touch the keys of all tables: circular windows of `prefix_bits`
        are pierced greedily from each possible first bit, and the best start gives the optimum.
        """
        windows = [(int(rotation), self.prefix_bits) for rotation in self.rotations()]
        return min(_pierced_from(first, windows) for first in range(BITS)) - 1

    def prefixes(self, fingerprints: U64) -> U64:
        """Return the key of each fingerprint in each table, shape (n, tables)."""
        return _prefixes(fingerprints, self.rotations(), self.prefix_bits)


def _pierced_from(first: int, windows: list[tuple[int, int]]) -> int:
    """Return how many bits, starting with `first`, pierce all windows in one pass around the circle."""
    unpierced = sorted(
        ((start - first) % BITS, (start - first) % BITS + length - 1)
        for start, length in windows
        if (first - start) % BITS >= length
    )
    points, last = 1, -1
    for start, stop in sorted(unpierced, key=lambda window: window[1]):
        if start > last:
            points, last = points + 1, stop
    return points


@kernel
def _prefixes(fingerprints: U64, rotations: U64, prefix_bits: int) -> U64:
    keys = np.empty((len(fingerprints), len(rotations)), np.uint64)
    for i in range(len(fingerprints)):
        for table in range(len(rotations)):
            keys[i, table] = rotate_left(fingerprints[i], rotations[table]) >> np.uint64(BITS - prefix_bits)
    return keys


@kernel
def rotate_left(value: np.uint64, by: np.uint64) -> np.uint64:
    """Return a 64-bit word rotated left by 0 to 63 bits."""
    return (value << by) | (value >> ((np.uint64(64) - by) & np.uint64(63)))
