"""Writers whose client does not answer, or fails in a way of its own: they end, and never wait for ever.

Knows the calls of a client; what a broker makes of them is tested in tests/stream.
"""

import threading
from unittest.mock import Mock

import pytest

from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.output import at_least_once, exactly_once
from stream_dedup.stream.output import writer as writer_
from stream_dedup.stream.output.at_least_once import AtLeastOnceWriter
from stream_dedup.stream.output.errors import StuckError
from stream_dedup.stream.output.exactly_once import ExactlyOnceWriter
from stream_dedup.stream.output.writer import GroupOffsets

_SETTINGS = Settings.model_validate({"kafka": {}, "commit": {"deadline_seconds": 30}})
_OFFSETS = GroupOffsets({("in", 0): 1}, object())


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Return a client that accepts and confirms everything."""
    made = Mock(**{"flush.return_value": 0})
    monkeypatch.setattr(writer_, "make_producer", lambda *_: made)
    return made


def test_error_that_is_not_kafkas_ends_the_commit_too(client: Mock) -> None:
    """Otherwise the transaction would be committed without the offsets."""
    client.send_offsets_to_transaction.side_effect = TypeError("no metadata of a group")
    writer = ExactlyOnceWriter(_SETTINGS, "changelog", lambda: None)
    writer.begin()
    with pytest.raises(TypeError, match="no metadata"):
        writer.commit([], _OFFSETS)
    client.commit_transaction.assert_not_called()


def test_call_that_does_not_return_is_given_up(client: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Librdkafka may wait for a coordinator that is gone, for minutes after it is back: a new writer does not."""
    monkeypatch.setattr(writer_, "SLICE_SECONDS", 0.01)
    monkeypatch.setattr(exactly_once, "SLICE_SECONDS", 0.01)
    monkeypatch.setattr(exactly_once, "_STUCK_SECONDS", 0.1)
    answers, waits = threading.Event(), list[None]()
    client.send_offsets_to_transaction.side_effect = lambda *_: answers.wait(60)
    writer = ExactlyOnceWriter(_SETTINGS, "changelog", lambda: waits.append(None))
    writer.begin()
    try:
        with pytest.raises(StuckError):
            writer.commit([], _OFFSETS)
    finally:
        answers.set()
    assert waits
    client.commit_transaction.assert_not_called()


def test_group_that_does_not_answer_is_given_up_at_the_deadline(client: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its word that no other process has taken over, nothing is written; the caller stays alive meanwhile."""
    clock, waits = Mock(**{"monotonic.return_value": 1_000.0}), list[None]()
    for module in (writer_, at_least_once):
        monkeypatch.setattr(module, "time", clock)

    def ask(seconds: float) -> bool:
        clock.monotonic.return_value += seconds
        return False

    writer = AtLeastOnceWriter(_SETTINGS, "changelog", lambda: waits.append(None), ask_group=ask)
    with pytest.raises(BrokerError, match="no answer from the owners' group"):
        writer.begin()
    assert 1_030 < clock.monotonic.return_value < 1_031
    assert len(waits) > 100
    client.produce.assert_not_called()
