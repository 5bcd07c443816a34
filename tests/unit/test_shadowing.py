"""A shadow whose state fails, or whose broker is away, does not affect the stream."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, NoReturn
from unittest.mock import MagicMock

import pytest
from structlog.testing import capture_logs

from stream_dedup import Article
from stream_dedup.article import Decision, Link, Relation, Source
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.index.records.ledger import Positions
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import StoreError, StoreFullError
from stream_dedup.observe.metrics import Metrics
from stream_dedup.settings import load_settings
from stream_dedup.stream.commit import shadowing
from stream_dedup.stream.commit.shadowing import Shadow

_ARTICLE = Article("a", "大桥今天通车。")


@pytest.fixture
def metrics() -> Metrics:
    """Return metrics of a process."""
    return Metrics()


class _Live(NamedTuple):
    engine: Deduplicator
    begin: Callable[[], Shadow]


@pytest.fixture
def live(tmp_path: Path, metrics: Metrics) -> Iterator[_Live]:
    """Return a live engine that has judged nothing, and what begins a shadow beside it."""
    settings = load_settings(
        flags=[
            "shadow.enabled=true",
            "shadow.verify.near_jaccard=0.9",
            f"state.directory={tmp_path / 'state'}",
            "kafka.bootstrap.servers=127.0.0.1:1",
        ]
    )
    directory = tmp_path / "state" / "live"
    directory.mkdir(parents=True)
    with RocksStore(directory) as store, Deduplicator(settings=settings, store=store) as engine:
        yield _Live(engine, lambda: Shadow(settings, engine, store, directory, metrics))


@pytest.fixture
def shadow(live: _Live) -> Shadow:
    """Return a shadow beside a live engine that has judged nothing."""
    return live.begin()


def _judged(shadow: Shadow) -> None:
    shadow.judge([_ARTICLE], None, [], {})


def _value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"stream_dedup_shadow_{name}", labels)


def test_shadow_on_a_full_disk_ends_alone(shadow: Shadow, metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failures to judge and to close are each logged once, and it no longer counts as running."""
    release = Deduplicator.close

    def close(engine: Deduplicator) -> NoReturn:
        release(engine)
        raise StoreError("cannot close: no space left")

    def decide(*_: object) -> NoReturn:
        raise StoreFullError("no space left")

    with monkeypatch.context() as failing, capture_logs() as lines, closing(shadow):
        failing.setattr(Deduplicator, "decide", decide)
        failing.setattr(Deduplicator, "close", close)
        assert _value(metrics, "running") == 1
        _judged(shadow)
        assert _value(metrics, "running") == 0
        _judged(shadow)
    told = [line["error"] for line in lines if line["event"] == "shadow_ended"]
    assert told == ["StoreFullError", "StoreError"]


def test_disagreements_that_no_broker_takes_are_counted_and_not_kept(
    shadow: Shadow, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to a number they wait for it; further ones would fill the memory."""
    monkeypatch.setattr(shadowing, "_MOST_WAITING", 3)
    found = Link("original", "original", Relation.NEAR, 0.5, 0.5, 3, Source.LANDMARK)
    with closing(shadow):
        for number in range(8):
            article = Article("a", "大桥今天通车。", scope=f"{number}")
            copy = Decision(article, unique=False, fingerprint=1, epoch=0, link=found, indexed=False)
            shadow.judge([article], None, [copy], {})
    assert _value(metrics, "articles_total", disagreement="unique") == 8
    assert _value(metrics, "left_out_total") == 5


def test_disagreements_of_a_commit_are_counted_sampled_by_name_and_sent_before_the_end(
    live: _Live, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id may be in several scopes: each has its own chance. What is still queued at the end is sent then."""
    producer, asked = MagicMock(), list[str]()

    def is_sampled(name: str, _share: float) -> bool:
        asked.append(name)
        return len(asked) > 1

    monkeypatch.setattr(shadowing, "make_producer", lambda _: producer)
    monkeypatch.setattr(shadowing, "is_sampled", is_sampled)
    found = Link("original", "original", Relation.NEAR, 0.5, 0.5, 3, Source.LANDMARK)
    articles = [Article("a", body, scope=f"{n}") for n, body in enumerate(["大桥今天通车。", "地铁明天停运。", "雨。"])]
    copies = [Decision(one, unique=False, fingerprint=1, epoch=0, link=found, indexed=False) for one in articles]
    with closing(live.begin()) as shadow:
        shadow.judge(articles, None, copies, {})
        assert _value(metrics, "articles_total", disagreement="unique") == 3
        assert asked == [article.name for article in articles]
        assert [call.args[2] for call in producer.produce.call_args_list] == [one.encode() for one in asked[1:]]
        producer.flush.assert_not_called()
    producer.flush.assert_called_once()


@pytest.mark.parametrize(
    ("missed", "positions", "told"),
    [
        ([], {}, "shadow_goes_on"),
        ([], {("in", 0): 2}, "shadow_discarded"),  # a message that was not judged, or a withdrawal
        ([Article("b", "地铁明天停运。")], {}, "shadow_discarded"),
    ],
)
def test_shadow_goes_on_only_where_it_has_missed_nothing(
    live: _Live, missed: Sequence[Article], positions: Positions, told: str
) -> None:
    """It is compared by positions and by what was judged; in its place begins a copy of the live state."""
    live.engine.apply(live.engine.decide([_ARTICLE]).change, {("in", 0): 1})
    with closing(live.begin()):
        pass
    if missed or positions:
        live.engine.apply(live.engine.decide(missed).change, positions)
    with capture_logs() as lines, closing(live.begin()) as shadow:
        shadow.judge([], None, [], {("in", 0): 3})
    begins = ["shadow_begins"] * (told == "shadow_discarded")
    assert [line["event"] for line in lines if line["event"].startswith("shadow")] == [told, *begins]
    # What it judges moves it as it moves the live state.
    live.engine.apply(live.engine.decide([]).change, {("in", 0): 3})
    with capture_logs() as lines, closing(live.begin()):
        pass
    assert [line["event"] for line in lines if line["event"].startswith("shadow")] == ["shadow_goes_on"]
