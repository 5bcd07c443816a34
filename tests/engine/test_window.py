"""The window: what is seen and for how long, to the millisecond, and what becomes of expired articles.

Knows outcomes, progress and the keys of both stores; random streams are in test_random_walk.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from stream_dedup import Article, Deduplicator, Origin, Relation
from stream_dedup.article import Unjudged, Withdrawal
from stream_dedup.index.records.generations import EXPIRING
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Family, FileStore, MemoryStore, Store
from tests.engine.durable import contents
from tests.engine.model import BASES, BEGIN, DAY, HOUR, VARIANTS, article, engine_settings, parts
from tests.engine.samples import LIGHT, bodies

_DAYS = 2
_LENGTH = _DAYS * DAY
_SETTINGS = engine_settings(_DAYS)
_DEAD = engine_settings(_DAYS, "dead")
_CUTS = pytest.mark.parametrize("cuts", [set(), {1}, {1, 2}], ids=str)


def _relations(stream: Sequence[Article], cuts: set[int]) -> list[Relation | None]:
    with Deduplicator(settings=_SETTINGS) as engine:
        decisions = [decision for part in parts(stream, cuts) for decision in engine.process(part).decisions]
    return [decision.link.relation if decision.link else None for decision in decisions]


# ------------------------------------------------------------------------------------------------- what is seen


@_CUTS
@pytest.mark.parametrize(("age", "relation"), [(_LENGTH - 1, "exact"), (_LENGTH, "exact"), (_LENGTH + 1, None)])
def test_article_is_seen_for_the_window_to_the_millisecond(cuts: set[int], age: int, relation: str | None) -> None:
    """A copy is found while the stream's time is at most `window.days` after the original's publication."""
    stream = [article("old"), article("copy", at=BEGIN + age)]
    assert _relations(stream, cuts) == [None, relation]


@_CUTS
@pytest.mark.parametrize(("age", "relation"), [(_LENGTH, "redelivery"), (_LENGTH + 1, None)])
def test_id_is_remembered_for_the_window(cuts: set[int], age: int, relation: str | None) -> None:
    """The same message is a redelivery while its decision is in the window; after that it is new."""
    assert _relations([article("a"), article("a", at=BEGIN + age)], cuts) == [None, relation]


@_CUTS
@pytest.mark.parametrize(("age", "relation"), [(_LENGTH, "revision"), (_LENGTH + 1, None)])
@pytest.mark.parametrize("name", ["a", "b"])
def test_revision_is_known_for_the_window(cuts: set[int], age: int, relation: str | None, name: str) -> None:
    """Another text of the same id or URL is a revision while the earlier one is in the window."""
    stream = [article("a", url="https://u/1"), article(name, 1, at=BEGIN + age, url="https://u/1")]
    assert _relations(stream, cuts) == [None, relation]


@_CUTS
@pytest.mark.parametrize(("age", "known"), [(_LENGTH, True), (_LENGTH + 1, False)])
def test_text_before_a_revision_is_known_for_the_window(cuts: set[int], age: int, *, known: bool) -> None:
    """Once it is older than that, though its article is not, the revision has no distance from it."""
    stream = [article("now", 2, at=BEGIN + DAY), article("a", at=BEGIN + DAY, lag=DAY), article("a", 1, at=BEGIN + age)]
    with Deduplicator(settings=_SETTINGS) as engine:
        link = [one for part in parts(stream, cuts) for one in engine.process(part).decisions][-1].link
    assert link is not None
    assert (link.relation, link.jaccard is not None) == (Relation.REVISION, known)


@_CUTS
def test_publication_counts_and_not_arrival(cuts: set[int]) -> None:
    """An article that arrived a day after its publication is forgotten a day earlier."""
    slow = article("slow", at=BEGIN + DAY, lag=DAY)
    for age, relation in ((_LENGTH, "exact"), (_LENGTH + 1, None)):
        assert _relations([slow, article("copy", variant=1, at=BEGIN + age)], cuts) == [None, relation]


@_CUTS
def test_clock_that_runs_ahead_makes_nobody_old(cuts: set[int]) -> None:
    """A publication time later than the message's own moves neither the window nor the article's own time."""
    stream = [article("first"), article("ahead", 1, at=BEGIN + 1, lag=-1000 * DAY), article("copy", at=BEGIN + 2)]
    for age, relation in ((_LENGTH, "exact"), (_LENGTH + 1, None)):
        later = article("copy of the one ahead", 1, at=BEGIN + 1 + age)
        assert _relations([*stream, later], cuts) == [None, None, "exact", relation]


@_CUTS
def test_late_article_is_judged_and_remembered_from_its_arrival(cuts: set[int]) -> None:
    """An article that is already older than the window is compared like others, and can be found for a whole window."""
    now = BEGIN + 100 * DAY
    stream = [
        article("now", at=now),
        article("late copy", variant=1, at=now, lag=90 * DAY),
        article("late", 1, at=now, lag=90 * DAY),
    ]
    for age, relation in ((_LENGTH, "exact"), (_LENGTH + 1, None)):
        assert _relations([*stream, article("copy", 1, at=now + age)], cuts) == [None, "exact", None, relation]


@_CUTS
def test_text_is_remembered_as_long_as_copies_come(cuts: set[int]) -> None:
    """A story that is copied again and again stays one story, however long ago it began."""
    stream = [article(f"n{n}", at=BEGIN + n * _LENGTH * 3 // 4) for n in range(8)]
    with Deduplicator(settings=_SETTINGS) as engine:
        decisions = [decision for part in parts(stream, cuts) for decision in engine.process(part).decisions]
    assert [one.link and one.link.duplicate_of for one in decisions] == [None, *["n0"] * 7]


def test_busy_story_has_few_entries() -> None:
    """Of hourly copies, one per eighth of the window is indexed, not each."""
    with Deduplicator(settings=_SETTINGS) as engine:
        decisions = engine.add_batch([article(f"n{n}", at=BEGIN + n * HOUR) for n in range(48)])
    assert not any(decision.unique for decision in decisions[1:])
    assert 48 // 8 <= sum(decision.indexed for decision in decisions) <= 48 // 6 + 1


@pytest.mark.parametrize(
    ("variant", "relation", "renews"), [(1, "exact", True), (2, "near", True), (5, "contained", False)]
)
def test_text_is_renewed_by_whole_copies_from_an_eighth_of_the_window_on(
    variant: int, relation: str, *, renews: bool
) -> None:
    """What is like a shortened copy may share little with the text, so a shortened copy cannot stand in for it."""
    for age, indexed in ((_LENGTH // 8, False), (_LENGTH // 8 + 1, renews)):
        with Deduplicator(settings=_SETTINGS) as engine:
            engine.add(article("original"))
            copy = engine.add(article("copy", variant=variant, at=BEGIN + age))
        assert copy.link is not None
        assert (copy.link.relation, copy.indexed) == (relation, indexed)


def test_old_copies_of_old_articles_are_not_indexed() -> None:
    """A backlog read again under other ids is not indexed: none of it would be remembered longer."""
    stream = [article("now", 1, at=BEGIN + _LENGTH * 3 // 4)]
    lags = [_LENGTH * 3 // 4 - n * HOUR // 60 for n in range(48)]
    stream += [article(f"n{n}", at=BEGIN + _LENGTH * 3 // 4, lag=lag) for n, lag in enumerate(lags)]
    with Deduplicator(settings=_SETTINGS) as engine:
        decisions = engine.add_batch(stream)
    assert [decision.indexed for decision in decisions] == [True, True, *[False] * 47]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_late_article_is_left_out_where_the_settings_say_so(size: int) -> None:
    """It comes out unjudged, as too late, and leaves no trace; the others are judged as if it had not come."""
    now = BEGIN + 100 * DAY
    stream = [
        article("now", at=now),
        article("late", 1, at=now, lag=_LENGTH + 1),
        article("later still", 2, at=now, lag=50 * DAY),
        article("in time", 1, at=now, lag=_LENGTH),
        article("copy", at=now),
    ]
    with Deduplicator(settings=_DEAD) as engine:
        outcomes = [one for at in range(0, 5, size) for one in engine.process(stream[at : at + size]).outcomes]
        assert engine.progress.judged == 3
    unjudged = {one.item.id: one.reason for one in outcomes if isinstance(one, Unjudged)}
    assert unjudged == {"late": "too_late", "later still": "too_late"}
    relations = [
        one.link and one.link.relation for one in outcomes if not isinstance(one, Unjudged) and hasattr(one, "link")
    ]
    assert relations == [None, None, "exact"]


def test_adding_a_late_article_tells_so() -> None:
    """The embedded API says which article is too late, and changes nothing."""
    with Deduplicator(settings=_DEAD) as engine:
        engine.add(article("now"))
        before = engine.progress
        with pytest.raises(ValueError, match=r"'late'.*more than 2 days"):
            engine.add_batch([article("new", 1), article("late", 2, lag=3 * DAY)])
        assert engine.progress == before


def test_articles_without_time_never_move_the_window() -> None:
    """If no article has a time, nothing is ever forgotten, and no generation begins."""
    with Deduplicator(settings=_SETTINGS) as engine:
        engine.add_batch([Article(str(n), bodies()[n]) for n in range(60)])
        assert len(engine.progress.generations) == 1
        links = [decision.link for decision in engine.add_batch([Article(f"c{n}", bodies()[n]) for n in range(60)])]
    assert [link and link.duplicate_of for link in links] == [str(n) for n in range(60)]


def test_article_without_time_has_that_of_the_stream() -> None:
    """Among others it counts as published on arrival, and does not move the window."""
    stream = [article("timed"), Article("timeless", bodies()[9]), article("within", 1, at=BEGIN + _LENGTH)]
    with Deduplicator(settings=_SETTINGS) as engine:
        engine.add_batch(stream)
        assert engine.progress.stream_ms == BEGIN + _LENGTH
        assert engine.decide([Article("copy", bodies()[9])]).decisions[0].link
        engine.add(article("beyond", 2, at=BEGIN + _LENGTH + 1))
        assert engine.add(Article("another", bodies()[9])).unique


def test_what_came_before_any_time_was_known_is_remembered() -> None:
    """The first known time makes nothing old: what came before it expires with the first part of the window."""
    with Deduplicator(settings=_SETTINGS) as engine:
        engine.add_batch([Article("a", bodies()[0]), Article("a", bodies()[1]), article("b", 2)])
        assert engine.progress.stream_ms == BEGIN
        links = [engine.add(one).link for one in (Article("a", bodies()[1]), Article("c", bodies()[0]))]
        assert [link and (link.relation, link.duplicate_of) for link in links] == [("redelivery", "a"), ("exact", "a")]
        engine.add_batch([article("d", 3, at=BEGIN + _LENGTH), article("e", 4, at=BEGIN + 2 * _LENGTH + 1)])
        assert engine.add(Article("f", bodies()[0])).unique


# ------------------------------------------------------------------------------------- generations and the store


@pytest.fixture(params=["memory", "rocks"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], FileStore]:
    """A factory of stores of both kinds."""
    return lambda: MemoryStore() if request.param == "memory" else RocksStore(tmp_path / "state")


def _stream(count: int, step: int, begin: int = BEGIN) -> list[Article | Withdrawal]:
    """Return articles and withdrawals, that many milliseconds apart, half of them copies."""
    items: list[Article | Withdrawal] = []
    for n in range(count):
        name, at = f"{begin}-{n}", begin + n * step
        copy = article(name, n % BASES, n % VARIANTS, at=at, url=f"https://u/{n % 50}")
        fresh = Article(name, bodies()[n % len(bodies())], published_ms=at, origin=Origin("in", 0, n, at))
        items.append(copy if n % 2 else fresh)
        if n % 13 == 12:
            items.append(Withdrawal(f"{begin}-{n - 4}"))
    return items


def _check_keys(store: Store, engine: Deduplicator) -> None:
    """Check every key against the remaining generations."""
    live = set(engine.progress.live)
    for family in EXPIRING:
        assert {int.from_bytes(key[:4], "big") for key, _ in store.items(family)} <= live
    entries = [int.from_bytes(key, "big") for key, _ in store.items(Family.ENTRIES)]
    assert all(engine.progress.floor <= entry < engine.progress.entries for entry in entries)


def test_expired_keys_leave_the_store(make_store: Callable[[], FileStore]) -> None:
    """Keys and entries of expired generations are gone, and the only files left are those of live runs."""
    store = make_store()
    engine = Deduplicator(settings=_SETTINGS, store=store)
    stream = _stream(240, HOUR)
    for part in parts(stream, set(range(7, 260, 7))):
        engine.process(part)
        _check_keys(store, engine)
    assert engine.progress.generations[0].number > 5
    floor = engine.progress.floor
    assert floor > 0
    engine.state.index.shelf.finish(engine.progress)
    runs = engine.state.index.shelf.runs
    assert all(run.stop > floor for run in runs)
    assert sorted(store.file_names()) == sorted(run.name for run in runs) != []
    engine.close()


def test_number_of_keys_reaches_a_plateau(make_store: Callable[[], FileStore]) -> None:
    """On an endless stream, every family and all runs stop growing after the first windows."""
    store = make_store()
    engine = Deduplicator(settings=_SETTINGS, store=store)
    sizes: list[dict[Family, int]] = []
    postings: list[int] = []
    for part in parts(_stream(600, HOUR), set(range(24, 700, 24))):
        engine.process(part)
        # What has expired stays in the runs until they are merged, in the background: on a busy machine it takes long.
        engine.state.index.shelf.finish(engine.progress)
        sizes.append({family: len(pairs) for family, pairs in contents(engine).items()})
        postings.append(sum(len(keyed.keys) for _, keyed in engine.state.index.shelf.keyed_postings()))
    most = {family: max(size[family] for size in sizes[3:9]) for family in Family}
    for family in Family:
        assert most[family] > 0
        # The windows differ by a few articles, because the texts recur at different points.
        assert max(size[family] for size in sizes[9:]) <= most[family] * 1.15 + 1
    assert 0 < max(postings[9:]) <= max(postings[3:9]) * 1.15
    engine.close()


def test_kept_is_the_window_and_at_most_one_more() -> None:
    """The oldest generation began at most two windows ago, and the whole window is covered."""
    with Deduplicator(settings=_SETTINGS) as engine:
        for item in _stream(240, HOUR):
            engine.process([item])
            progress = engine.progress
            starts = [one.start_ms for one in progress.generations]
            assert starts == sorted(starts)
            assert [one.number for one in progress.generations] == list(range(progress.live[0], progress.live[-1] + 1))
            assert progress.stream_ms - starts[0] <= 2 * _LENGTH
            assert starts[0] <= max(BEGIN, progress.stream_ms - _LENGTH)


def test_epoch_ends_with_each_generation() -> None:
    """The first article of a generation is judged with a new epoch, so the changelog need not reach back further."""
    long_epochs = _SETTINGS.model_validate({**_SETTINGS.model_dump(), "idf": {"epoch_articles": 1000}})
    with Deduplicator(settings=long_epochs) as engine:
        for item in _stream(100, HOUR):
            before = engine.progress.generation
            engine.process([item])
            assert engine.epoch.number == engine.progress.generation
            if engine.progress.generation != before:
                assert engine.progress.epoch_judged == 0
        assert engine.progress.generation > 2


@pytest.mark.parametrize("size", [5, 30])
def test_generations_begin_at_the_same_articles_in_any_batch(size: int) -> None:
    """Also where several begin in one."""
    stream = _stream(30, 7 * HOUR)
    with Deduplicator(settings=_SETTINGS) as alone, Deduplicator(settings=_SETTINGS) as engine:
        for at in range(0, 30, size):
            for one in stream[at : at + size]:
                alone.process([one])
            engine.process(stream[at : at + size])
            assert engine.progress.generations == alone.progress.generations


@pytest.mark.parametrize("size", [1, 10, 500])
def test_archive_with_gaps_is_replayed(size: int) -> None:
    """A gap of months expires everything before it; each part of an archive is judged as if it were alone."""
    months = [_stream(30, HOUR, BEGIN + month * 60 * DAY) for month in range(4)]
    alone = []
    for month in months:
        with Deduplicator(settings=_SETTINGS) as engine:
            alone += [one.link and one.link.duplicate_of for one in engine.process(month).decisions]
    stream = [item for month in months for item in month]
    with Deduplicator(settings=_SETTINGS) as engine:
        judged = [engine.process(stream[at : at + size]) for at in range(0, len(stream), size)]
        _check_keys(engine.state.store, engine)
        assert engine.progress.entries - engine.progress.floor < engine.progress.entries / 2
    found = [one.link and one.link.duplicate_of for batch in judged for one in batch.decisions]
    assert found == alone
    assert None in found
    assert len(set(found)) > 4


def test_window_may_change_on_the_same_state(tmp_path: Path) -> None:
    """A longer or shorter window takes effect at the next start; the state need not be rebuilt."""
    with Deduplicator(tmp_path, engine_settings(10)) as engine:
        engine.process(_stream(60, 2 * HOUR))
        engine.add(article("old", at=BEGIN + 5 * DAY))
    with Deduplicator(tmp_path, engine_settings(1)) as engine:
        assert engine.add(article("copy", at=BEGIN + 6 * DAY + 1)).unique
    with Deduplicator(tmp_path, LIGHT) as engine:
        assert engine.add(article("another", at=BEGIN + 6 * DAY + 1)).link
