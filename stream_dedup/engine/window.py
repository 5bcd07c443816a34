"""Stream time and the window: how old an article is, when it is forgotten, when a generation begins or expires.

Knows times and generations; knows nothing of texts or of storage.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, Bool
from stream_dedup.article import Article
from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.records.records import UNKNOWN_TIME, time_number
from stream_dedup.settings import WindowSettings

_RENEWALS = 8  # times per window that a text which is copied again and again is indexed again
GENERATIONS_PER_WINDOW = 2  # the state holds one generation more: one to one and a half windows
MS_PER_DAY = 86_400_000


class Moment(NamedTuple):
    """A moment of the stream.

    Attributes:
        stream_ms: stream time, milliseconds since 1970 in UTC.
        cutoff_ms: anything older than this is forgotten, same unit.
    """

    stream_ms: int
    cutoff_ms: int

    @property
    def renewal_ms(self) -> int:
        """Time after which a text that is copied again and again is indexed again, in milliseconds."""
        return (self.stream_ms - self.cutoff_ms) // _RENEWALS


@dataclass(frozen=True, slots=True)
class Times:
    """The times of n articles, in milliseconds since 1970 in UTC.

    Attributes:
        stream: stream time once each has arrived, shape (n,).
        window: time from which each is remembered, shape (n,): its own, or that of its arrival if it is late.
        cutoffs: anything older than this is forgotten, shape (n,).
        late: which were older than the window when they arrived, shape (n,).
        reindex_before: a copy of anything older than this is indexed, shape (n,), so that its text is remembered
            for at least an eighth of the window longer. This depends on the copy's own time: an old copy would not
            help.
    """

    stream: I64
    window: I64
    cutoffs: I64
    late: Bool
    reindex_before: I64

    def moment(self, place: int) -> Moment:
        """Return the moment at which one of the articles has arrived."""
        return Moment(int(self.stream[place]), int(self.cutoffs[place]))

    def at(self, places: I64) -> "Times":
        """Return the times of some of the articles."""
        return Times(*(getattr(self, name)[places] for name in self.__slots__))


class Window:
    """How long articles are remembered.

    Stream time is the time of the newest article so far. An article's own time is its publication time; for stream time
    it counts as no later than its message's, so that one clock that runs ahead does not make all other articles old.

    Args:
        settings: length of the window.
    """

    def __init__(self, settings: WindowSettings) -> None:
        self._length_ms = round(settings.days * MS_PER_DAY)

    def times(self, articles: Sequence[Article], stream_ms: int) -> Times:
        """Return the times of articles that arrive when stream time is `stream_ms`."""
        message = _known_ms([article.origin.timestamp_ms if article.origin else None for article in articles])
        published = _known_ms([article.published_ms for article in articles])
        own = np.where(published == UNKNOWN_TIME, message, published)
        advance = np.where(message == UNKNOWN_TIME, own, np.minimum(own, message))
        stream = np.maximum(np.maximum.accumulate(advance), stream_ms) if len(articles) else advance
        cutoffs = stream - self._length_ms
        late = (own != UNKNOWN_TIME) & (own < cutoffs)
        window = np.where(late | (own == UNKNOWN_TIME), stream, np.minimum(own, stream))
        return Times(stream, window, cutoffs, late, window - self._length_ms // _RENEWALS)

    def moment(self, stream_ms: int) -> Moment:
        """Return the moment at which stream time is `stream_ms`."""
        return Moment(stream_ms, stream_ms - self._length_ms)

    def begins_generation(self, times: I64, progress: Progress) -> int | None:
        """Return the index of the first article after which a generation begins, None if there is none.

        Args:
            times: stream time at each article, shape (n,), ascending.
            progress: progress of the state.
        """
        start = self.started(progress, times)
        # Strictly after half a window: times in whole seconds often meet it exactly. The oldest generation would then
        # end exactly where the window begins, would still be needed, and would stay for another half window.
        due = times > start + self._length_ms // GENERATIONS_PER_WINDOW
        return int(np.argmax(due)) if due.any() else None

    def started(self, progress: Progress, times: I64) -> int:
        """Return when the current generation began: at the first known time, if none was known before."""
        start = progress.generations[-1].start_ms
        known = times[times != UNKNOWN_TIME]
        return int(known[0]) if start == UNKNOWN_TIME and len(known) else start

    def generations(self, progress: Progress, times: I64, entries: int) -> tuple[Generation, ...]:
        """Return the generations after some articles: if one begins, those that are left and the new one.

        A generation has expired when the one after it began before the window did: everything in it is older.

        Args:
            progress: progress of the state before.
            times: stream time at each article; only after the last one may a generation begin.
            entries: number of the next entry.
        """
        old = (*progress.generations[:-1], replace(progress.generations[-1], start_ms=self.started(progress, times)))
        if self.begins_generation(times, progress) is None:
            return old
        stream_ms = int(times[-1])
        new = Generation(old[-1].number + 1, stream_ms, entries)
        after = [*old[1:], new]
        cutoff_ms = self.moment(stream_ms).cutoff_ms
        left = [one for one, next_one in zip(old, after, strict=True) if next_one.start_ms >= cutoff_ms]
        return (*left, new)


def span_ms(progress: Progress) -> int:
    """Return the stream time from the beginning of the oldest generation to now, in milliseconds."""
    start_ms = progress.generations[0].start_ms
    return progress.stream_ms - start_ms if start_ms != UNKNOWN_TIME else 0


def _known_ms(times: Sequence[int | None]) -> I64:
    return np.array([time_number(time) for time in times], np.int64)
