"""The filter of word beginnings misses no word, and rules out most positions of a text."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.compiled.hashing import code_points
from stream_dedup.fingerprint.places import gazetteer, place_names
from stream_dedup.text.pair_filter import may_be_first_pair, pair_filter


@given(st.lists(st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs"]), min_size=2, max_size=5)))
def test_no_word_is_missed(words: list[str]) -> None:
    """For any words, the first two characters of each are recognised as a possible beginning."""
    starts = np.cumsum([0, *map(len, words)])[:-1]
    filled = pair_filter(code_points("".join(words)).copy(), starts, 64)
    pairs = [code_points(word[:2]) for word in words]
    assert all(may_be_first_pair(one, other, filled) for one, other in pairs)


def test_no_name_of_a_place_is_missed_and_little_else_is_looked_for(bodies: list[str]) -> None:
    """All names pass, of the dictionary and others; in real texts, at most a tenth of positions."""
    names, filled = place_names(), gazetteer().begins
    assert {"北京", "上海", "合肥", "石家庄", "乌克兰", "哈萨克斯"} <= {*names}
    assert {len(name) for name in names} == {2, 3, 4}
    begins = [code_points(name[:2]) for name in names]
    assert all(may_be_first_pair(one, other, filled) for one, other in begins)
    pairs = [pair for body in bodies for pair in pairwise(code_points(body))]
    assert sum(may_be_first_pair(one, other, filled) for one, other in pairs) < len(pairs) / 10
