"""The timeline of a cluster: intervals of a length that suits its span, each with what came in it."""

from datetime import UTC, datetime, timedelta

import pytest

from stream_dedup.ask.answers import TimelineInterval
from stream_dedup.ask.timeline import timeline_of

_BEGIN = datetime(2026, 10, 15, 8, 0, 30, tzinfo=UTC)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def test_articles_are_counted_by_interval() -> None:
    """An interval begins at a whole minute; it has its articles, and their sources, each once."""
    seconds, told = timeline_of(
        [
            (_ms(_BEGIN + timedelta(seconds=later)), source)
            for later, source in ((0, "a"), (29, "a"), (30, "b"), (31, ""))
        ]
    )
    assert seconds == 60
    assert told == [
        TimelineInterval(at="2026-10-15T08:00:00Z", articles=2, sources=1),
        TimelineInterval(at="2026-10-15T08:01:00Z", articles=2, sources=2),
    ]


@pytest.mark.parametrize(
    ("span", "seconds"),
    [
        (timedelta(hours=1), 60),
        (timedelta(hours=1, seconds=1), 300),
        (timedelta(hours=15), 900),
        (timedelta(days=14), 6 * 3_600),
        (timedelta(days=2_000), 30 * 86_400),
    ],
)
def test_intervals_are_the_shortest_of_which_sixty_suffice(span: timedelta, seconds: int) -> None:
    """Of minutes, hours, days, weeks or months; only a span of more than sixty months has more."""
    assert timeline_of([(_ms(_BEGIN), "a"), (_ms(_BEGIN + span), "a")])[0] == seconds


def test_cluster_without_articles_has_no_interval() -> None:
    """All of them may have expired."""
    assert timeline_of([]) == (60, [])
