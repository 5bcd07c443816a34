"""Writers whose client does not answer, or fails in a way of its own: they end, and never wait for ever.

Knows the calls of a client; what a broker makes of them is tested in tests/stream.
"""

import re
import threading
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException

from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.output import at_least_once, exactly_once
from stream_dedup.stream.output import writer as writer_
from stream_dedup.stream.output.at_least_once import AtLeastOnceWriter
from stream_dedup.stream.output.errors import AbortedError, FencedError, StuckError, final_error
from stream_dedup.stream.output.exactly_once import ExactlyOnceWriter
from stream_dedup.stream.output.guarantees import make_writer
from stream_dedup.stream.output.writer import GroupOffsets

_SETTINGS = Settings.model_validate({"kafka": {}, "commit": {"deadline_seconds": 30}})
_OFFSETS = GroupOffsets({("in", 0): 1}, object())


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Return a client that accepts and confirms everything."""
    made = Mock(**{"flush.return_value": 0, "list_topics.return_value.topics": dict.fromkeys(["out", "changelog"])})
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


@pytest.mark.parametrize(
    ("code", "raised", "said"),
    [
        (KafkaError.UNKNOWN_MEMBER_ID, AbortedError, "no longer counts this process as a member"),
        (KafkaError.ILLEGAL_GENERATION, AbortedError, "no longer counts this process as a member"),
        (KafkaError.FENCED_INSTANCE_ID, AbortedError, "no longer counts this process as a member"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, BrokerError, "grant the right Read on the consumer group"),
    ],
)
def test_group_that_says_no_is_asked_once(client: Mock, code: int, raised: type[Exception], said: str) -> None:
    """Nothing is written, whether another process may have taken over or rights are missing."""
    ask = Mock(side_effect=KafkaException(KafkaError(code)))
    writer = AtLeastOnceWriter(_SETTINGS, "changelog", lambda: None, ask_group=ask)
    with pytest.raises(raised, match=said):
        writer.begin()
    ask.assert_called_once()
    client.produce.assert_not_called()


@pytest.mark.parametrize(
    "code",
    [KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED],  # noqa: SLF001  # librdkafka's name
)
def test_every_way_of_saying_that_another_writer_took_over_is_known(code: int) -> None:
    """An end for any other reason would be told as a fault of the broker."""
    assert isinstance(final_error("changelog", "cannot commit", KafkaError(code), 30), FencedError)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, "max.message.bytes (kafka.producer.batch.size"),
        (KafkaError.RECORD_LIST_TOO_LARGE, "segment.bytes"),
        (KafkaError.INVALID_MSG, "the broker's log"),
        (KafkaError.INVALID_RECORD, "without a key"),
        (KafkaError.POLICY_VIOLATION, "the broker's policies"),
        (KafkaError.TOPIC_EXCEPTION, "choose another topic"),
        (KafkaError._UNKNOWN_TOPIC, "create the topic"),  # noqa: SLF001  # the same
        (KafkaError._UNKNOWN_PARTITION, "create the topic"),  # noqa: SLF001  # the same
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "create the topic"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "Write on the topic"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "Read on the consumer group"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "IdempotentWrite on the cluster"),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Write and Describe on the transactional id"),
        (KafkaError.INVALID_TRANSACTION_TIMEOUT, "kafka.producer.transaction.timeout.ms"),
        (KafkaError._UNSUPPORTED_FEATURE, "commit.guarantee = at_least_once"),  # noqa: SLF001  # the same
        (KafkaError.UNSUPPORTED_VERSION, "commit.guarantee = at_least_once"),
    ],
)
def test_refusal_ends_the_writer_with_what_to_do(client: Mock, code: int, advice: str) -> None:
    """Deciding the same batch again would only be refused again, until the aborts are given up with no advice."""
    client.begin_transaction.side_effect = [None, KafkaException(KafkaError(KafkaError._STATE))]  # noqa: SLF001  # the same
    client.send_offsets_to_transaction.side_effect = KafkaException(KafkaError(code, "refused"))
    writer = ExactlyOnceWriter(_SETTINGS, "changelog", lambda: None)
    writer.begin()
    with pytest.raises(BrokerError, match=rf"refused \(\w+\): .*{re.escape(advice)}"):
        writer.commit([], _OFFSETS)
    client.abort_transaction.assert_called_once()


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.INVALID_TXN_STATE])
@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({"out", "changelog"}, "cannot write to changelog: failed"),
        ({"changelog", "another"}, "the broker no longer has clusters, out: failed"),
    ],
)
def test_topic_that_was_deleted_is_named_whichever_message_the_transaction_failed_at(
    client: Mock, code: int, kept: set[str], said: str
) -> None:
    """It fails as a whole, often at a topic that is still there."""
    client.list_topics.return_value.topics = dict.fromkeys(kept | ({"clusters"} if "out" in kept else set()))
    writer = ExactlyOnceWriter(_SETTINGS, "changelog", lambda: None)
    writer.begin()
    writer.send("out", b"a", b"1", [])
    writer.send("clusters", b"a", b"1", [])
    client.produce.side_effect = KafkaException(KafkaError(code, "failed", fatal=True))
    with pytest.raises(BrokerError, match=said):
        writer.commit([(b"k", b"v")], None)


def test_error_is_told_without_the_deleted_topic_if_the_broker_does_not_list_them(client: Mock) -> None:
    """The error itself must not be lost for it."""
    client.list_topics.side_effect = KafkaException(KafkaError(KafkaError._TRANSPORT))  # noqa: SLF001  # librdkafka's name
    client.produce.side_effect = KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE, "failed", fatal=True))
    writer = ExactlyOnceWriter(_SETTINGS, "changelog", lambda: None)
    writer.begin()
    with pytest.raises(BrokerError, match="cannot write to changelog: failed"):
        writer.commit([(b"k", b"v")], None)


@pytest.mark.parametrize("passing", [True, False])
def test_time_of_retries_is_told_of_faults_that_were_retried(*, passing: bool) -> None:
    """Others ended the writer at once."""
    fault = KafkaError(KafkaError.NETWORK_EXCEPTION, "gone", retriable=passing)
    assert ("no success within 30 s" in str(final_error("changelog", "cannot commit", fault, 30))) is passing


def test_without_transactions_nothing_is_asked_of_the_broker_that_takes_any(
    client: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have none, or refuse the rights to them: only one that was left open is ended."""
    monkeypatch.setattr(exactly_once, "has_open_transaction", lambda *_: False)
    AtLeastOnceWriter(_SETTINGS, "changelog", lambda: None).open()
    client.init_transactions.assert_not_called()


def test_without_transactions_an_abort_drops_what_is_not_sent_yet(client: Mock) -> None:
    """It would only reach the broker a second time with the batch that is decided again."""
    writer = AtLeastOnceWriter(_SETTINGS, "changelog", lambda: None)
    writer.begin()
    writer.send("out", b"a", b"1", [])
    writer.abort()
    assert [name for name, *_ in client.method_calls if name in {"purge", "flush"}] == ["purge", "flush"]


@pytest.mark.parametrize(
    ("guarantee", "raised", "said"),
    [
        ("exactly_once", AbortedError, "the broker did not accept a message: refused"),
        ("at_least_once", BrokerError, r"a message to out: refused \(_DESTROY\): create the topic$"),
    ],
)
def test_message_that_waited_when_its_topic_was_deleted_is_told_with_what_to_do(
    client: Mock, guarantee: str, raised: type[Exception], said: str
) -> None:
    """Librdkafka drops it with an error of its own; a transaction finds out itself whether the topic is back."""
    fault = KafkaError(KafkaError._DESTROY, "refused")  # noqa: SLF001  # librdkafka's name
    client.produce.side_effect = lambda topic, *sent, **_: sent[3](fault, Mock(**{"topic.return_value": topic}))
    settings = Settings.model_validate({"kafka": {}, "commit": {"guarantee": guarantee}})
    writer = make_writer(settings, "changelog", lambda: None, ask_group=lambda _: True)
    writer.begin()
    writer.send("out", b"a", b"1", [])
    with pytest.raises(raised, match=said):
        writer.commit([], None)


@pytest.mark.parametrize(("guarantee", "asked"), [("exactly_once", False), ("at_least_once", True)])
def test_group_is_asked_where_the_broker_fences_nobody(client: Mock, guarantee: str, *, asked: bool) -> None:
    """Two writers of one changelog would ruin it."""
    settings, ask = Settings.model_validate({"kafka": {}, "commit": {"guarantee": guarantee}}), Mock(return_value=True)
    make_writer(settings, "changelog", lambda: None, ask_group=ask).begin()
    assert (ask.called, client.begin_transaction.called) == (asked, not asked)
