"""A shadow whose state fails does not affect the stream."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from stream_dedup import Article
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import StoreError, StoreFullError
from stream_dedup.observe.metrics import Metrics
from stream_dedup.settings import load_settings
from stream_dedup.stream.commit.shadowing import Shadow

_ARTICLE = Article("a", "大桥今天通车。")


@pytest.fixture
def shadow(tmp_path: Path) -> Iterator[Shadow]:
    """Return a shadow beside a live engine that has judged nothing."""
    settings = load_settings(
        flags=["shadow.enabled=true", "shadow.verify.near_jaccard=0.9", f"state.directory={tmp_path / 'state'}"]
    )
    directory = tmp_path / "state" / "live"
    directory.mkdir(parents=True)
    with RocksStore(directory) as store, Deduplicator(settings=settings, store=store) as live:
        yield Shadow(settings, live, store, directory, Metrics())


def _judged(shadow: Shadow) -> None:
    shadow.judge([_ARTICLE], None, [], {})


def test_shadow_on_a_full_disk_ends_alone(shadow: Shadow, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failures to judge and to close are each logged once."""
    release = Deduplicator.close

    def close(engine: Deduplicator) -> NoReturn:
        release(engine)
        raise StoreError("cannot close: no space left")

    def decide(*_: object) -> NoReturn:
        raise StoreFullError("no space left")

    with monkeypatch.context() as failing, capture_logs() as lines, closing(shadow):
        failing.setattr(Deduplicator, "decide", decide)
        failing.setattr(Deduplicator, "close", close)
        _judged(shadow)
        _judged(shadow)
    told = [line["error"] for line in lines if line["event"] == "shadow_ended"]
    assert told == ["StoreFullError", "StoreError"]
