"""How many pairs have which similarity; those of positive pairs are also kept one by one.

Knows bins of similarity and blocks of pairs; knows nothing of scores.
"""

from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import F32, I16, I64
from stream_dedup.evaluate.quality.forest import Forest
from stream_dedup.evaluate.quality.truth import Truth

# Multiples of 1/1000, and of 1/32, 1/64 and 1/128 (bits or hash functions), are all bin edges.
BINS = 16_000
_ROUNDING = 0.05  # of a bin: the most by which single precision makes a similarity too small


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of the pairs of some articles (rows) with all articles after them.

    Attributes:
        truth: the labels.
        rows: number of articles whose pairs are counted.
        pairs: number of pairs in each bin, of articles of one scope that do not overlap, shape (BINS + 1,).
        positives: bin of each positive pair, -1 if it is not counted yet, shape (p,).
        forest: what these pairs connect.
    """

    truth: Truth
    rows: int
    pairs: I64
    positives: I64
    forest: Forest

    @classmethod
    def empty(cls, truth: Truth) -> "Tally":
        """Return a tally without pairs."""
        unknown = np.full(len(truth.positives), -1, np.int64)
        return cls(truth, 0, np.zeros(BINS + 1, np.int64), unknown, Forest.empty(truth.size))

    def add(self, start: int, block: F32) -> "Tally":
        """Return the tally with one more block of rows.

        Args:
            start: index of its first row.
            block: similarities of the rows to all, shape (rows, n).

        Raises:
            ValueError: a similarity is not a number between 0 and 1.
        """
        bins = _binned(block)
        bins[_of_block(self.truth.overlapping, start, len(bins))] = -1
        bins[self.truth.scopes != self.truth.scopes[start : start + len(bins), None]] = -1
        later = np.arange(self.truth.size) > np.arange(start, start + len(bins))[:, None]
        bins[~later] = -1
        counted = np.bincount(bins.ravel() + 1, minlength=BINS + 2)[1:]
        positives = self.positives.copy()
        first = self.truth.positives[:, 0]
        at = slice(*np.searchsorted(first, [start, start + len(bins)]))
        positives[at] = bins[_of_block(self.truth.positives, start, len(bins))]
        return Tally(self.truth, self.rows + len(bins), self.pairs + counted, positives, self.forest.add(start, bins))

    def merge(self, other: "Tally") -> "Tally":
        """Return the tally of the rows of both, which must have none in common."""
        return Tally(
            self.truth,
            self.rows + other.rows,
            self.pairs + other.pairs,
            np.maximum(self.positives, other.positives),
            self.forest.merge(other.forest),
        )


def bin_of(similarity: float) -> int:
    """Return the first bin in which all similarities are at least this one."""
    return int(np.ceil(similarity * BINS - _ROUNDING))


def _binned(block: F32) -> I16:
    if not (block.min(initial=0.0) >= 0.0 and block.max(initial=0.0) <= 1.0):  # false for NaN
        raise ValueError(f"similarities range from {block.min()} to {block.max()}; they must be between 0 and 1")
    return (block * np.float32(BINS) + np.float32(_ROUNDING)).astype(np.int16)


def _of_block(pairs: I64, start: int, rows: int) -> tuple[I64, I64]:
    """Return the pairs whose first article is a row of a block, as indices into the block."""
    first, last = np.searchsorted(pairs[:, 0], [start, start + rows])
    return pairs[first:last, 0] - start, pairs[first:last, 1]
