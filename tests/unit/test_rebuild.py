"""A stop of `state rebuild` while no broker answers."""

import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from stream_dedup.settings import Settings
from stream_dedup.stream import rebuild as rebuild_
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.rebuild import Rebuild


@pytest.mark.parametrize("known", [False, True], ids=["topics", "writer"])
def test_stop_is_obeyed_while_the_broker_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, known: bool
) -> None:
    """Whether the topics are asked for, or the writer is opened: nobody has to wait until either gives up."""
    if known:
        topics = Mock(**{"other_changelogs.return_value": [], "identity.return_value": "changelog/1"})
        monkeypatch.setattr(rebuild_, "Topics", lambda *_: topics)
    kafka = {"bootstrap.servers": "127.0.0.1:1"}
    settings = Settings.model_validate({"state": {"directory": str(tmp_path)}, "kafka": kafka})
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(BrokerError, match="before the stop: run the same command again"):
        Rebuild(settings, lambda *_: None, stopping).run()
