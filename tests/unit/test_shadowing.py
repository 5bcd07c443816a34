"""A shadow whose state fails, or whose broker is away, does not affect the stream."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from stream_dedup import Article
from stream_dedup.article import Decision, Link, Relation, Source
from stream_dedup.engine.dedup import Deduplicator
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


@pytest.fixture
def shadow(tmp_path: Path, metrics: Metrics) -> Iterator[Shadow]:
    """Return a shadow beside a live engine that has judged nothing."""
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
    with RocksStore(directory) as store, Deduplicator(settings=settings, store=store) as live:
        yield Shadow(settings, live, store, directory, metrics)


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
