"""The experiment on replaced characters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.evaluate.replaced import (
    SHARES,
    ReplacedOptions,
    long_texts,
    replacement_experiment,
    similarities_to_edited,
    with_replaced,
)
from tests.unit.evaluate.fakes import Table

_HAN = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=20, max_size=200)


@given(_HAN, st.sampled_from(SHARES))
def test_as_many_characters_are_replaced(text: str, share: float) -> None:
    """The share determines how many characters change, and the new ones occur nowhere in the text."""
    edited = with_replaced(text, share, np.random.default_rng(1))
    changed = [new for old, new in zip(text, edited, strict=True) if old != new]
    assert len(changed) == round(share * len(text))
    assert not set(changed) & set(text)


def test_shares_are_those_of_the_study() -> None:
    """5% to 95% in steps of 5."""
    assert [round(100 * share) for share in SHARES] == list(range(5, 100, 5))


def test_texts_are_cut_and_joined() -> None:
    """Long bodies are cut to the length; short ones are joined until they reach it, the longest first."""
    options = ReplacedOptions(texts=3, characters=4)
    assert long_texts(["甲", "乙乙", "丙丙丙丙丙", "丁丁丁"], options) == ["丙丙丙丙", "丁丁丁乙"]
    assert long_texts(["丙" * 9] * 9, options) == ["丙丙丙丙"] * 3
    assert long_texts(["丙" * 9], ReplacedOptions(texts=0, characters=4)) == []


def test_similarity_is_that_to_the_original() -> None:
    """The result is the first row of the measure, without the text itself, for each K."""
    row = tuple(round(1 - place / 100, 2) for place in range(20))
    found = similarities_to_edited({2: Table("two", (row,) * 20)}, "新闻" * 20, (1, 1))
    assert found.shape == (1, 19)
    assert found[0] == pytest.approx(row[1:])


def test_correlation_is_pearsons() -> None:
    """If the similarity equals the share kept, it is 1; if it is constant, 0; for noise, what numpy computes."""
    kept = 1 - np.array(SHARES, np.float32)
    noise = np.random.default_rng(1).random(19).astype(np.float32)
    curves = replacement_experiment([2, 3, 4], ["新闻"], [np.stack([kept, np.full(19, 0.5, np.float32), noise])]).curves
    expected = np.corrcoef(1 - np.array(SHARES), noise)[0, 1]
    assert [curve.correlation for curve in curves] == pytest.approx([1.0, 0.0, expected])


def test_curves_are_means_over_texts() -> None:
    """Two texts with similarities 1 and 0.5 average 0.75."""
    rows = [np.full((1, 19), value, np.float32) for value in (1.0, 0.5)]
    replaced = replacement_experiment([2], ["新闻", "消息"], rows)
    assert replaced.curves[0].similarity == pytest.approx((0.75,) * 19)
    assert (replaced.texts, replaced.characters) == (2, 2)
