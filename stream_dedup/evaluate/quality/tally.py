"""How many pairs have which similarity; those of copies and their originals are also kept one by one.

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
        positives: number of these in each bin whose articles are copies of each other, shape (BINS + 1,).
        edited: bin of each pair of a copy and its original, -1 if it is not counted yet, shape (e,).
        forest: what these pairs connect.
    """

    truth: Truth
    rows: int
    pairs: I64
    positives: I64
    edited: I64
    forest: Forest

    @classmethod
    def empty(cls, truth: Truth) -> "Tally":
        """Return a tally without pairs."""
        none = np.zeros(BINS + 1, np.int64)
        unknown = np.full(len(truth.edited), -1, np.int64)
        return cls(truth, 0, none, none, unknown, Forest.empty(truth.size))

    def add(self, start: int, block: F32) -> "Tally":
        """Return the tally with one more block of rows.

        Args:
            start: index of its first row.
            block: similarities of the rows to all, shape (rows, n).

        Raises:
            ValueError: a similarity is not a number between 0 and 1.
        """
        truth, bins = self.truth, _binned(block)
        rows = slice(start, start + len(bins))
        bins[_of_block(truth.overlapping, rows)] = -1
        bins[truth.scopes != truth.scopes[rows, None]] = -1
        later = np.arange(truth.size) > np.arange(rows.start, rows.stop)[:, None]
        bins[~later] = -1
        copies = bins[truth.clusters == truth.clusters[rows, None]]
        edited = self.edited.copy()
        edited[_between(truth.edited, rows)] = bins[_of_block(truth.edited, rows)]
        return Tally(
            truth,
            self.rows + len(bins),
            self.pairs + _counts(bins.ravel()),
            self.positives + _counts(copies),
            edited,
            self.forest.add(start, bins),
        )

    def merge(self, other: "Tally") -> "Tally":
        """Return the tally of the rows of both, which must have none in common."""
        return Tally(
            self.truth,
            self.rows + other.rows,
            self.pairs + other.pairs,
            self.positives + other.positives,
            np.maximum(self.edited, other.edited),
            self.forest.merge(other.forest),
        )


def bin_of(similarity: float) -> int:
    """Return the first bin in which all similarities are at least this one."""
    return int(np.ceil(similarity * BINS - _ROUNDING))


def _binned(block: F32) -> I16:
    if not (block.min(initial=0.0) >= 0.0 and block.max(initial=0.0) <= 1.0):  # false for NaN
        raise ValueError(f"similarities range from {block.min()} to {block.max()}; they must be between 0 and 1")
    return (block * np.float32(BINS) + np.float32(_ROUNDING)).astype(np.int16)


def _counts(bins: I16) -> I64:
    """Return how many pairs are in each bin; those in none, -1, do not count."""
    return np.bincount(bins + 1, minlength=BINS + 2)[1:]


def _between(pairs: I64, rows: slice) -> slice:
    """Return where the pairs are whose first article is a row of a block."""
    return slice(*np.searchsorted(pairs[:, 0], [rows.start, rows.stop]))


def _of_block(pairs: I64, rows: slice) -> tuple[I64, I64]:
    """Return the pairs whose first article is a row of a block, as indices into the block."""
    found = pairs[_between(pairs, rows)]
    return found[:, 0] - rows.start, found[:, 1]
