"""Removing links gives the same text as a regular expression."""

import re

from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.compiled.hashing import code_points
from stream_dedup.text.links import LINK_MARKS, may_link, without_links

_LINK = re.compile(r"(?:https?://|www\.)[!-~]+")
_PIECES = ["http", "https", "https://", "http://", "://", ":/", "www.", "ww", "w", "s", "h", ".", " ", "~", "见", "a"]
_TEXTS = st.lists(st.sampled_from(_PIECES)).map("".join)


@given(_TEXTS)
def test_each_link_becomes_a_blank(text: str) -> None:
    """From left to right, a link extends over visible ASCII; a prefix followed by nothing is not a link."""
    left = without_links(code_points(text).copy())
    assert left.tobytes().decode("utf-32-le") == _LINK.sub(" ", text)


@given(_TEXTS)
def test_no_text_with_a_link_is_missed(text: str) -> None:
    """If no character of a text may be part of a link's beginning, it contains none."""
    points = code_points(text).copy()
    marks = [place for place, character in enumerate(text) if character in LINK_MARKS]
    assert any(may_link(points, place) for place in marks) or not _LINK.search(text)
