"""Guesses which articles will turn out to be copies, before anything is looked up: this only saves time.

Knows landmarks seen recently; knows nothing of the index, of thresholds or of how a guess is used.
"""

import numpy as np

from stream_dedup.arrays import U64, Bool
from stream_dedup.compiled.kernel import kernel
from stream_dedup.index.lookup.sharing import FIRST_LANDMARKS

_SLOTS = 1 << 21  # landmarks that are remembered: those of a few hundred thousand articles, 16 MB


class CopyPredictor:
    """Remembers landmarks, each until another one takes its slot. Use from one thread at a time."""

    def __init__(self) -> None:
        self._seen: U64 = np.zeros(_SLOTS, np.uint64)

    def copies(self, landmarks: U64) -> Bool:
        """Tell which articles have at least half of their first landmarks seen before, shape (n,), and remember these.

        Args:
            landmarks: landmarks of the articles, ascending, padded with 0, shape (n, most).
        """
        return _copies(self._seen, landmarks)


@kernel
def _copies(seen: U64, landmarks: U64) -> Bool:
    # The lowest bits are spread evenly even though the hashes are the smallest ones.
    lowest = np.uint64(len(seen) - 1)
    guessed = np.zeros(len(landmarks), np.bool_)
    for i in range(len(landmarks)):
        marks = known = 0
        for mark in landmarks[i, :FIRST_LANDMARKS]:
            if mark != 0:
                slot = mark & lowest
                marks += 1
                known += seen[slot] == mark
                seen[slot] = mark
        guessed[i] = known > 0 and 2 * known >= marks
    return guessed
