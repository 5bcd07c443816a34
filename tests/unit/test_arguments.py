"""Errors for invalid articles and withdrawals name the field, its value and what is expected."""

import re
from datetime import UTC, datetime
from enum import StrEnum

import numpy as np
import pytest

from stream_dedup import Article, Deduplicator
from stream_dedup.article import Origin, Withdrawal


@pytest.mark.parametrize("field", ["body", "title", "url", "source", "scope"])
@pytest.mark.parametrize(("value", "kind"), [(5, "int"), (None, "NoneType"), (b"text", "bytes")])
def test_field_that_is_no_text_is_named(field: str, value: object, kind: str) -> None:
    """The error names the field, the article, the value and its type."""
    said = f"{field} of the article 'n-1' is {value!r}, of type {kind}: it must be a string (str)"
    with pytest.raises(TypeError, match=f"^{re.escape(said)}$"):
        Article(**{"id": "n-1", "body": "正文", field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [lambda name: Article(name, "正文"), Withdrawal], ids=["article", "withdrawal"])
def test_id_that_is_no_text_is_told(make: type[Withdrawal], request: pytest.FixtureRequest) -> None:
    """The article has no other name then."""
    kind = request.node.callspec.id
    with pytest.raises(TypeError, match=f"^id of an {kind}|a {kind} is 5, of type int: it must be a string"):
        make(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", ["2024-05-01", 1.5, True, datetime(2024, 5, 1, tzinfo=UTC)], ids=lambda value: type(value).__name__
)
def test_time_that_is_no_whole_number_is_told(value: object) -> None:
    """The error says what a time must be."""
    with pytest.raises(
        TypeError, match=r"^published_ms of the article 'n-1' .*: it must be a whole number, milliseconds since"
    ):
        Article("n-1", "正文", published_ms=value)  # type: ignore[arg-type]


class _Outlet(StrEnum):
    FIRST, SECOND = "甲报", "乙报"


def test_values_may_be_of_numpy_or_of_an_enumeration() -> None:
    """As they occur in the columns of a table: articles with them are judged and stored like any others."""
    text = "今天上午，市气象台发布暴雨蓝色预警信号，预计未来六小时城区将有五十毫米以上降雨，请注意防范。"
    articles = [
        Article(np.str_(f"n-{place}"), text, source=outlet, published_ms=time, origin=Origin("in", *numbers))
        for place, (outlet, time, numbers) in enumerate(
            zip(_Outlet, np.array([7, 8]), np.array([[0, 1, 7], [0, 2, 8]]), strict=True)
        )
    ]
    assert [type(value) for value in (articles[0].id, articles[0].source, articles[0].published_ms)] == [str, str, int]
    with Deduplicator() as engine:
        decisions = engine.add_batch(articles)
    assert [decision.unique for decision in decisions] == [True, False]


@pytest.mark.parametrize("blank", [" ", "\t", "\u3000"])
def test_blank_url_is_none(blank: str) -> None:
    """Two articles with it are not the same one, as if they came in by Kafka, and blanks around a URL do not count."""
    assert Article("n-1", "正文", url=blank).url == Withdrawal("n-1", blank).url == ""
    assert Article("n-1", "正文", url=f"{blank}http://x/1{blank}").url == "http://x/1"


@pytest.mark.parametrize("value", [10**30, -(10**30), 253_402_300_800_000, -2_208_988_800_001])
def test_time_beyond_what_can_be_stored_is_told(value: int) -> None:
    """The error comes when the article is made, not amid a batch, for instance if times are in microseconds."""
    with pytest.raises(
        ValueError, match=f"^published_ms of the article 'n-1' is {value}, not between the years 1900 and 10000$"
    ):
        Article("n-1", "正文", published_ms=value)


def test_times_go_from_1900_to_10000() -> None:
    """The first and last valid milliseconds, by Python's own calendar."""
    first = datetime(1900, 1, 1, tzinfo=UTC).timestamp() * 1000
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp() * 1000
    assert [Article("n-1", "正文", published_ms=int(time)).published_ms for time in (first, last)] == [first, last]


def test_origin_is_one() -> None:
    """A topic's name is not an origin."""
    with pytest.raises(
        TypeError, match=r"^origin of the withdrawal 'n-1' is 'articles.in'.*: it must be an Origin or None"
    ):
        Withdrawal("n-1", origin="articles.in")  # type: ignore[arg-type]


def test_origin_has_whole_numbers() -> None:
    """The error names the field; an origin has no id of its own."""
    with pytest.raises(TypeError, match=r"^partition of an origin is 'x', of type str: it must be a whole number"):
        Origin("in", "x", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^offset of an origin is None, of type NoneType: it must be a whole number$"):
        Origin("in", 0, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^topic of an origin is 5, of type int: it must be a string"):
        Origin(5, 0, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["url", "source"])
def test_what_is_stored_can_be_encoded(field: str) -> None:
    """A lone surrogate in a URL or source is reported when the article is made, not amid a batch."""
    with pytest.raises(
        ValueError, match=rf"^{field} of the article 'n-1' is 'a.ud83d', .*: it cannot be encoded as UTF-8"
    ):
        Article(**{"id": "n-1", "body": "正文", field: "a\ud83d"})  # type: ignore[arg-type]


def test_texts_that_are_compared_may_hold_half_an_emoji() -> None:
    """Crawlers cut texts in the middle of surrogate pairs."""
    assert Article("n-1", "正文\ud83d", "标题\ud83d").title == "标题\ud83d"


def test_long_values_are_cut() -> None:
    """A message stays on one line, whatever the value."""
    with pytest.raises(TypeError) as told:
        Article("n-1", ["正文" * 1000])  # type: ignore[arg-type]
    assert len(str(told.value)) < 200
