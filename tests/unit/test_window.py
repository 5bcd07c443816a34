"""The window: times, lateness, and when generations begin and expire, compared with plain loops."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.arrays import I64
from stream_dedup.article import Article, Origin
from stream_dedup.engine.window import Times, Window, span_ms
from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.records.records import UNKNOWN_TIME
from stream_dedup.settings import WindowSettings

_DAY = 86_400_000
_LENGTH = 4 * _DAY
_WINDOW = Window(WindowSettings(days=4))
_MOMENTS = st.none() | st.integers(0, 20).map(lambda halves: halves * _DAY // 2)
_ARTICLES = st.lists(
    st.builds(
        lambda published, message: Article("a", "文", published_ms=published, origin=Origin("in", 0, 0, message)),
        _MOMENTS,
        _MOMENTS,
    ),
    max_size=12,
)
_BEFORE = st.sampled_from([UNKNOWN_TIME, 0, 3 * _DAY])


def _listed(times: Times) -> list[tuple[int, int, int, bool]]:
    columns = (times.stream, times.window, times.cutoffs, times.late)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(articles=_ARTICLES, before=_BEFORE)
def test_times_are_those_of_a_plain_loop(articles: list[Article], before: int) -> None:
    """Stream time is the newest time so far, capped by the message's; anything older than the window is late."""
    now, expected = before, []
    for article in articles:
        message = article.origin.timestamp_ms if article.origin else None
        own = message if article.published_ms is None else article.published_ms
        if own is not None:
            now = max(now, own if message is None else min(own, message))
        late = own is not None and own < now - _LENGTH
        expected.append((now, now if late or own is None else min(own, now), now - _LENGTH, late))
    assert _listed(_WINDOW.times(articles, before)) == expected


@given(articles=_ARTICLES, cut=st.integers(0, 12))
def test_times_do_not_depend_on_cuts(articles: list[Article], cut: int) -> None:
    """Continuing from the stream time at a cut gives the same times as one batch."""
    whole = _WINDOW.times(articles, UNKNOWN_TIME)
    first = _WINDOW.times(articles[:cut], UNKNOWN_TIME)
    at_cut = int(first.stream[-1]) if len(first.stream) else UNKNOWN_TIME
    assert _listed(first) + _listed(_WINDOW.times(articles[cut:], at_cut)) == _listed(whole)
    places = whole.stream.argsort(kind="stable")[::2]
    assert _listed(whole.at(places)) == [_listed(whole)[place] for place in places]


def _ascending(steps: list[int]) -> I64:
    times = _WINDOW.times(
        [Article("a", "文", published_ms=sum(steps[: n + 1])) for n in range(len(steps))], UNKNOWN_TIME
    )
    return times.stream


_STEPS = st.lists(st.sampled_from([0, _DAY // 24, _DAY, 3 * _DAY, 30 * _DAY]), min_size=1, max_size=30)


@given(steps=_STEPS)
def test_generation_begins_each_half_window(steps: list[int]) -> None:
    """It begins right after the first article more than half a window after the start of the last one."""
    times, progress = _ascending(steps), Progress()
    start, number, at = int(times[0]), 0, 0
    while at < len(times):
        last = _WINDOW.begins_generation(times[at:], progress)
        due = [place for place in range(at, len(times)) if times[place] > start + _LENGTH // 2]
        assert last == (due[0] - at if due else None)
        stop = len(times) if last is None else at + last + 1
        generations = _WINDOW.generations(progress, times[at:stop], stop * 10)
        progress = Progress(generations=generations)
        if last is not None:
            start, number = int(times[stop - 1]), number + 1
            assert generations[-1] == Generation(number, start, stop * 10)
        at = stop
    assert progress.generation == number


@given(steps=_STEPS)
def test_generation_expires_when_all_in_it_is_older_than_the_window(steps: list[int]) -> None:
    """Generations are kept if they can hold something in the window, as of the start of the newest one."""
    times, progress = _ascending(steps), Progress()
    starts: dict[int, int] = {}
    for at in range(len(times)):
        progress = Progress(generations=_WINDOW.generations(progress, times[at : at + 1], at))
        starts |= {one.number: one.start_ms for one in progress.generations}
        newest = progress.generation
        held = [number for number in range(newest) if starts[number + 1] >= starts[newest] - _LENGTH]
        assert list(progress.live) == [*held, newest]


@pytest.mark.parametrize("step", [_LENGTH // 100, _LENGTH // 100 + 7], ids=["meets half windows", "never meets them"])
def test_span_of_what_is_kept_is_one_to_one_and_a_half_windows(step: int) -> None:
    """The stream is steady, at any interval; at first everything is kept, and without times the span is 0."""
    assert span_ms(Progress()) == 0
    progress, spans = Progress(), []
    for now in range(0, 4 * _LENGTH, step):
        stream = _WINDOW.times([Article("a", "文", published_ms=now)], progress.stream_ms).stream
        progress = Progress(generations=_WINDOW.generations(progress, stream, 0), stream_ms=now)
        spans.append(span_ms(progress))
    assert spans[:150] == [*range(0, 150 * step, step)]
    assert _LENGTH <= min(spans[200:]) < 1.05 * _LENGTH
    assert 1.45 * _LENGTH < max(spans) < 1.55 * _LENGTH


def test_without_times_no_generation_begins() -> None:
    """If no article has a time, the first generation continues; its start is the first known time."""
    timeless = _WINDOW.times([Article("a", "文")] * 5, UNKNOWN_TIME).stream
    assert _WINDOW.begins_generation(timeless, Progress()) is None
    assert _WINDOW.generations(Progress(), timeless, 5) == Progress().generations
    timed = _WINDOW.times([Article("a", "文"), Article("b", "文", published_ms=7)], UNKNOWN_TIME).stream
    assert _WINDOW.generations(Progress(), timed, 7) == (Generation(0, 7, 0),)


def test_no_articles_have_no_times() -> None:
    """An empty batch changes nothing."""
    assert _listed(_WINDOW.times([], 5)) == []
    assert _WINDOW.moment(_LENGTH + 3) == (_LENGTH + 3, 3)
