"""The K-gram improved Jaccard matches the paper's worked example and a plain implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plain_measures import kgram_improved, similarities

_TEXTS = st.lists(st.text("天地玄黄", max_size=30), min_size=2, max_size=5)


def test_worked_example_of_the_paper() -> None:
    """X = abcabc123, Y = 123abc, K = 3: (7/8 x 3 + 4/7 x 2) / 5 = 0.753571."""
    (similarity,) = similarities("chars/3-grams/kgram-improved", [["abcabc123"], ["123abc"]])[:1, 1]
    assert similarity == pytest.approx((7 / 8 * 3 + 4 / 7 * 2) / 5)
    assert similarity == pytest.approx(0.753571, abs=5e-7)


@given(_TEXTS, st.integers(2, 7))
def test_agrees_with_a_plain_version(texts: list[str], k: int) -> None:
    """For random texts, similarities equal those of the formula written in plain Python."""
    expected = np.array([[kgram_improved(x, y, k) for y in texts] for x in texts])
    found = similarities(f"chars/{k}-grams/kgram-improved", [[text] for text in texts])
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_single_shared_gram_gives_1() -> None:
    """It is normalised by the shared K-grams, so a single one, once in each of two equally long texts, gives 1."""
    assert similarities("chars/3-grams/kgram-improved", [["甲乙丙天地玄丁戊己"], ["庚辛壬癸天地玄子丑"]])[0, 1] == 1


def test_nothing_shared_gives_0() -> None:
    """Texts without a common K-gram have similarity 0."""
    assert similarities("chars/2-grams/kgram-improved", [["天地玄黄"], ["黄玄地天"]])[0, 1] == 0
