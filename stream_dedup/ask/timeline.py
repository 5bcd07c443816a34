"""The timeline of a cluster: its articles, counted in intervals of a length that suits their span.

Knows times and sources; knows nothing of records.
"""

from collections.abc import Sequence
from itertools import groupby

from stream_dedup.ask.answers import TimelineInterval
from stream_dedup.output_fields import iso

_STRETCHES = (60, 300, 900, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 30 * 86_400)  # seconds
_MOST = 60  # intervals between the first article and the last


def timeline_of(articles: Sequence[tuple[int, str]]) -> tuple[int, list[TimelineInterval]]:
    """Return the length of an interval in seconds, and the intervals that contain articles.

    Args:
        articles: time (milliseconds since 1970 in UTC) and source of each, in ascending order.
    """
    span = (articles[-1][0] - articles[0][0]) / 1000 if articles else 0.0
    seconds = next((length for length in _STRETCHES if span <= _MOST * length), _STRETCHES[-1])
    length = 1000 * seconds
    return seconds, [
        _moment(begin * length, [source for _, source in group])
        for begin, group in groupby(articles, lambda article: article[0] // length)
    ]


def _moment(begin_ms: int, sources: Sequence[str]) -> TimelineInterval:
    return TimelineInterval(at=iso(begin_ms, "seconds"), articles=len(sources), sources=len(set(sources)))
