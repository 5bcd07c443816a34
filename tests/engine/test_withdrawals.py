"""Withdrawals: what is forgotten, who succeeds, and what is found afterwards.

Knows outcomes, clusters and announcements; random streams are in test_random_walk.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from stream_dedup import Deduplicator
from stream_dedup.article import Decision, Unjudged, Withdrawal, Withdrawn
from stream_dedup.engine.clusters import MOST_MEMBERS
from stream_dedup.index.stores.store import Family
from tests.engine.model import BEGIN, DAY, HOUR, Item, article, engine_settings, text

_SETTINGS = engine_settings(2)
_URL = "https://u.example/1"


@pytest.fixture(params=["one batch", "one by one"])
def process(request: pytest.FixtureRequest) -> Iterator["Process"]:
    """An engine that gets the items of a test all at once, or one by one."""
    with Deduplicator(settings=_SETTINGS) as engine:
        yield Process(engine, whole=request.param == "one batch")


class Process:
    """An engine, and how it is fed.

    Args:
        engine: judges.
        whole: whether items go in as one batch.
    """

    def __init__(self, engine: Deduplicator, *, whole: bool) -> None:
        self.engine = engine
        self._whole = whole

    def __call__(self, *items: Item) -> list[str]:
        """Judge items; return a few words on what became of each."""
        batches: Sequence[Sequence[Item]] = [items] if self._whole else [[item] for item in items]
        self.judged = [self.engine.process(batch) for batch in batches]
        return [_words(outcome) for judged in self.judged for outcome in judged.outcomes]

    @property
    def clusters(self) -> dict[str, int | None]:
        """The latest reports on clusters: copies by canonical article."""
        told = {name: cluster for judged in self.judged for name, cluster in judged.clusters.items()}
        return {name: cluster.copies if cluster else None for name, cluster in told.items()}


def _words(outcome: Decision | Withdrawn | Unjudged) -> str:
    if isinstance(outcome, Withdrawn):
        return f"{outcome.id} withdrawn, now {outcome.canonical}"
    if isinstance(outcome, Unjudged):
        return f"{outcome.item.id} {outcome.reason}"
    link = outcome.link
    return f"{outcome.article.id} " + (f"{link.relation} of {link.duplicate_of}" if link else "unique")


def test_unknown_article_cannot_be_withdrawn(process: Process) -> None:
    """An id that was never seen, or has left the window, is unknown; nothing changes."""
    assert process(Withdrawal("a")) == ["a unknown_article"]
    stream: list[Item] = [
        article("a"),
        article("b", 1, at=BEGIN + 2 * DAY + 1),
        Withdrawal("a"),
        Withdrawal("b", "https://no"),
    ]
    assert process(*stream)[2:] == ["a unknown_article", "b withdrawn, now None"]


def test_text_of_a_withdrawn_article_is_new_again(process: Process) -> None:
    """After a withdrawal, the text and the id are as if they had never come."""
    stream: list[Item] = [article("a"), Withdrawal("a"), article("b"), article("a", at=BEGIN + 1)]
    assert process(*stream) == ["a unique", "a withdrawn, now None", "b unique", "a exact of b"]


def test_article_may_come_again_after_its_withdrawal(process: Process) -> None:
    """The same message under the same id is then neither a redelivery nor a revision."""
    assert process(article("a"), Withdrawal("a"), article("a"), article("a")) == [
        "a unique",
        "a withdrawn, now None",
        "a unique",
        "a redelivery of a",
    ]


def test_copy_succeeds_its_canonical_article(process: Process) -> None:
    """The oldest copy names the cluster; its text is found, links name it, and readers are told."""
    stream: list[Item] = [
        article("a"),
        article("b", variant=2),
        article("c", variant=1),
        Withdrawal("a"),
        article("d", variant=2),
        article("b", variant=2),
        article("c", variant=1),
    ]
    assert process(*stream)[3:] == ["a withdrawn, now b", "d exact of b", "b redelivery of b", "c redelivery of b"]
    assert process.clusters == {"a": None, "b": 2}
    assert not any(judged.successions for judged in process.judged)


def test_text_of_the_successor_is_found_also_beside_a_drifted_copy(process: Process) -> None:
    """The new canonical article is indexed itself, even if another member of its cluster is too."""
    stream: list[Item] = [
        article("a"),
        article("b", variant=1),
        article("c", variant=3),
        Withdrawal("a"),
        article("d", variant=0),
    ]
    assert process(*stream)[3:] == ["a withdrawn, now b", "d exact of b"]


def test_what_is_kept_in_reserve_is_no_candidate(process: Process) -> None:
    """An entry kept for a copy is not found until its canonical article is withdrawn."""
    assert process(article("a"), article("b", variant=5), article("c", variant=5))[1:] == [
        "b contained of a",
        "c contained of a",
    ]
    assert process(Withdrawal("a"), article("d", variant=5)) == ["a withdrawn, now b", "d exact of b"]


def test_withdrawn_copy_leaves_its_cluster(process: Process) -> None:
    """A withdrawn copy is no longer counted, and the canonical article stays."""
    stream: list[Item] = [
        article("a"),
        article("b", variant=1),
        article("c", variant=2),
        Withdrawal("b"),
        article("b", variant=1),
    ]
    assert process(*stream)[3:] == ["b withdrawn, now a", "b exact of a"]
    assert process.clusters == {"a": 2}


def test_withdrawals_of_a_whole_cluster_leave_nothing(process: Process) -> None:
    """As they go one by one, readers are told of each, and the texts are new again."""
    stream: list[Item] = [article("a"), article("b", variant=1), article("c", variant=2)]
    process(*stream)
    assert process(Withdrawal("a"), Withdrawal("c"), Withdrawal("b"), *stream[:1]) == [
        "a withdrawn, now b",
        "c withdrawn, now b",
        "b withdrawn, now None",
        "a unique",
    ]
    assert process.clusters["b"] is None
    families = [Family.CLUSTERS, Family.ENTRIES, Family.ARTICLES]
    assert [len(list(process.engine.state.store.items(family))) for family in families] == [0, 1, 1]


def test_second_withdrawal_is_of_an_unknown_article(process: Process) -> None:
    """A withdrawn article cannot be withdrawn again, by id or by URL."""
    stream: list[Item] = [article("a", url=_URL), Withdrawal("a"), Withdrawal("a"), Withdrawal("x", _URL)]
    assert process(*stream)[1:] == ["a withdrawn, now None", "a unknown_article", "x unknown_article"]
    assert [type(outcome) for outcome in process.judged[-1].outcomes][-1] is Unjudged


def test_details_of_unknown_articles_do_not_depend_on_batches() -> None:
    """A dead letter's wording is the same wherever the stream is cut."""
    stream: list[Item] = [article("a", url=_URL), Withdrawal("x", _URL), Withdrawal("y", _URL)]
    with Deduplicator(settings=_SETTINGS) as one, Deduplicator(settings=_SETTINGS) as other:
        outcomes = [outcome for item in stream for outcome in other.process([item]).outcomes]
        assert one.process(stream).outcomes == outcomes


def test_withdrawal_by_url(process: Process) -> None:
    """If the id is unknown, the newest article of the URL is withdrawn."""
    stream: list[Item] = [article("a", url=_URL), article("b", 1, url=_URL, at=BEGIN + 1), Withdrawal("url:1", _URL)]
    assert process(*stream, article("c", 1), article("d")) == [
        "a unique",
        "b revision of a",
        "b withdrawn, now None",
        "c unique",
        "d exact of a",
    ]


def test_withdrawal_by_url_takes_whoever_is_of_it_still(process: Process) -> None:
    """Not simply the newest ever: that one may have another URL now, or may already be forgotten."""
    stream: list[Item] = [article("a", url=_URL), article("b", 1, url=_URL), article("b", 2, url="https://u.example/2")]
    assert process(*stream, Withdrawal("x", _URL))[3:] == ["a withdrawn, now None"]
    late = BEGIN + 10 * DAY
    stream = [
        article("a", url=_URL, at=late),
        article("b", 1, url=_URL, at=late + 1),
        article("copy of a", at=late + DAY),
        article("c", 2, at=late + 2 * DAY + 2),
    ]
    assert process(*stream, Withdrawal("x", _URL))[4:] == ["a withdrawn, now copy of a"]


def test_id_goes_before_url(process: Process) -> None:
    """A withdrawal with a known id takes that article, whatever its URL."""
    stream: list[Item] = [article("a", url=_URL), article("b", 1), Withdrawal("b", _URL), article("c"), article("d", 1)]
    assert process(*stream)[2:] == ["b withdrawn, now None", "c exact of a", "d unique"]


def test_url_stays_with_its_newest_article(process: Process) -> None:
    """Withdrawing an older article of a URL leaves the newer one its URL."""
    stream: list[Item] = [
        article("a", url=_URL),
        article("b", 1, url=_URL),
        Withdrawal("a"),
        article("c", 2, url=_URL),
        Withdrawal("x", _URL),
    ]
    assert process(*stream)[2:] == ["a withdrawn, now None", "c revision of b", "c withdrawn, now None"]


def test_successor_that_has_expired_is_not_brought_back(process: Process) -> None:
    """A copy that has left the window cannot become canonical, and its text is not found."""
    late = BEGIN + DAY + 20 * HOUR
    stream: list[Item] = [
        article("a"),
        article("b", variant=1),
        article("a", variant=3, at=late),
        article("d", 1, at=BEGIN + 2 * DAY + 1),
        Withdrawal("a"),
        article("e", variant=1, at=BEGIN + 2 * DAY + 2),
    ]
    outcomes = process(*stream)
    assert outcomes[2] == "a revision of a"
    assert outcomes[-2] == "a withdrawn, now None", "b is not known any more"
    assert outcomes[-1] == "e unique", "nothing of the cluster is kept that is in the window: its reserve was b's text"


def test_text_that_is_copied_for_weeks_has_a_successor() -> None:
    """However many copies have left the window, one that is still in it succeeds."""
    with Deduplicator(settings=_SETTINGS) as engine:
        for day in range(2 * MOST_MEMBERS):
            assert engine.add(article(f"d{day:02d}", at=BEGIN + day * DAY)).unique is (day == 0)
        (withdrawn,) = engine.process([Withdrawal("d00")]).outcomes
        assert isinstance(withdrawn, Withdrawn)
        assert withdrawn.canonical in {f"d{day}" for day in range(29, 32)}, "the window is two days long"
        link = engine.add(article("later", at=BEGIN + 32 * DAY)).link
    assert link is not None
    assert link.duplicate_of == withdrawn.canonical


def test_successor_is_found_after_its_generation_has_begun() -> None:
    """A reserve entry that is older than the newest generation is found once it is activated."""
    with Deduplicator(settings=_SETTINGS) as engine:
        engine.process([article("a"), article("b", variant=5)])
        engine.process([article("x", 1, at=BEGIN + DAY), article("y", 2, at=BEGIN + DAY + HOUR)])
        assert engine.progress.generation == 1
        engine.process([Withdrawal("a")])
        (decision,) = engine.decide([article("d", variant=5, at=BEGIN + 2 * DAY + 1)]).decisions
        assert decision.unique
        link = engine.add(article("c", variant=5, at=BEGIN + 2 * DAY)).link
        assert link is not None
        assert (link.duplicate_of, link.relation) == ("b", "exact")


def test_what_is_left_of_a_cluster_may_be_revised_under_another_id() -> None:
    """It has no entry in the index that could be moved; a page's newer text joins it all the same."""
    settings = engine_settings(14, revisions=True, variants=1)
    page = "https://example.com/page"
    with Deduplicator(settings=settings) as engine:
        copies = [article(f"c{n:02d}", at=BEGIN + n, url=page if n == MOST_MEMBERS + 1 else "") for n in range(18)]
        engine.add_batch(copies)
        engine.process([Withdrawal(copy.id) for copy in copies[:MOST_MEMBERS]])
        link = engine.add(article("newer", 5, at=BEGIN + 100, url=page)).link
    assert link is not None
    assert (link.matched, link.relation) == (copies[-1].id, "revision")


def test_withdrawal_is_no_article() -> None:
    """Withdrawals are steps of the state, but do not count as judged, and add no word counts."""
    with Deduplicator(settings=_SETTINGS) as engine:
        engine.process([article("a")])
        judged, words = engine.progress.judged, engine.vocabulary()
        engine.process([Withdrawal("a"), Withdrawal("none")])
        assert (engine.progress.judged, engine.vocabulary()) == (judged, words)
        assert list(engine.state.store.items(Family.ARTICLES)) == []
        assert list(engine.state.store.items(Family.ENTRIES)) == []


_LONG = engine_settings(16)  # renewed every two days


@pytest.mark.parametrize("leaves", [Withdrawal("b"), article("b", 1, at=BEGIN + 17 * DAY)], ids=["withdrawn", "moved"])
@pytest.mark.parametrize(
    ("renewed", "copied"),
    [
        (15.0, [16.5]),  # the first article has left the window
        (8.0, [8.1]),  # it is still in it, but expires long before the copies
        (8.0, [8.1 + n / 10 for n in range(11)]),
    ],
)
def test_a_story_outlives_the_copy_that_kept_it_in_the_index(
    leaves: Item, renewed: float, copied: Sequence[float]
) -> None:
    """The text of another copy takes the place: a later copy is found for seven eighths of a window after the last."""
    with Deduplicator(settings=_LONG) as engine:
        process = Process(engine, whole=False)
        process(article("a"), article("b", at=_day(renewed)))
        assert {f"c{n} exact of a" for n in range(len(copied))} == set(
            process(*(article(f"c{n}", at=_day(day)) for n, day in enumerate(copied)))
        )
        process(leaves)
        late = copied[-1] + 16 * 7 / 8
        assert process(article("d", at=_day(late) - 1)) == ["d exact of a"]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("leaves", ["withdrawn", "moved"])
@pytest.mark.parametrize("body", ["今天真的好开心", text(0, 0)], ids=["short", "long"])
def test_original_is_found_once_its_newest_indexed_copy_is_gone(leaves: str, body: str, *, whole: bool) -> None:
    """Also a text so short that it has no key but the hash of all of it: the lost copy's posting hides nothing."""
    other: Item = Withdrawal("b") if leaves == "withdrawn" else article("b", 1, at=_day(3.5))
    with Deduplicator(settings=_LONG) as engine:
        process = Process(engine, whole=whole)
        told = process(
            *(replace(article(name, at=_day(day)), body=body) for name, day in (("a", 0.0), ("b", 3.0))),
            other,
            replace(article("c", at=_day(4)), body=body),
        )
    assert (told[1], told[3]) == ("b exact of a", "c exact of a")


@pytest.mark.parametrize("days", [0.0, 1.0, 3.0, 10.0])
def test_one_copy_is_in_reserve_however_old_the_copies_are(days: float) -> None:
    """The index grows with the stories, not with the copies, even if today's article was read before older ones."""
    with Deduplicator(settings=_LONG) as engine:
        copies = [article(f"c{n}", at=_day(20), lag=round(days * DAY) + n) for n in range(40)]
        engine.process([article("a", at=_day(20)), *copies])
        assert len(list(engine.state.store.items(Family.ENTRIES))) <= 3


def test_copy_that_changes_is_remembered_no_longer_by_an_earlier_text() -> None:
    """What is in the index of it expires as before: the next copy is kept in reserve for the newest one there."""
    with Deduplicator(settings=_LONG) as engine:
        process = Process(engine, whole=False)
        process(article("a"), article("b", variant=3), article("x", at=_day(3)), article("b", variant=2, at=_day(3.1)))
        process(article("c", at=_day(3.2)), Withdrawal("x"))
        assert process(article("d", at=_day(3.2 + 16 * 7 / 8) - 1)) == ["d exact of a"]


@pytest.mark.parametrize("whole", [True, False])
def test_of_a_copy_that_changes_the_newest_text_alone_is_in_reserve(*, whole: bool) -> None:
    """The entry of the text before is removed: nothing refers to it any more."""
    texts = [article("b", variant=variant, at=BEGIN + n) for n, variant in enumerate([1, 2, 5])]
    with Deduplicator(settings=_LONG) as engine:
        told = Process(engine, whole=whole)(article("a"), *texts)
        assert told[1:] == ["b exact of a", "b near of a", "b contained of a"]
        stored = [value for _, value in engine.state.store.items(Family.ENTRIES)]
        assert sorted(engine.state.index.format.unpack(stored)[1]) == [b"a", b"b"]


def test_copy_that_is_in_the_index_is_not_in_reserve_too() -> None:
    """A copy has one place in its cluster: another text of it, which need not be found, leaves that to the next."""
    with Deduplicator(settings=_LONG) as engine:
        process = Process(engine, whole=False)
        process(article("a"), article("b", variant=3), article("x", at=_day(3)))
        assert process(article("b", variant=2, at=_day(3.1))) == ["b near of a"]
        assert engine.progress.entries == 3


def test_canonical_articles_may_be_withdrawn_one_after_another() -> None:
    """As long as another copy comes in between, however old the story is."""
    with Deduplicator(settings=_LONG) as engine:
        process = Process(engine, whole=False)
        process(*(article(f"x{n}", at=_day(8.0 * n)) for n in range(5)))
        for n, gone in enumerate(["x0", "x3", "x4"]):
            copies = [article(f"y{n}{m}", at=_day(32.2 + n / 5 + m / 10)) for m in range(2)]
            assert not any(told.endswith("unique") for told in process(*copies, Withdrawal(gone)))
        assert process(article("z", at=_day(33))) == ["z exact of y00"]


def _day(days: float) -> int:
    return BEGIN + round(days * DAY)
