"""How open transactions are looked for, with clients that answer what the test says.

Knows the questions and their order; what a real broker hides is tested in tests/stream.
"""

from collections.abc import Mapping
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from stream_dedup.settings import Settings
from stream_dedup.stream.kafka import patience as patience_
from stream_dedup.stream.kafka import transactions as transactions_
from stream_dedup.stream.kafka.transactions import has_open_transaction, tells_unstable_offsets

_SETTINGS = Settings.model_validate({"kafka": {}})
_SILENT = KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN, "no broker"))  # noqa: SLF001  # librdkafka's name


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> dict[str, Mock]:
    """Return a client for each level at which open transactions may be read; each is closed once."""
    made = {level: Mock(name=level) for level in ("read_committed", "read_uncommitted")}

    def make(_settings: Settings, properties: Mapping[str, Any]) -> Mock:
        return made[properties["isolation.level"]]

    monkeypatch.setattr(transactions_, "make_consumer", make)
    monkeypatch.setattr(patience_, "_PAUSE_SECONDS", 0.0)
    return made


@pytest.mark.parametrize(("stable", "found"), [(6, True), (7, False), (9, False)])
def test_transaction_is_open_where_what_is_committed_ends_earlier(
    clients: dict[str, Mock], stable: int, *, found: bool
) -> None:
    """The caller is called while the broker is away, and both clients are closed."""
    waits = Mock()
    clients["read_uncommitted"].get_watermark_offsets.side_effect = [_SILENT, (5, 7)]
    clients["read_committed"].get_watermark_offsets.return_value = (5, stable)
    assert has_open_transaction(_SETTINGS, "changelog", waits) is found
    waits.assert_called_once()
    for client in clients.values():
        assert client.get_watermark_offsets.call_args.args == (TopicPartition("changelog", 0),)
        client.close.assert_called_once()


@pytest.mark.parametrize(("outcome", "told"), [(None, True), (_SILENT, False)])
def test_broker_that_is_silent_hides_nothing(
    clients: dict[str, Mock], outcome: KafkaException | None, *, told: bool
) -> None:
    """Otherwise transactions of others would be aborted for an outage; it is asked for as long as the caller says."""
    client, places = clients["read_uncommitted"], [TopicPartition("in", 0)]
    client.committed.side_effect = outcome
    assert tells_unstable_offsets(_SETTINGS, places, 0.5) is told
    client.committed.assert_called_once_with(places, timeout=0.5)
    client.close.assert_called_once()
