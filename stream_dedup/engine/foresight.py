"""Which articles will probably turn out to be copies, told before anything is looked up: a guess that only saves time.

Knows landmarks that came lately; knows nothing of the index, of thresholds or of what becomes of a guess.
"""

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled.hashing import U64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.index.lookup.sharing import FIRST_LANDMARKS

_SLOTS = 1 << 21  # landmarks that are kept in mind: those of some hundred thousand articles, 16 MB


class Foresight:
    """Keeps landmarks in mind, each until another one comes to its slot. One thread at a time."""

    def __init__(self) -> None:
        self._seen: U64 = np.zeros(_SLOTS, np.uint64)

    def copies(self, landmarks: U64) -> NDArray[np.bool_]:
        """Tell of which articles at least half of the first landmarks came before, shape (n,), and keep them in mind.

        Args:
            landmarks: ascending, padded by 0, shape (n, most).
        """
        return _copies(self._seen, landmarks)


@kernel
def _copies(seen: U64, landmarks: U64) -> NDArray[np.bool_]:
    # The lowest bits of the smallest hashes are spread as those of any.
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
