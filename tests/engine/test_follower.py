"""A state that is followed while an engine writes it: queries get the answer that the engine itself would give."""

import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from stream_dedup import Article, Deduplicator
from stream_dedup.article import Decision, Relation, Withdrawal, Withdrawn
from stream_dedup.ask.answers import StatusAnswer
from stream_dedup.ask.follower import StateFollower
from stream_dedup.ask.lookup import Lookup, UnknownArticleError
from stream_dedup.ask.query_service import NoReasonError, QueryService, UniqueArticleError
from stream_dedup.engine.clusters import MOST_MEMBERS
from stream_dedup.index.records.records import UNKNOWN_TIME
from stream_dedup.index.runs.shelf import Shelf
from stream_dedup.index.stores import database, rocks
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Family, StoreDamagedError, StoreError
from stream_dedup.observe.health import Health
from stream_dedup.observe.http import MonitoringServer
from stream_dedup.observe.metrics import Metrics
from stream_dedup.output_fields import iso
from stream_dedup.settings import HttpSettings, Settings
from stream_dedup.stream.formats import Formats
from tests.engine.model import BEGIN, DAY, HOUR, article, text
from tests.engine.samples import LIGHT, articles

_BATCH = 40
_YOUNG = 24  # entries at which young lists become a run: few, so that there are several runs, and merged ones


def _settings(directory: Path) -> Settings:
    return Settings.model_validate({"state": {"directory": directory}, "idf": {"first_epoch_articles": 100}})


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Deduplicator]:
    """An engine that freezes often, on a state that can be followed."""
    with Deduplicator(tmp_path / "state", _settings(tmp_path / "state")) as engine:
        engine.state.index.shelf.young_entries = _YOUNG
        engine.process(articles()[:_BATCH])
        yield engine


def _anew(article: Article) -> Article:
    return replace(article, id=f"again-{article.id}", url="", origin=None)


def _fill(engine: Deduplicator) -> list[Decision]:
    decisions: list[Decision] = []
    for start in range(_BATCH, len(articles()), _BATCH):
        decisions += engine.process(articles()[start : start + _BATCH]).decisions
    return decisions


def test_what_a_text_is_like_is_what_the_engine_would_decide(engine: Deduplicator, tmp_path: Path) -> None:
    """The most similar article is the one a link would name, with the same numbers, across epochs, runs and merges."""
    with QueryService(_settings(tmp_path / "state")) as queries:
        copies = 0
        for start in range(_BATCH, len(articles()), _BATCH):
            engine.process(articles()[start : start + _BATCH])
            # Otherwise, while a loop is still being compiled, a merge would outlast all batches.
            engine.state.index.shelf.finish(engine.progress)
            queries.refresh()
            for article in map(_anew, articles()[start : start + _BATCH : 3]):
                (decision,) = engine.decide([article]).decisions
                answer = queries.similar(article)
                assert answer.unseen_entries == 0
                assert answer.decision == ("unique" if decision.unique else "duplicate")
                if decision.link is None:
                    continue
                copies += 1
                best = answer.articles[0]
                assert best.relation is decision.link.relation
                assert best.canonical == decision.link.duplicate_of
                assert (best.jaccard, best.containment) == pytest.approx(
                    (decision.link.jaccard, decision.link.containment), abs=1e-4
                )
        assert copies > _BATCH
        assert max(run.entries for run in engine.state.index.shelf.runs) > 3 * _YOUNG  # some were merged


def _light(directory: Path, **groups: dict[str, object]) -> Settings:
    """Return settings of engines that are cheap to create, with some changed."""
    light = LIGHT.model_dump()
    return Settings.model_validate(
        {**light, **{name: {**light[name], **own} for name, own in groups.items()}, "state": {"directory": directory}}
    )


def test_decision_is_that_of_the_engine_where_the_likest_is_no_duplicate(tmp_path: Path) -> None:
    """A copy that counts as a duplicate comes first, ahead of one that is more similar but does not count."""
    settings = _light(tmp_path / "state", verify={"duplicates": ["contained"]})
    half = text(0, 5)
    with Deduplicator(tmp_path / "state", settings) as engine:
        for one in (Article("changed", half[:-3]), article("whole")):
            assert engine.add(one).unique
        assert engine.decide([Article("?", half)]).decisions[0].link
        with QueryService(settings) as queries:
            answer = queries.similar(Article("?", half))
            besides = queries.similar(Article("?", half), besides="whole")
    assert (answer.decision, answer.articles[0].id, answer.articles[0].relation) == ("duplicate", "whole", "contained")
    assert {one.id for one in answer.articles} == {"whole", "changed"}
    assert (besides.decision, besides.articles[0].id) == ("unique", "changed")


def test_decision_is_that_of_the_engine_along_a_chain_of_edits(tmp_path: Path) -> None:
    """A text that resembles only a drifted copy, and not closely, is a copy of neither article."""
    settings = _light(tmp_path / "state")
    asked = Article("?", text(1, 0)[:50] + text(0, 3)[50:])
    with Deduplicator(tmp_path / "state", settings) as engine:
        drifted = engine.add_batch([article("original"), article("drifted", variant=3)])[1]
        assert (drifted.unique, drifted.indexed) == (False, True)
        assert engine.decide([asked]).decisions[0].link is None
        with QueryService(settings) as queries:
            answer = queries.similar(asked)
    assert answer.decision == "unique"
    assert (answer.articles[0].id, answer.articles[0].relation) == ("drifted", "near")


def test_similar_bulletin_is_told_from_a_copy_by_its_ground(tmp_path: Path) -> None:
    """A bulletin with other numbers is above both thresholds, and no copy: the answer says that it is the template."""
    bulletin = (
        "最高气温{}度，最低气温{}度，相对湿度百分之{}，风力{}级，空气质量指数为{}。请市民合理安排出行，注意防晒和补水，"
        "老人和儿童尽量避免在午后外出。监测站将继续发布信息，欢迎通过热线和网站查询，并以当地气象台的最新预报为准。"
    )
    monday, tuesday = bulletin.format(31, 22, 60, 3, 45), bulletin.format(12, 8, 77, 5, 91)
    settings = _settings(tmp_path / "state")
    with Deduplicator(tmp_path / "state", settings) as engine:
        engine.add(Article("monday", monday))
        with QueryService(settings) as queries:
            other, same = (queries.similar(Article("?", body)).articles[0] for body in (tuesday, monday))
    assert min(other.jaccard / settings.verify.near_jaccard, other.containment / settings.verify.min_containment) > 1
    assert (other.relation, other.ground, same.relation, same.ground) == (None, "template", "exact", "exact")


def test_nothing_is_remembered_of_a_question(engine: Deduplicator, tmp_path: Path) -> None:
    """Asking about a text does not make it known."""
    article = Article("asked", "这是一篇只被问过、从来没有进入过数据流的文章，里面有足够多的词语。" * 3)
    with QueryService(_settings(tmp_path / "state")) as queries:
        for _ in range(2):
            queries.refresh()
            assert queries.similar(article).decision == "unique"
        with pytest.raises(UnknownArticleError, match="'asked'"):
            queries.article("asked")
    assert engine.progress.judged == _BATCH


def test_articles_and_clusters_are_those_of_the_decisions(engine: Deduplicator, tmp_path: Path) -> None:
    """Each article has its link, and each cluster all the members and sources that links name."""
    with QueryService(_settings(tmp_path / "state")) as queries:
        decisions = _fill(engine)
        queries.refresh()
        for decision in decisions:
            link = decision.link
            if link is None or link.relation in {Relation.REDELIVERY, Relation.REVISION}:
                continue
            answer = queries.article(decision.article.id)
            assert answer.link is not None
            assert (answer.link.matched, answer.link.hamming) == (link.matched, link.hamming)
            assert answer.link.candidate_source is link.source
            cluster = queries.cluster(decision.article.id, most=1000)
            members = {member.id: member for member in cluster.members}
            assert {decision.article.id, link.matched, link.duplicate_of} <= set(members)
            assert members[cluster.canonical].canonical
            assert len(members) == cluster.copies + 1 == sum(one.articles for one in cluster.sources) == cluster.known
            assert sum(moment.articles for moment in cluster.timeline) == len(members)


def test_article_has_its_own_times_and_texts(tmp_path: Path) -> None:
    """It arrived with its first text, and was decided on with its newest; from files, it has no time of arrival."""
    settings = _light(tmp_path / "state")
    with Deduplicator(tmp_path / "state", settings) as engine:
        engine.add_batch([article("a", lag=HOUR), article("a", 1, at=BEGIN + HOUR, lag=0)])
        with StateFollower(tmp_path / "state", settings) as follower, follower.view() as view:
            told, of_files = (
                Lookup(view, set(), UNKNOWN_TIME, from_files=from_files).article("a") for from_files in (False, True)
            )
    newest = iso(BEGIN + HOUR)
    assert (told.received_at, told.published_at, told.stream_time) == (iso(BEGIN), newest, newest)
    assert (told.texts, told.characters) == (2, len(text(1, 0)))
    assert (of_files.received_at, of_files.published_at) == (None, told.published_at)


def test_cluster_counts_sources_that_it_does_not_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those named come with the most articles first; the rest are counted together."""
    monkeypatch.setattr("stream_dedup.engine.clusters.MOST_SOURCES", 2)
    settings = _light(tmp_path / "state")
    sources = ("one", "two", "two", "three", "four", "four")
    with Deduplicator(tmp_path / "state", settings) as engine:
        engine.add_batch([article(f"c{n}", at=BEGIN + n, source=source) for n, source in enumerate(sources)])
        with QueryService(settings) as queries:
            cluster = queries.cluster("c0")
    assert [(one.source, one.articles) for one in cluster.sources] == [("two", 2), ("one", 1)]
    assert (cluster.distinct_sources, cluster.other_sources_articles) == (2, 3)
    assert (cluster.first_seen, cluster.last_seen) == (iso(BEGIN), iso(BEGIN + 5))


def test_no_more_similar_articles_are_told_than_asked_for(engine: Deduplicator, tmp_path: Path) -> None:
    """Those that are most similar."""
    _fill(engine)
    with QueryService(_settings(tmp_path / "state")) as queries:
        every = queries.similar(_anew(articles()[0]), 100).articles
        assert queries.similar(_anew(articles()[0]), 1).articles == every[:1]
    assert len(every) > 1


StatusAfter = Callable[[QueryService, float], StatusAnswer]


@pytest.fixture
def status_after(monkeypatch: pytest.MonkeyPatch) -> StatusAfter:
    """Refreshes after some seconds of a clock of its own, and returns the status."""
    clock = [1_000.0]
    monkeypatch.setattr("stream_dedup.ask.query_service.time", SimpleNamespace(monotonic=lambda: clock[0]))

    def after(queries: QueryService, seconds: float) -> StatusAnswer:
        clock[0] += seconds
        queries.refresh()
        return queries.status()

    return after


def test_rate_is_that_of_the_articles_between_two_refreshes(tmp_path: Path, status_after: StatusAfter) -> None:
    """Per second, over about a second or more; at first it is unknown."""
    directory = tmp_path / "state"
    with Deduplicator(directory, _settings(directory)) as engine:
        engine.process(articles()[:1])
        with QueryService(_settings(directory)) as queries:
            assert status_after(queries, 0.0).rate is None
            engine.process(articles()[1:11])
            assert status_after(queries, 0.5).rate is None
            assert status_after(queries, 1.5).rate == 5.0
            engine.process(articles()[11:14])
            assert status_after(queries, 4.0).rate == 0.8
            assert status_after(queries, 0.5).rate == 0.8
            assert status_after(queries, 1.0).rate == 0.0


def test_members_come_page_by_page(engine: Deduplicator, tmp_path: Path) -> None:
    """Pages of two add up to the whole, in the same order."""
    _fill(engine)
    with QueryService(_settings(tmp_path / "state")) as queries:
        sizes = {article.id: queries.cluster(article.id).known for article in articles() if _known(queries, article.id)}
        largest = max(sizes, key=lambda name: sizes[name])
        whole = queries.cluster(largest).members
        pages = [queries.cluster(largest, most=2, skipped=start).members for start in range(0, len(whole), 2)]
        assert [member for page in pages for member in page] == whole
        assert len(whole) > 2


def test_of_a_large_cluster_the_newest_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed are the newest, the one asked for and those the cluster keeps itself; all copies are counted."""
    monkeypatch.setattr("stream_dedup.ask.lookup._MOST_JOINS", 5)
    story = articles()[0]
    hour = 3_600_000
    copies = [replace(story, id=f"c{i}", url="", published_ms=i * hour, origin=None) for i in range(40)]
    with Deduplicator(tmp_path / "state", _settings(tmp_path / "state")) as engine:
        for copy in copies:
            engine.process([copy])
        with QueryService(_settings(tmp_path / "state")) as queries:
            cluster = queries.cluster("c25")
            link = queries.article("c25").link
    told = [member.id for member in cluster.members]
    assert {"c0", "c25", "c35", "c36", "c37", "c38", "c39"} <= set(told)
    assert "c30" not in told
    assert (cluster.copies, cluster.known) == (39, len(told))
    assert next(member.link for member in cluster.members if member.id == "c25") == link


def test_article_that_joined_often_counts_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a query reads is bounded, even if one id has joined a cluster a million times."""
    read: list[bytes] = []
    items = RocksStore.items

    def counted(
        store: RocksStore, family: Family, prefix: bytes = b"", *, descending: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        for key, value in items(store, family, prefix, descending=descending):
            if family is Family.MEMBERS:
                read.append(key)
            yield key, value

    monkeypatch.setattr("stream_dedup.ask.lookup._MOST_JOINS", 5)
    settings = _light(tmp_path / "state")
    with Deduplicator(tmp_path / "state", settings) as engine:
        engine.process([article("story", at=BEGIN)])
        for n in range(20):
            engine.process([article("ticker", variant=n % 2, at=BEGIN + n + 1)])
        monkeypatch.setattr(RocksStore, "items", counted)
        with QueryService(settings) as queries:
            read.clear()
            cluster = queries.cluster("story")
    assert [member.id for member in cluster.members] == ["story", "ticker"]
    assert len(read) <= 5


def test_what_is_left_of_a_cluster_that_has_ended_stands_alone(tmp_path: Path) -> None:
    """Once all members that a cluster keeps are withdrawn, each remaining copy is its own canonical article."""
    settings = _light(tmp_path / "state")
    with Deduplicator(tmp_path / "state", settings) as engine:
        engine.add_batch([article(f"c{n:02d}", at=BEGIN + n) for n in range(MOST_MEMBERS + 2)])
        withdrawn = engine.process([Withdrawal(f"c{n:02d}") for n in range(MOST_MEMBERS)]).outcomes[-1]
        assert isinstance(withdrawn, Withdrawn)
        assert withdrawn.canonical is None
        last = f"c{MOST_MEMBERS + 1}"
        link = engine.decide([article(last)]).decisions[0].link
        assert link is not None
        with QueryService(settings) as queries:
            told, cluster = queries.article(last), queries.cluster(last)
    assert told.canonical == cluster.canonical == link.duplicate_of == last
    assert (cluster.copies, [member.id for member in cluster.members]) == (0, [last])


def test_article_is_told_once_however_many_texts_it_had(tmp_path: Path) -> None:
    """If two texts of one article resemble the query, the more similar one counts."""
    first, other = articles()[0], articles()[1]
    second = replace(first, body=first.body + "编辑部后来又补充了一句，说夜市周末照常开放。", origin=None)
    with Deduplicator(tmp_path / "state", _settings(tmp_path / "state")) as engine:
        for article in (first, second, other):
            engine.process([article])
        with QueryService(_settings(tmp_path / "state")) as queries:
            answers = [queries.similar(replace(article, id="x", url="")).articles for article in (first, second)]
    for (told, *more), characters in zip(answers, (len(first.body), len(second.body)), strict=True):
        assert (told.id, told.relation, told.jaccard) == (first.id, Relation.EXACT, 1.0), characters
        assert first.id not in [like.id for like in more]


def test_only_who_is_named_is_left_out_of_a_decision(tmp_path: Path) -> None:
    """The id of the query text itself excludes nothing: an article may happen to have that id."""
    article = replace(articles()[0], id="?", url="")
    with Deduplicator(tmp_path / "state", _settings(tmp_path / "state")) as engine:
        engine.process([article])
        with QueryService(_settings(tmp_path / "state")) as queries:
            assert queries.similar(article).decision == "duplicate"
            assert queries.similar(article, besides="?").decision == "unique"


def test_matched_article_that_was_revised_since_is_known_as_such(tmp_path: Path) -> None:
    """The link is to the old text; another copy, of the new text, is linked to the new one."""
    first, other = (replace(one, origin=None) for one in articles()[:2])
    copy = replace(first, id="copy", url="")
    with Deduplicator(tmp_path / "state", _settings(tmp_path / "state")) as engine:
        for article in (first, copy, replace(first, body=other.body), replace(copy, id="late", body=other.body)):
            engine.process([article])
        with StateFollower(tmp_path / "state", _settings(tmp_path / "state")) as follower, follower.view() as view:
            lookup = Lookup(view, set(), UNKNOWN_TIME)
            records = {name: lookup.record(name) for name in (first.id, "copy", "late")}
            joins = {name: lookup.joined(name, record) for name, record in records.items()}
            revised = {
                name: joined is not None and lookup.is_revised(joined, records[first.id])
                for name, joined in joins.items()
            }
    assert revised == {"copy": True, "late": False, first.id: False}


def test_link_of_an_earlier_text_is_not_told_of_the_newest(tmp_path: Path) -> None:
    """A canonical article whose text changes is a revision, even if its earlier text was a copy."""
    settings = _light(tmp_path / "state", cluster={"canonical": "longest"})
    with Deduplicator(tmp_path / "state", settings) as engine:
        stream = [article("a"), article("b", variant=1, at=BEGIN + 1), article("b", variant=2, at=BEGIN + 2)]
        *_, copied, revised = engine.add_batch(stream)
        with QueryService(settings) as queries:
            answer, cluster = queries.article("b"), queries.cluster("b")
            with pytest.raises(UniqueArticleError, match="is a revision of an article"):
                queries.reason("b")
    assert (copied.unique, revised.unique, revised.link and revised.link.relation) == (False, True, "revision")
    assert (answer.decision, answer.relation, answer.canonical, answer.link) == ("unique", "revision", "b", None)
    assert [(member.id, member.link) for member in cluster.members] == [("a", None), ("b", None)]


def test_what_was_matched_is_named_also_once_its_cluster_is_sealed(tmp_path: Path) -> None:
    """Sealing rewrites the matched entry; the article's next text is still told from the one that matched."""
    settings = _light(tmp_path / "state", cluster={"variants": 2})
    with Deduplicator(tmp_path / "state", settings) as engine, QueryService(settings) as queries:
        engine.add_batch([article("a"), article("b", variant=1), article("drifted", variant=3)])
        queries.refresh()
        link = queries.article("b").link
        assert link is not None
        assert link.matched == "a"
        with StateFollower(tmp_path / "state", settings) as follower:
            for text_of_a, revised in ((0, False), (1, True)):
                engine.add(article("a", text_of_a))
                follower.refresh()
                with follower.view() as view:
                    lookup = Lookup(view, set(), UNKNOWN_TIME)
                    joined = lookup.joined("b", lookup.record("b"))
                    assert joined is not None
                    assert lookup.is_revised(joined, lookup.record("a")) is revised


def test_copy_of_which_the_link_has_expired_is_still_a_copy(tmp_path: Path) -> None:
    """A canonical article stays known as long as copies come, longer than the reason it once was a copy."""
    settings = _light(tmp_path / "state", cluster={"canonical": "longest"}, window={"days": 2})
    stream = [article("a"), article("b", variant=1, at=BEGIN + 1)]
    stream += [article(f"c{n}", at=BEGIN + n * 20 * HOUR) for n in range(1, 8)]
    with Deduplicator(tmp_path / "state", settings) as engine:
        assert not any(decision.unique for decision in engine.add_batch(stream)[1:])
        with QueryService(settings) as queries:
            answer = queries.article("b")
            assert (answer.decision, answer.relation, answer.link) == ("duplicate", "exact", None)
            with pytest.raises(NoReasonError, match="is a copy of has expired") as told:
                queries.reason("b")
    assert not isinstance(told.value, UniqueArticleError)


def test_relation_that_makes_no_duplicate_leaves_an_article_unique(tmp_path: Path) -> None:
    """Its link is not stored, and the message says what it was found to be."""
    settings = Settings.model_validate(
        {"state": {"directory": tmp_path / "state"}, "verify": {"duplicates": ["near", "redelivery"]}}
    )
    first, *_ = articles()
    with Deduplicator(tmp_path / "state", settings) as engine:
        engine.add_batch([first, replace(first, id="again", url="")])
        with QueryService(settings) as queries:
            answer = queries.article("again")
            with pytest.raises(UniqueArticleError, match="'again' is unique, though exact, not a copy: name an"):
                queries.reason("again")
    assert (answer.decision, answer.relation, answer.link) == ("unique", "exact", None)


def test_revision_that_counts_as_a_duplicate_is_no_copy(tmp_path: Path) -> None:
    """Of the same article there is no second one, so nothing has expired; one of the same page is linked to it."""
    settings = Settings.model_validate(
        {"state": {"directory": tmp_path / "state"}, "verify": {"duplicates": ["exact", "near", "revision"]}}
    )
    first, other, third = (replace(article, url="https://u.example/1") for article in articles()[:3])
    with Deduplicator(tmp_path / "state", settings) as engine:
        for article in (first, replace(first, body=other.body), third):
            engine.process([article])
        with QueryService(settings) as queries:
            of_page = queries.article(third.id)
            assert (of_page.decision, of_page.relation, of_page.canonical) == ("duplicate", "revision", first.id)
            assert of_page.link is not None
            assert (of_page.link.matched, of_page.link.relation) == (first.id, "revision")
            assert queries.article(first.id).decision == "duplicate"
            with pytest.raises(UniqueArticleError, match="is a revision of an article"):
                queries.reason(first.id)


def test_state_of_files_has_nothing_of_a_service_beside_it(tmp_path: Path) -> None:
    """The service on the port has another state; it is not asked for its links."""
    with Deduplicator(tmp_path / "state", _settings(tmp_path / "state")) as engine:
        engine.process(articles()[:1])
    metrics = Metrics()
    metrics.articles.labels("other", "unique", "none").inc(7)
    with MonitoringServer(HttpSettings(port=0), metrics, Health(60)) as monitoring:
        http = HttpSettings(port=int(monitoring.url.rpartition(":")[2]))
        with QueryService(_settings(tmp_path / "state").model_copy(update={"http": http})) as queries:
            status, latest = queries.status(), queries.latest(10)
    assert (status.running, status.decisions, status.duplicates, latest) == (False, {}, None, [])


def _known(queries: QueryService, name: str) -> bool:
    try:
        queries.article(name)
    except UnknownArticleError:
        return False
    return True


def test_a_withdrawn_article_is_not_known_any_more(engine: Deduplicator, tmp_path: Path) -> None:
    """Nor is its text found."""
    article = articles()[0]
    with QueryService(_settings(tmp_path / "state")) as queries:
        assert queries.article(article.id).id == article.id
        engine.process([Withdrawal(article.id)])
        queries.refresh()
        with pytest.raises(UnknownArticleError):
            queries.article(article.id)
        assert article.id not in [like.id for like in queries.similar(_anew(article)).articles]


def test_many_may_ask_while_the_state_grows(engine: Deduplicator, tmp_path: Path) -> None:
    """Threads that query and refresh during freezing and merging get complete answers and no errors."""
    faults: list[BaseException] = []
    ending = threading.Event()
    with QueryService(_settings(tmp_path / "state")) as queries:

        def ask(seed: int) -> None:
            try:
                for number in range(seed, 10_000):
                    if ending.is_set():
                        return
                    article = articles()[number % _BATCH]
                    if seed == 0:
                        queries.refresh()
                    assert queries.similar(_anew(article)).articles
                    assert queries.cluster(article.id).known >= 1
            except BaseException as error:  # noqa: BLE001  # reported by the test's own thread
                faults.append(error)

        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        _fill(engine)
        ending.set()
        for thread in threads:
            thread.join()
    assert not faults


def test_what_has_left_the_window_is_not_known_any_more(tmp_path: Path) -> None:
    """Its record is kept for a while, but its canonical id may by then belong to another article."""
    settings = _light(tmp_path / "state", window={"days": 2})
    with Deduplicator(tmp_path / "state", settings) as engine, QueryService(settings) as queries:
        for at, known in ((BEGIN + 2 * DAY, True), (BEGIN + 2 * DAY + 1, False)):
            engine.add_batch([article("a"), article("b", variant=1), article("late", 1, at=at)])
            queries.refresh()
            assert _known(queries, "b") is known
        engine.add(article("a", 2, at=BEGIN + 2 * DAY + 2))
        queries.refresh()
        assert [queries.cluster("a").copies, queries.article("a").canonical] == [0, "a"]
        with pytest.raises(UnknownArticleError, match="older than the window"):
            queries.cluster("b")


def test_link_to_what_has_left_the_window_has_no_reason_any_more(tmp_path: Path) -> None:
    """The copy stays known longer than the article it was linked to."""
    settings = _light(tmp_path / "state", window={"days": 2})
    stream = [article("a"), article("drifted", variant=3), article("b", variant=3, at=BEGIN + HOUR)]
    stream.append(article("late", 1, at=BEGIN + 2 * DAY + 1))
    with Deduplicator(tmp_path / "state", settings) as engine, QueryService(settings) as queries:
        engine.add_batch(stream)
        queries.refresh()
        link = queries.article("b").link
        assert link is not None
        # Its entry is still there, for as long as its generation.
        assert link.matched is None
        links = {member.id: member.link for member in queries.cluster("b").members}
        assert links == {"a": None, "b": link}
        with pytest.raises(NoReasonError, match="has expired or was withdrawn"):
            queries.reason("b")


def test_entries_are_made_to_be_found_where_that_can_keep_up(tmp_path: Path) -> None:
    """A refresh that finds more new entries than its limit leaves them; later refreshes catch up."""
    directory = tmp_path / "state"

    def unseen(follower: StateFollower) -> int:
        with follower.view() as view:
            return view.unseen

    with Deduplicator(directory, _settings(directory)) as engine:
        engine.process(articles()[:1])
        with StateFollower(directory, _settings(directory)) as follower:
            assert unseen(follower) == 0
            before = engine.progress.entries
            engine.process(articles()[1:_BATCH])
            new = engine.progress.entries - before
            follower.refresh(new - 1)
            assert unseen(follower) == new
            follower.refresh(new - 1)
            assert unseen(follower) == 1
            engine.process(articles()[_BATCH : _BATCH + 3])
            follower.refresh(10)
            assert unseen(follower) == 0


def test_registry_is_disconnected_with_the_queries(
    engine: Deduplicator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the queries are closed, or their state cannot be opened."""
    closed: list[Formats] = []

    def noted(formats: Formats) -> None:
        closed.append(formats)

    monkeypatch.setattr(Formats, "close", noted)
    with QueryService(_settings(tmp_path / "state")):
        assert not closed
    assert len(closed) == 1
    (tmp_path / "state" / "CURRENT").write_text("MANIFEST-0\n")
    with pytest.raises(StoreError):
        QueryService(_settings(tmp_path / "state"))
    assert len(closed) == 2
    assert engine.progress.judged == _BATCH


def test_nothing_is_loaded_again_while_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh looks at the lists only after a write: of a commit, or of a run that has been frozen since."""
    directory, reloads = tmp_path / "state", list[Shelf]()
    reload_runs = Shelf.reload_runs

    def noted(shelf: Shelf) -> None:
        reloads.append(shelf)
        reload_runs(shelf)

    monkeypatch.setattr(Shelf, "reload_runs", noted)
    with Deduplicator(directory, _settings(directory)) as engine:
        engine.process(articles()[:_BATCH])
        with StateFollower(directory, _settings(directory)) as follower:
            reloads.clear()
            follower.refresh()
            follower.refresh()
            assert not reloads
            engine.process(articles()[_BATCH : _BATCH + 3])
            follower.refresh()
            follower.refresh()
            assert len(reloads) == 1
            engine.state.index.shelf.young_entries = 1
            engine.state.index.shelf.finish(engine.progress)
            follower.refresh()
            assert len(reloads) == 2
            with follower.view() as view:
                assert [run.stop for run in view.index.shelf.runs] == [engine.progress.entries]


def test_entries_are_left_to_the_writer_while_too_many_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status_after: StatusAfter
) -> None:
    """A refresh that finds no new ones, between two commits of a busy stream, does not index any either."""
    directory = tmp_path / "state"
    monkeypatch.setattr("stream_dedup.ask.query_service._UNSEARCHED", 20)
    with Deduplicator(directory, _settings(directory)) as engine:
        engine.process(articles()[:1])
        with QueryService(_settings(directory)) as queries:
            assert status_after(queries, 1.0).unseen_entries == 0
            before = engine.progress.entries
            engine.process(articles()[1:_BATCH])
            new = engine.progress.entries - before
            assert new > 20
            assert status_after(queries, 1.0).unseen_entries == new
            assert status_after(queries, 0.5).unseen_entries == new  # as many arrived within the second
            assert status_after(queries, 0.5).unseen_entries == new  # the same; from here on none arrive
            assert status_after(queries, 0.5).unseen_entries == new - 10
            assert status_after(queries, 10.0).unseen_entries == 0


def test_file_that_the_writer_removes_meanwhile_is_not_missing(
    engine: Deduplicator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compaction may take a file away after its name was read: opening begins anew. If it stays away, it is damage."""
    left, check = [1], database.check_files

    def overtaken(directory: Path, no_logs: Path) -> None:
        if left[0]:
            left[0] -= 1
            raise OSError(f"IO error: No such file or directory: {directory}/000009.sst")
        check(directory, no_logs)

    monkeypatch.setattr(rocks, "check_files", overtaken)
    with StateFollower(tmp_path / "state", _settings(tmp_path / "state")) as follower, follower.view() as view:
        assert view.progress.judged == engine.progress.judged == _BATCH
    left[0] = 100
    with pytest.raises(StoreDamagedError, match="it is damaged"):
        StateFollower(tmp_path / "state", _settings(tmp_path / "state"))


def test_another_state_in_the_same_place_is_taken_for_what_it_is(tmp_path: Path) -> None:
    """This is what a restore from the changelog does: it discards the directory."""
    directory = tmp_path / "state"
    with Deduplicator(directory, _settings(directory)) as engine:
        engine.process(articles()[:_BATCH])
    with StateFollower(directory, _settings(directory)) as follower:
        with follower.view() as view:
            assert view.progress.judged == _BATCH
        shutil.rmtree(directory)
        with pytest.raises(StoreError, match="no state"):
            follower.refresh()
        with Deduplicator(directory, _settings(directory)) as engine:
            engine.process(articles()[:7])
            follower.refresh()
            with follower.view() as view:
                assert view.progress.judged == 7


def test_snapshot_in_the_place_of_its_state_is_taken_for_what_it_is(tmp_path: Path) -> None:
    """To RocksDB it is the same database, and even the names of its files are those of the state before."""
    directory, snapshot = tmp_path / "state", tmp_path / "snapshot"
    settings, kept, gone = _settings(directory), articles()[:7], articles()[7:_BATCH]
    with Deduplicator(directory, settings) as engine:
        engine.process(kept)
        assert isinstance(engine.state.store, RocksStore)
        engine.state.store.checkpoint(snapshot)
    with Deduplicator(directory, settings) as engine:
        engine.process(gone)
    with QueryService(settings) as queries:
        shutil.rmtree(directory)
        snapshot.rename(directory)
        with Deduplicator(directory, settings):
            queries.refresh()
            assert queries.article(kept[-1].id).id == kept[-1].id
            with pytest.raises(UnknownArticleError):
                queries.article(gone[-1].id)


def test_snapshot_that_no_service_has_opened_can_be_asked(tmp_path: Path) -> None:
    """It is a state like any other, and is followed once a service has it."""
    directory, snapshot = tmp_path / "state", tmp_path / "snapshot"
    first, more = articles()[:7], articles()[7:_BATCH]
    with Deduplicator(directory, _settings(directory)) as engine:
        engine.process(first)
        assert isinstance(engine.state.store, RocksStore)
        engine.state.store.checkpoint(snapshot)
    with QueryService(_settings(snapshot)) as queries:
        assert queries.article(first[-1].id).id == first[-1].id
        with Deduplicator(snapshot, _settings(snapshot)) as engine:
            engine.process(more)
            queries.refresh()
            assert queries.article(more[-1].id).id == more[-1].id


def test_what_cannot_be_followed_is_told(tmp_path: Path) -> None:
    """No state, or one whose fingerprints are not comparable."""
    with pytest.raises(StoreError, match="no state"):
        StateFollower(tmp_path / "nothing", _settings(tmp_path))
    directory = tmp_path / "state"
    with Deduplicator(directory, _settings(directory)) as engine:
        engine.process(articles()[:3])
    other = Settings.model_validate({"state": {"directory": directory}, "sketch": {"gram": 4}})
    with pytest.raises(StoreError, match=r"sketch\.gram = 5 in the state, 4 in the settings"):
        StateFollower(directory, other)
