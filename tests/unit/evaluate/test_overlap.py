"""The overlaps found are exactly those found with sets of plain strings."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup import Article
from stream_dedup.evaluate.labelled import LabelledArticle, LabelledSet
from stream_dedup.evaluate.overlap import OVERLAPS_FROM, distinct, overlapping, with_overlaps

_STORY = "图书馆昨日向市民开放首日接待读者一万二千人次读者说这里比旧馆大一倍"
_OTHER = "今夜有雷阵雨气温下降六到八度请注意添衣并关好门窗以防雨水进屋"


def plain_pairs(bodies: list[str], least: float) -> list[list[int]]:
    """Return the pairs that overlap according to plain sets of substrings."""
    letters = ["".join(character for character in body if character.isalnum()) for body in bodies]
    grams = [{text[i : i + 5] for i in range(max(1, len(text) - 4))} if text else set() for text in letters]
    return [
        [a, b]
        for a, b in combinations(range(len(bodies)), 2)
        if len(grams[a] & grams[b]) >= max(1, least * min(len(grams[a]), len(grams[b])))
    ]


@given(
    st.lists(st.text(alphabet="甲乙丙，", min_size=1, max_size=30), max_size=8),
    st.sampled_from([0.1, 0.35, 0.5, 1.0]),
)
def test_the_pairs_are_those_of_plain_sets(bodies: list[str], least: float) -> None:
    """The pairs are the same for any texts and bound, including short and equal texts and pure punctuation."""
    assert overlapping(bodies, least).tolist() == plain_pairs(bodies, least)


def test_more_texts_than_a_block_of_the_product() -> None:
    """Texts in different blocks are compared too, such as the first and last of 1,300."""
    bodies = [f"第{number:05d}号公告第{number:05d}条" for number in range(1_300)]
    bodies[-1] = bodies[0]
    assert [0, 1_299] in overlapping(bodies, 1.0).tolist()


def test_of_texts_that_overlap_the_first_stays() -> None:
    """An article is left out only if it overlaps one that was kept, not if it overlaps one that was left out."""
    first, last = _STORY, _OTHER
    middle = _STORY[-20:] + _OTHER[:20]
    articles = [Article(name, body) for name, body in zip("abc", (first, middle, last), strict=True)]
    assert plain_pairs([first, middle, last], OVERLAPS_FROM) == [[0, 1], [1, 2]]
    assert [article.id for article in distinct(articles)] == ["a", "c"]


def test_only_pairs_that_labels_do_not_explain_are_noted() -> None:
    """Copies within a cluster are not overlaps; overlaps noted before are kept."""
    bodies = {"a": _STORY, "b": _STORY, "c": _STORY, "d": _OTHER}
    clusters = {"a": "one", "b": "one", "c": "two", "d": "three"}
    articles = [LabelledArticle(Article(name, body), clusters[name]) for name, body in bodies.items()]
    noted = with_overlaps(LabelledSet("case", articles, np.array([[1, 3]])))
    assert noted.overlapping.tolist() == [[0, 2], [1, 2], [1, 3]]
