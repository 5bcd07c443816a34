"""What each refusal and each outage of the broker does to a transaction."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from threading import Event, Thread

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, though its types do not say so
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from deploy.broker import KafkaBroker
from stream_dedup.settings import Settings, SettingsError
from stream_dedup.stream import protocol
from stream_dedup.stream.kafka.clients import BrokerError, check_properties, producer_properties
from stream_dedup.stream.output import exactly_once
from stream_dedup.stream.output import writer as writer_
from stream_dedup.stream.output.errors import AbortedError, FencedError, OutcomeUnknownError
from stream_dedup.stream.output.writer import GroupOffsets, Writer
from stream_dedup.stream.protocol import Step
from tests.stream.rights import enforce
from tests.stream.topics import create_topic, delete_topic
from tests.stream.waiting import stand_still, wait_until
from tests.stream.writing import RECORDS, SECONDS, Stage, member, send_and_commit, staged

_DEADLINE_SECONDS = 30.0  # of a commit
_SILENT_CALLS = 8  # of a waiting writer, until the broker is heard again
_TICK_SECONDS = 0.05


@pytest.fixture(scope="module")
def frail() -> Iterator[KafkaBroker]:
    """A broker for this module alone, which checks ACLs and may be silenced."""
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        # Its controller, which is silenced with it, would otherwise declare it dead, and not recover for a while.
        "broker.session.timeout.ms": "60000",
    }
    with KafkaBroker(properties) as broker:
        yield broker


# ------------------------------------------------------------------------------------------------ refusals


def test_message_that_the_topic_does_not_take_is_no_reason_to_try_again(stage: Stage) -> None:
    """The error says what to change; what was sent with the message does not count, and the writer stays usable."""
    create_topic(stage.bootstrap, f"{stage.name}.small", max_bytes=2_000)
    writer = stage.writer()
    writer.begin()
    writer.send(stage.output, b"a", b"with it", [])
    writer.send(f"{stage.name}.small", b"a", os.urandom(5_000), [])
    with pytest.raises(BrokerError, match=r"max\.message\.bytes") as error:
        writer.commit(RECORDS, None)
    assert not isinstance(error.value, FencedError | OutcomeUnknownError)
    assert not writer.in_transaction
    writer.begin()
    writer.send(stage.output, b"b", b"later", [])
    writer.commit([], None)
    assert stage.committed(stage.output) == [(b"b", b"later")]
    assert stage.committed(stage.changelog) == []


def test_writing_on_after_a_refused_message_tells_the_first_cause(stage: Stage) -> None:
    """A failed transaction accepts no further messages: the error is that of the message that failed."""
    create_topic(stage.bootstrap, f"{stage.name}.small", max_bytes=2_000)
    writer = stage.writer()
    writer.begin()
    writer.send(f"{stage.name}.small", b"a", os.urandom(5_000), [])

    def refused() -> bool:
        try:
            writer.send(stage.output, b"b", b"more", [])
        except BrokerError as error:
            assert "max.message.bytes" in str(error)  # noqa: PT017  # raised by one of many calls
            return True
        return False

    wait_until(refused, "the refusal comes with a later message")
    assert not writer.in_transaction


def test_message_larger_than_the_client_takes_is_refused_at_once(stage: Stage) -> None:
    """Neither a message over the client's limit nor one that cannot fit its queue is waited for."""
    for settings, told in (
        (stage.settings(producer_message_max_bytes="100000"), r"max\.message\.bytes"),
        (stage.settings(producer_queue_buffering_max_kbytes="100"), r"queue\.buffering\.max\.kbytes"),
    ):
        writer = stage.writer(settings)
        writer.begin()
        with pytest.raises(BrokerError, match=told):
            writer.send(stage.output, b"a", bytes(200_000), [])
        assert not writer.in_transaction


def test_queue_that_is_full_slows_the_sending(stage: Stage) -> None:
    """More than the queue holds gets through, and the caller is called while it waits."""
    writer = stage.writer(stage.settings(producer_queue_buffering_max_kbytes="100", producer_compression_type="none"))
    writer.begin()
    for n in range(300):
        writer.send(stage.output, b"%d" % n, bytes(10_000), [])
    assert stage.waits
    writer.commit([], None)
    assert len(stage.committed(stage.output)) == 300


def test_record_without_a_key_is_refused_by_a_compacted_topic(stage: Stage) -> None:
    """The error gives the broker's reason, and nothing is retried."""
    admin = AdminClient({"bootstrap.servers": stage.bootstrap})
    compacted = f"{stage.name}.compacted"
    admin.create_topics([NewTopic(compacted, 1, -1, config={"cleanup.policy": "compact"})])[compacted].result(SECONDS)
    writer = stage.writer()
    writer.begin()
    writer.send(compacted, None, b"v", [])
    with pytest.raises(BrokerError, match="without a key"):
        writer.commit([], None)


def test_topic_that_was_deleted_is_named(stage: Stage) -> None:
    """The transaction fails at whichever of its messages comes next, and the broker's words name no topic."""
    deleted = f"{stage.name}.clusters"
    create_topic(stage.bootstrap, deleted)
    writer = stage.writer(stage.settings(producer_topic_metadata_propagation_max_ms="100"))

    def refused() -> bool:
        # A message that waited when its topic was deleted only aborts.
        with suppress(AbortedError):
            writer.begin()
            writer.send(stage.output, b"a", b"1", [])
            writer.send(deleted, b"a", b"1", [])
            writer.commit(RECORDS, None)
        return False

    refused()
    delete_topic(stage.bootstrap, deleted)
    with pytest.raises(BrokerError, match=f"the broker no longer has {deleted}: "):
        wait_until(refused, "the refusal")


def test_missing_rights_are_named(frail: KafkaBroker) -> None:
    """Topic and transactional id need separate rights: the error says which to grant."""
    with staged(frail.bootstrap) as stage:
        deny(stage, ResourceType.TOPIC, stage.output, AclOperation.WRITE)
        writer = stage.writer()
        writer.begin()
        with pytest.raises(BrokerError, match="Write on the topic"):
            send_and_commit(writer, stage)
        assert not writer.in_transaction
        deny(stage, ResourceType.TRANSACTIONAL_ID, stage.changelog, AclOperation.WRITE)
        with pytest.raises(BrokerError, match="transactional id"):
            stage.writer()


def deny(stage: Stage, kind: ResourceType, name: str, operation: AclOperation) -> None:
    """Deny one operation and allow all others, which a single rule would deny as well."""
    rules = [
        AclBinding(kind, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", what, permission)
        for what, permission in ((operation, AclPermissionType.DENY), (AclOperation.ALL, AclPermissionType.ALLOW))
    ]
    enforce(stage.bootstrap, rules)


# -------------------------------------------------------------------------------------------------- outages


def test_silence_of_the_broker_is_outlasted_and_the_caller_goes_on_beating(
    frail: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever call it hits, the commit succeeds once in the end, and the caller was called every second.

    Here it is called four times as often, until the broker is heard again. Time is counted by a thread of this process:
    it stands still while the machine gives the process none.
    """
    calls: list[int] = []
    assert writer_.SLICE_SECONDS <= 1.0  # as it is shipped
    for module in (writer_, exactly_once):
        monkeypatch.setattr(module, "SLICE_SECONDS", 0.25)
    with staged(frail.bootstrap) as stage, member(stage) as consumer, _ticks() as ticks:

        def called() -> None:
            calls.append(ticks())
            if len(calls) == _SILENT_CALLS:
                os.kill(frail.pid, signal.SIGCONT)

        writer = stage.writer(while_waiting=called)
        for n, step in enumerate((Step.BEGUN, Step.CONFIRMED, Step.OFFSETS_SENT)):
            with silence_at(step, frail, calls.clear):
                writer.begin()
                writer.send(stage.output, b"%d" % n, b"v", [])
                writer.commit(
                    [(b"%d" % n, b"v")], GroupOffsets({(stage.input, 0): n}, consumer.consumer_group_metadata())
                )
            assert len(calls) >= _SILENT_CALLS, step
            assert max(after - before for before, after in pairwise(calls)) * _TICK_SECONDS < 1.5, step
        assert stage.committed(stage.output) == [(b"0", b"v"), (b"1", b"v"), (b"2", b"v")]
        assert stage.committed(stage.changelog) == [(b"0", b"v"), (b"1", b"v"), (b"2", b"v")]
        assert stage.group_offset() == 2


@contextmanager
def _ticks() -> Iterator[Callable[[], int]]:
    """Yield what returns how often a thread of this process has woken up from a short sleep so far."""
    slept, over = 0, Event()

    def sleep() -> None:
        nonlocal slept
        while not over.wait(_TICK_SECONDS):
            slept += 1

    thread = Thread(target=sleep)
    thread.start()
    try:
        yield lambda: slept
    finally:
        over.set()
        thread.join()


@contextmanager
def silence_at(step: Step, broker: KafkaBroker, then: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Silence the broker as soon as a step is reached, until the end of the block unless it is continued before."""

    def reached(now: Step) -> None:
        if now is step:
            stand_still(broker.pid)
            then()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "reached", reached)
        try:
            yield
        finally:
            os.kill(broker.pid, signal.SIGCONT)


class _Clock:
    """The time as the writer sees it, which a test may move on: no broker is so slow that a deadline passes before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._skipped = 0.0
        self.sleep = time.sleep
        for module in (writer_, exactly_once):
            monkeypatch.setattr(module, "time", self)

    def monotonic(self) -> float:
        return time.monotonic() + self._skipped

    def pass_deadline(self) -> None:
        self._skipped += 2 * _DEADLINE_SECONDS


def test_commit_without_an_answer_has_an_unknown_outcome(frail: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is neither committed nor aborted for certain: the process must end, and the next start reads the log."""
    clock, silent = _Clock(monkeypatch), Event()
    with staged(frail.bootstrap) as stage:
        settings = stage.settings(deadline=_DEADLINE_SECONDS)
        writer = stage.writer(settings, lambda: clock.pass_deadline() if silent.is_set() else None)
        writer.begin()
        writer.send(stage.output, b"a", b"v", [])
        with silence_at(Step.CONFIRMED, frail, silent.set), pytest.raises(OutcomeUnknownError):
            writer.commit(RECORDS, None)
        # The request was in the broker's socket and is processed after all, so reporting an abort would be wrong.
        wait_until(lambda: stage.committed(stage.changelog) == RECORDS, "the broker commits")
        writer.close()
        assert not writer.in_transaction


def test_confirmation_that_does_not_come_aborts_and_nothing_counts(
    frail: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the deadline the transaction is aborted, the broker being back, and the same batch then counts once."""
    clock, silent = _Clock(monkeypatch), Event()

    def go_on() -> None:
        if silent.is_set():
            silent.clear()
            clock.pass_deadline()
        else:
            os.kill(frail.pid, signal.SIGCONT)

    with staged(frail.bootstrap) as stage:
        writer = stage.writer(stage.settings(deadline=_DEADLINE_SECONDS), go_on)
        with silence_at(Step.BEGUN, frail, silent.set):
            writer.begin()
            writer.send(stage.output, b"a", b"first", [])
            with pytest.raises(AbortedError):
                writer.commit(RECORDS, None)
        writer.begin()
        writer.send(stage.output, b"a", b"again", [])
        writer.commit(RECORDS, None)
        assert stage.committed(stage.output) == [(b"a", b"again")]
        assert stage.committed(stage.changelog) == RECORDS


@pytest.mark.parametrize("step", [Step.BEGUN, Step.CONFIRMED, Step.OFFSETS_SENT])
def test_caller_may_give_up_while_the_broker_is_silent(frail: KafkaBroker, step: Step) -> None:
    """It can be stopped in the middle of a commit, and closing does not wait long for the broker."""
    opened: list[Writer] = []

    def stop() -> None:
        if opened:
            raise BrokerError("stopped")

    with staged(frail.bootstrap) as stage, member(stage) as consumer:
        writer = stage.writer(while_waiting=stop)
        with silence_at(step, frail, lambda: opened.append(writer)):
            writer.begin()
            writer.send(stage.output, b"a", b"v", [])
            began = time.monotonic()
            with pytest.raises(BrokerError, match="stopped"):
                writer.commit(RECORDS, GroupOffsets({(stage.input, 0): 1}, consumer.consumer_group_metadata()))
            writer.close()
            assert time.monotonic() - began < _DEADLINE_SECONDS  # nothing waits until then


def test_opening_without_a_broker_ends_at_the_deadline(stage: Stage) -> None:
    """The caller is called in the meantime, and the error says how long it tried."""
    settings = stage.settings(deadline=2, bootstrap_servers="127.0.0.1:1")
    with pytest.raises(BrokerError, match="within 2 s"):
        stage.writer(settings)
    assert stage.waits


# ----------------------------------------------------------------------------------------------- properties


def test_transactional_id_is_for_the_service_to_choose() -> None:
    """If users set it, it could fence another index, or fail to fence where it must."""
    for name in ("transactional.id", "producer.transactional.id"):
        settings = Settings.model_validate({"kafka": {name: "mine"}})
        with pytest.raises(SettingsError, match=r"transactional\.id"):
            producer_properties(settings, "index")


@pytest.mark.parametrize("deadline", [5, 60, 240])
def test_times_of_a_transaction_fit_into_each_other(deadline: float) -> None:
    """A message times out before the transaction it belongs to; librdkafka accepts all the values."""
    settings = Settings.model_validate({"commit": {"deadline_seconds": deadline}})
    properties = producer_properties(settings, "index")
    assert int(properties["delivery.timeout.ms"]) == deadline * 1000
    assert int(properties["delivery.timeout.ms"]) < int(properties["transaction.timeout.ms"]) <= 900_000
    check_properties(settings)


def test_broker_that_allows_shorter_transactions_only_says_what_to_set(stage: Stage) -> None:
    """transaction.max.timeout.ms is 15 minutes by default; an administrator may have lowered it."""
    settings = stage.settings(producer_transaction_timeout_ms="2000000")
    with pytest.raises(BrokerError, match=r"transaction\.timeout\.ms"):
        stage.writer(settings)
