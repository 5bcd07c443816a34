"""Times are published as Python's own formatting writes them."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.article import EARLIEST_MS, LATEST_MS
from stream_dedup.output_fields import iso

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
