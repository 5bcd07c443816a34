"""What the API costs the stream is estimated without bias, however noisy the rates of single turns are."""

from itertools import pairwise
from math import log

import numpy as np
import pytest

from tests.benchmarks.turns import ASKED, STOPPED, Rates, Turn


def test_ratio_of_noisy_rates_is_unbiased() -> None:
    """Once twice as fast and once half as fast is as fast, with the error of both logarithms."""
    articles, edges = [1000, 2000, 2000, 1000], [*range(0, 401, 100)]
    spans = zip(pairwise(edges), articles, strict=True)
    stamps = np.concatenate([np.repeat(np.arange(1000 * a, 1000 * b, 1000), n // 100) for (a, b), n in spans])
    turns = [Turn(way, a, b, 0.0, 0.0) for way, (a, b) in zip([STOPPED, ASKED] * 2, pairwise(edges), strict=True)]
    ratio = Rates(stamps.tolist()).ratio(
        ASKED, [dict(zip([STOPPED, ASKED], turns[i : i + 2], strict=True)) for i in (0, 2)]
    )
    assert ratio.mean == pytest.approx(1.0, rel=0.01)
    assert ratio.error == pytest.approx(log(2), rel=0.02)
