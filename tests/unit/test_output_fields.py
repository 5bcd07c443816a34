"""Times are published as Python's own formatting writes them, and what is not known as null."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from stream_dedup import Article, Deduplicator
from stream_dedup.article import EARLIEST_MS, LATEST_MS
from stream_dedup.output_fields import iso, link_fields

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.integers(EARLIEST_MS, LATEST_MS - 1))
def test_time_is_that_of_python(milliseconds: int) -> None:
    """This includes times before 1970, whose remainders must not be negative."""
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    for precision in ("milliseconds", "seconds"):
        assert iso(milliseconds, precision) == moment.isoformat(timespec=precision).replace("+00:00", "Z")


def test_time_out_of_bounds_is_unknown() -> None:
    """Outside of the years 1900 to 9999 a time is an error of whoever wrote it."""
    assert [iso(milliseconds) for milliseconds in (None, EARLIEST_MS - 1, LATEST_MS)] == [None] * 3


def test_unknown_fields_of_a_link_are_null() -> None:
    """An article need have neither a source nor a URL, nor a time."""
    with Deduplicator() as engine:
        _, decision = engine.add_batch(
            [Article("a", "社区图书馆本月起延长开放时间。"), Article("b", "社区图书馆本月起延长开放时间。")]
        )
    assert decision.link is not None
    fields = link_fields(decision, decision.link, 0)
    unknown = {"source", "url", "topic", "partition", "offset", "published_at", "received_at"}
    assert {name for name, value in fields.items() if value in {None, ""}} == unknown
    assert {fields[name] for name in unknown} == {None}
