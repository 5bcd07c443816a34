"""Progress and remaining time in words."""

import pytest

from stream_dedup.observe.remaining_time import RemainingTime


def test_nothing_done_tells_no_time() -> None:
    """There is no rate yet."""
    assert RemainingTime("records", lambda: 0.0).left(400_000) == "400,000 of 400,000 records left"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(28, "about 12 s"), (280, "about 2 min"), (28_000, "about 3 h")],
)
def test_rate_so_far_tells_how_long_it_takes(seconds: float, told: str) -> None:
    """After 280,000 of 400,000 records, the other 120,000 take three sevenths of the time so far."""
    now = 100.0
    advance = RemainingTime("records", lambda: now)
    advance.left(400_000)
    now += seconds
    assert advance.left(120_000) == f"120,000 of 400,000 records left, {told}"


def test_what_grows_meanwhile_is_taken_for_all() -> None:
    """A changelog that another process is writing to may have more left than at first."""
    advance = RemainingTime("records", lambda: 0.0)
    advance.left(10)
    assert advance.left(30).startswith("30 of 30 records left")
