"""The stream's time and the window: how old an article is, when it is forgotten, when a generation begins or expires.

Knows times and generations; knows nothing of texts or of storage.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.article import Article
from stream_dedup.compiled.hashing import I64
from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.records.records import UNKNOWN_TIME
from stream_dedup.settings import WindowSettings

_RENEWALS = 8  # times in a window that a text which is copied again and again is put into the index anew
_GENERATIONS = 2  # into which a window is divided: the disk keeps one and a half to two windows
_MS_PER_DAY = 86_400_000


class Moment(NamedTuple):
    """A moment of the stream.

    Attributes:
        stream_ms: the stream's time, milliseconds since 1970 in UTC.
        floor_ms: what is older than this is forgotten.
    """

    stream_ms: int
    floor_ms: int


@dataclass(frozen=True, slots=True)
class Times:
    """The times of n articles, in milliseconds since 1970 in UTC.

    Attributes:
        stream: the stream's time once each has come, shape (n,).
        window: from when on each is remembered, shape (n,): its own time, or its arrival where it is late.
        floors: what is older than this is forgotten, shape (n,).
        late: which were forgotten before they came, shape (n,).
        renewals: a copy of what is older than this is indexed, shape (n,): its text is remembered an eighth of the
            window longer at least. It goes by the copy's own time: one that is old itself would not help.
    """

    stream: I64
    window: I64
    floors: I64
    late: NDArray[np.bool_]
    renewals: I64

    def moment(self, place: int) -> Moment:
        """Return the moment at which one of the articles has come."""
        return Moment(int(self.stream[place]), int(self.floors[place]))

    def at(self, places: I64) -> "Times":
        """Return the times of some of the articles."""
        return Times(*(getattr(self, name)[places] for name in self.__slots__))


class Window:
    """How long articles are remembered.

    The stream's time is that of the newest article so far. An article's own time is that of its publication, but for
    the stream's time no later than that of its message: a clock that runs ahead must not make the others old.

    Args:
        settings: its length.
    """

    def __init__(self, settings: WindowSettings) -> None:
        self._length_ms = round(settings.days * _MS_PER_DAY)

    def times(self, articles: Sequence[Article], stream_ms: int) -> Times:
        """Return the times of articles that come when the stream's time is `stream_ms`."""
        message = _known_ms([article.origin.timestamp_ms if article.origin else None for article in articles])
        published = _known_ms([article.published_ms for article in articles])
        own = np.where(published == UNKNOWN_TIME, message, published)
        advance = np.where(message == UNKNOWN_TIME, own, np.minimum(own, message))
        stream = np.maximum(np.maximum.accumulate(advance), stream_ms) if len(articles) else advance
        floors = stream - self._length_ms
        late = (own != UNKNOWN_TIME) & (own < floors)
        window = np.where(late | (own == UNKNOWN_TIME), stream, np.minimum(own, stream))
        return Times(stream, window, floors, late, window - self._length_ms // _RENEWALS)

    def moment(self, stream_ms: int) -> Moment:
        """Return the moment at which the stream's time is `stream_ms`."""
        return Moment(stream_ms, stream_ms - self._length_ms)

    def begins_generation(self, times: I64, progress: Progress) -> int | None:
        """Return the place of the first article after which a generation begins, None if there is none.

        Args:
            times: the stream's time at each article, shape (n,), ascending.
            progress: of the state.
        """
        start = self.started(progress, times)
        due = (times >= start + self._length_ms // _GENERATIONS) & (start != UNKNOWN_TIME)
        return int(np.argmax(due)) if due.any() else None

    def started(self, progress: Progress, times: I64) -> int:
        """Return when the generation of now began: where no time was known until now, with the first that is."""
        start = progress.generations[-1].start_ms
        known = times[times != UNKNOWN_TIME]
        return int(known[0]) if start == UNKNOWN_TIME and len(known) else start

    def generations(self, progress: Progress, times: I64, entries: int) -> tuple[Generation, ...]:
        """Return the generations after some articles: where one begins, those that are left and the new one.

        A generation has expired when the one after it began before the window did: all that it holds is older.

        Args:
            progress: of the state before.
            times: the stream's time at each article, of which at most the last is one after which one begins.
            entries: number of the next entry.
        """
        old = (*progress.generations[:-1], replace(progress.generations[-1], start_ms=self.started(progress, times)))
        if self.begins_generation(times, progress) is None:
            return old
        stream_ms = int(times[-1])
        new = Generation(old[-1].number + 1, stream_ms, entries)
        after = [*old[1:], new]
        floor_ms = self.moment(stream_ms).floor_ms
        left = [one for one, next_one in zip(old, after, strict=True) if next_one.start_ms >= floor_ms]
        return (*left, new)


def span_ms(progress: Progress) -> int:
    """Return the time from the beginning of the oldest generation to now, by the stream's time, in milliseconds."""
    start_ms = progress.generations[0].start_ms
    return progress.stream_ms - start_ms if start_ms != UNKNOWN_TIME else 0


def _known_ms(times: Sequence[int | None]) -> I64:
    return np.array([UNKNOWN_TIME if time is None else time for time in times], np.int64)
