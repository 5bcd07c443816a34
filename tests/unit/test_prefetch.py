"""Prefetching reads nothing, so any address and any kind of array is allowed."""

import numpy as np
import pytest

from stream_dedup.compiled.prefetch import prefetch


@pytest.mark.parametrize("kind", [np.uint64, np.int64, np.bool_])
def test_any_place_may_be_asked_for(kind: type[np.generic]) -> None:
    """Addresses far beyond an array, before it, or of an empty one are allowed; the array does not change."""
    words = np.ones(4, kind)
    for place in (0, 3, 4, 1 << 40, -(1 << 40)):
        prefetch(words, place)
        prefetch(words[:0], place)
    assert words.tolist() == [1] * 4
