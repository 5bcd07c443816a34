"""What a commit leaves on the broker, and what each fault of the broker does to a transaction."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from threading import Timer
from uuid import uuid4

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupState,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
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
from stream_dedup.stream.output.at_least_once import AtLeastOnceWriter
from stream_dedup.stream.output.errors import AbortedError, FencedError, OutcomeUnknownError
from stream_dedup.stream.output.exactly_once import ExactlyOnceWriter
from stream_dedup.stream.output.writer import Writer
from stream_dedup.stream.protocol import Step
from tests.stream.harness import create_topic, create_topics, new_topic, stand_still, wait_until

SECONDS = 20.0
RECORDS = [(b"k1", b"v1"), (b"k2", None)]


class Stage:
    """Topics of one test on one broker, their writers, and what readers of committed messages see.

    Args:
        bootstrap: the broker.
        partitions: of the input.
    """

    def __init__(self, bootstrap: str, partitions: int = 1) -> None:
        self.bootstrap = bootstrap
        self.name = f"t{uuid4().hex[:12]}"
        self.input, self.output, self.changelog = (f"{self.name}.{kind}" for kind in ("in", "out", "log"))
        self.waits = 0
        self.writers: list[Writer] = []
        create_topics(bootstrap, new_topic(self.input, partitions), *map(new_topic, (self.output, self.changelog)))

    def settings(self, guarantee: str = "exactly_once", deadline: float = 30, **properties: str) -> Settings:
        """Return settings; properties are spelled with underscores instead of dots."""
        dotted = {name.replace("_", "."): value for name, value in properties.items()}
        made = Settings.model_validate(
            {
                "input": {"topics": [self.input], "group": self.name},
                "commit": {"guarantee": guarantee},
                "kafka": {"bootstrap.servers": self.bootstrap, **dotted},
            }
        )
        # Less than users may set, so that a test need not wait as long.
        return made.model_copy(update={"commit": made.commit.model_copy(update={"deadline_seconds": deadline})})

    def writer(
        self, settings: Settings | None = None, while_waiting: Callable[[], None] | None = None
    ) -> ExactlyOnceWriter:
        """Return an open writer with transactions; all of this stage have the same id."""
        made = ExactlyOnceWriter(settings or self.settings(), self.changelog, while_waiting or self.wait)
        self.writers.append(made)
        made.open()
        return made

    def writer_without_transactions(
        self, ask_group: Callable[[float], bool] = lambda _: True, **properties: str
    ) -> AtLeastOnceWriter:
        """Return an open writer without transactions; for `ask_group` see there."""
        settings = self.settings("at_least_once", 30, **properties)
        made = AtLeastOnceWriter(settings, self.changelog, self.wait, ask_group=ask_group)
        self.writers.append(made)
        made.open()
        return made

    def wait(self) -> None:
        """Count how often a writer was waiting."""
        self.waits += 1

    def committed(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Return `visible` once no transaction is open: markers are written after the commit returns."""
        wait_until(lambda: self.ends(topic)[0] == self.ends(topic)[1], f"no open transaction in {topic}")
        return self.visible(topic)

    def visible(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        """Return the keys and values that a read_committed reader gets, to the end of a topic."""
        properties = {"enable.partition.eof": "true", "isolation.level": "read_committed", "fetch.wait.max.ms": "20"}
        found: list[tuple[bytes | None, bytes | None]] = []
        with reading(self.bootstrap, **properties) as consumer:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(SECONDS)
                assert message is not None
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error  # noqa: SLF001  # librdkafka's name
                    return found
                found.append((message.key(), message.value()))

    def ends(self, topic: str) -> tuple[int, int]:
        """Return a topic's last stable offset and high watermark: they differ while a transaction is open."""
        return tuple(self._end(topic, level) for level in ("read_committed", "read_uncommitted"))  # type: ignore[return-value]

    def _end(self, topic: str, level: str) -> int:
        with reading(self.bootstrap, **{"isolation.level": level}) as consumer:
            return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=SECONDS)[1])

    def group_offset(self) -> int:
        """Return what the input's group has committed; negative if nothing."""
        with reading(self.bootstrap, **{"group.id": self.name}) as consumer:
            (place,) = consumer.committed([TopicPartition(self.input, 0)], timeout=SECONDS)
            return int(place.offset)


@contextmanager
def reading(bootstrap: str, **properties: str) -> Iterator[Consumer]:
    """Make a consumer that shares its group with no other, unless a property says otherwise."""
    own = {"bootstrap.servers": bootstrap, "group.id": f"r-{uuid4().hex[:12]}", "enable.auto.commit": "false"}
    with closing(Consumer({**own, "log_level": "0", **properties})) as consumer:
        yield consumer


@contextmanager
def member(stage: Stage) -> Iterator[Consumer]:
    """Make a member of the input's group that has its partitions."""
    with reading(stage.bootstrap, **{"group.id": stage.name}) as consumer:
        consumer.subscribe([stage.input])

        def assigned() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_until(assigned, "the group has its partitions")
        yield consumer


@pytest.fixture
def stage(bootstrap: str) -> Iterator[Stage]:
    """Topics on the session's broker."""
    with staged(bootstrap) as made:
        yield made


@contextmanager
def staged(bootstrap: str) -> Iterator[Stage]:
    """Make a stage whose writers are closed at the end."""
    made = Stage(bootstrap)
    try:
        yield made
    finally:
        for writer in made.writers:
            writer.close()


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


def steps(monkeypatch: pytest.MonkeyPatch, look: Callable[[Step], object] = lambda _: None) -> list[Step]:
    """Return a list to which steps are added as they are reached."""
    reached: list[Step] = []

    def note(step: Step) -> None:
        reached.append(step)
        look(step)

    monkeypatch.setattr(protocol, "reached", note)
    return reached


# ------------------------------------------------------------------------------------------ commit and abort


def test_commit_makes_outputs_records_and_offsets_visible(stage: Stage) -> None:
    """Before it nothing is visible; after it all three are, and the offset after the last record is returned."""
    writer = stage.writer()
    with member(stage) as consumer:
        writer.begin()
        writer.send(stage.output, b"a", b"article", [("h", b"x")])
        assert stage.visible(stage.output) == []
        behind = writer.commit(RECORDS, {(stage.input, 0): 41}, consumer.consumer_group_metadata())
    assert stage.committed(stage.output) == [(b"a", b"article")]
    assert stage.committed(stage.changelog) == RECORDS
    assert stage.group_offset() == 41
    assert behind == 2
    assert not writer.in_transaction


def test_abort_leaves_nothing_and_the_next_transaction_counts(stage: Stage) -> None:
    """What was sent is never visible, though it is on the broker; the writer can be used again."""
    writer = stage.writer()
    writer.begin()
    writer.send(stage.output, b"a", b"aborted", [])
    wait_until(lambda: stage.ends(stage.output)[1] > 0, "the message lies on the broker")
    writer.abort()
    assert not writer.in_transaction
    writer.begin()
    writer.send(stage.output, b"b", b"committed", [])
    assert writer.commit([], {}, None) is None
    assert stage.committed(stage.output) == [(b"b", b"committed")]


def test_offset_behind_the_records_is_that_of_the_log(stage: Stage) -> None:
    """It counts the markers of earlier transactions, even of aborted ones: a reader can resume from it."""
    writer = stage.writer()
    for n in range(3):
        writer.begin()
        behind = writer.commit([(b"%d" % n, b"v")] * (n + 1), {}, None)
        stage.committed(stage.changelog)
        assert stage.ends(stage.changelog)[1] == (behind or 0) + 1  # the marker
    writer.begin()
    assert writer.commit([], {}, None) is None


def test_steps_of_a_transaction_are_told_in_their_order(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault tests kill the process at these steps, so each must be reported when it is done, not before."""
    seen: list[int] = []

    def look(step: Step) -> None:
        seen.append(len((stage.committed if step is Step.COMMITTED else stage.visible)(stage.output)))

    reached = steps(monkeypatch, look)
    writer = stage.writer()
    with member(stage) as consumer:
        writer.begin()
        writer.send(stage.output, b"a", b"v", [])
        writer.commit(RECORDS, {(stage.input, 0): 1}, consumer.consumer_group_metadata())
    assert reached == [Step.BEGUN, Step.LOGGED, Step.CONFIRMED, Step.OFFSETS_SENT, Step.COMMITTED]
    assert seen == [0, 0, 0, 0, 1]


def test_without_transactions_outputs_are_confirmed_before_the_first_record(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between them sends outputs again; in the opposite order it would lose them."""
    confirmed: list[int] = []

    def look(step: Step) -> None:
        if step is Step.LOGGED:
            confirmed.append(stage.ends(stage.output)[1])

    reached = steps(monkeypatch, look)
    writer = stage.writer_without_transactions(linger_ms="20000")
    writer.begin()
    for n in range(100):
        writer.send(stage.output, b"%d" % n, b"v", [])
    assert writer.commit(RECORDS, {(stage.input, 0): 1}, None) == 2
    assert reached == [Step.LOGGED, Step.CONFIRMED]
    assert confirmed == [100]
    assert stage.committed(stage.changelog) == RECORDS
    assert stage.group_offset() < 0


def test_without_transactions_a_refused_output_keeps_the_records_back(stage: Stage) -> None:
    """No record may say that an article was published when it was not."""
    create_topic(stage.bootstrap, f"{stage.name}.small", max_bytes=2_000)
    writer = stage.writer_without_transactions()
    writer.begin()
    writer.send(f"{stage.name}.small", b"a", os.urandom(5_000), [])
    with pytest.raises(BrokerError, match=r"max\.message\.bytes"):
        writer.commit(RECORDS, {}, None)
    assert stage.ends(stage.changelog) == (0, 0)


@pytest.mark.parametrize("when", ["at the beginning", "amid the outputs"])
def test_without_transactions_whoever_was_given_up_writes_no_record(stage: Stage, when: str) -> None:
    """The broker fences nobody, and a changelog of two writers would be unreadable: so the group is asked."""
    answers = [KafkaError.REBALANCE_IN_PROGRESS, None, 0, KafkaError.UNKNOWN_MEMBER_ID]  # None: no answer yet

    def ask(_seconds: float) -> bool:
        code = answers.pop(0)
        if code:
            raise KafkaException(KafkaError(code))
        return code is not None

    if when == "at the beginning":
        del answers[:3]
    writer = stage.writer_without_transactions(ask)
    with pytest.raises(AbortedError, match="no longer counts this process as a member"):
        begin_and_commit(writer, stage)
    assert stage.committed(stage.output) == ([] if when == "at the beginning" else [(b"a", b"1")])
    assert stage.ends(stage.changelog) == (0, 0)


def begin_and_commit(writer: Writer, stage: Stage) -> None:
    """Write an output and the records."""
    writer.begin()
    writer.send(stage.output, b"a", b"1", [])
    writer.commit(RECORDS, {}, None)


# --------------------------------------------------------------------------------------------------- fencing


def send_and_commit(writer: Writer, stage: Stage) -> None:
    """Send more in the open transaction, and commit."""
    writer.send(stage.output, b"first", b"more", [])
    writer.commit(RECORDS, {}, None)


def commit_only(writer: Writer, _stage: Stage) -> None:
    """Commit what was sent."""
    writer.commit([], {}, None)


def abort_only(writer: Writer, _stage: Stage) -> None:
    """Abort what was sent."""
    writer.abort()


@pytest.mark.parametrize("finish", [send_and_commit, commit_only, abort_only])
def test_second_writer_fences_the_first(stage: Stage, finish: Callable[[Writer, Stage], None]) -> None:
    """What the first has pending is aborted, its next call raises the error, and it can write nothing more."""
    first = stage.writer()
    first.begin()
    first.send(stage.output, b"first", b"pending", [])
    wait_until(lambda: stage.ends(stage.output)[1] > 0, "the message lies on the broker")
    second = stage.writer()
    with pytest.raises(FencedError, match=stage.changelog):
        finish(first, stage)
    assert not first.in_transaction
    with pytest.raises(FencedError):
        first.begin()
    second.begin()
    second.send(stage.output, b"second", b"counts", [])
    second.commit(RECORDS, {}, None)
    first.close()
    assert stage.committed(stage.output) == [(b"second", b"counts")]
    assert stage.committed(stage.changelog) == RECORDS


def test_fencing_is_known_where_the_exception_of_it_is_lost(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client raises the exception while it reports deliveries, and a callback may then swallow it."""

    def deliver(_writer: Writer, error: KafkaError | None, _message: Message) -> None:
        with suppress(Exception):  # the call fails with the pending exception
            repr(error)

    monkeypatch.setattr(Writer, "_delivered", deliver)
    first = stage.writer()
    first.begin()
    first.send(stage.output, b"first", b"pending", [])
    wait_until(lambda: stage.ends(stage.output)[1] > 0, "the message lies on the broker")
    stage.writer()
    with pytest.raises(FencedError, match=stage.changelog):
        send_and_commit(first, stage)


def test_writer_that_was_idle_when_it_was_fenced_learns_it_with_its_next_transaction(stage: Stage) -> None:
    """Between two transactions it hears nothing: the next one fails, and leaves nothing."""
    first = stage.writer()
    first.begin()
    first.commit(RECORDS, {}, None)
    second = stage.writer()
    second.begin()
    second.commit(RECORDS, {}, None)
    first.begin()
    with pytest.raises(FencedError):
        send_and_commit(first, stage)
    assert stage.committed(stage.output) == []
    assert stage.committed(stage.changelog) == [*RECORDS, *RECORDS]


# ----------------------------------------------------------------------------------------------- the group


def test_offsets_of_a_generation_that_is_over_are_refused_and_nothing_counts(stage: Stage) -> None:
    """Another member has joined since the metadata was taken: the batch must be decided again, and then it counts."""
    writer = stage.writer()
    with member(stage) as consumer:
        stale = consumer.consumer_group_metadata()
        with reading(stage.bootstrap, **{"group.id": stage.name}) as other:
            other.subscribe([stage.input])
            wait_until(lambda: joined(stage, consumer, other), "the second member has joined")
            writer.begin()
            writer.send(stage.output, b"a", b"stale", [])
            with pytest.raises(AbortedError, match="generation"):
                writer.commit(RECORDS, {(stage.input, 0): 1}, stale)
            assert not writer.in_transaction
            owner = consumer if consumer.assignment() else other
            writer.begin()
            writer.send(stage.output, b"a", b"again", [])
            writer.commit(RECORDS, {(stage.input, 0): 1}, owner.consumer_group_metadata())
    assert stage.committed(stage.output) == [(b"a", b"again")]
    assert stage.committed(stage.changelog) == RECORDS
    assert stage.group_offset() == 1


def joined(stage: Stage, *members: Consumer) -> bool:
    """Let members poll, and return whether the group is stable with all of them in it."""
    for one in members:
        one.poll(0.05)
    admin = AdminClient({"bootstrap.servers": stage.bootstrap})
    group = admin.describe_consumer_groups([stage.name])[stage.name].result(SECONDS)
    return group.state == ConsumerGroupState.STABLE and len(group.members) == len(members)


def test_offsets_of_a_member_that_has_left_are_refused(stage: Stage) -> None:
    """A member that the group has dropped may not commit for it."""
    with member(stage) as consumer:
        gone = consumer.consumer_group_metadata()
    writer = stage.writer()
    writer.begin()
    with pytest.raises(AbortedError, match="UNKNOWN_MEMBER_ID"):
        writer.commit(RECORDS, {(stage.input, 0): 1}, gone)
    writer.begin()
    writer.commit([(b"next", b"v")], {}, None)
    assert stage.committed(stage.changelog) == [(b"next", b"v")]


# ------------------------------------------------------------------------------------------------ refusals


def test_message_that_the_topic_does_not_take_is_no_reason_to_try_again(stage: Stage) -> None:
    """The error says what to change; what was sent with the message does not count, and the writer stays usable."""
    create_topic(stage.bootstrap, f"{stage.name}.small", max_bytes=2_000)
    writer = stage.writer()
    writer.begin()
    writer.send(stage.output, b"a", b"with it", [])
    writer.send(f"{stage.name}.small", b"a", os.urandom(5_000), [])
    with pytest.raises(BrokerError, match=r"max\.message\.bytes") as error:
        writer.commit(RECORDS, {}, None)
    assert not isinstance(error.value, FencedError | OutcomeUnknownError)
    assert not writer.in_transaction
    writer.begin()
    writer.send(stage.output, b"b", b"later", [])
    writer.commit([], {}, None)
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
    writer.commit([], {}, None)
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
        writer.commit([], {}, None)


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
    admin = AdminClient({"bootstrap.servers": stage.bootstrap})
    for created in admin.create_acls(rules).values():
        created.result(SECONDS)


# -------------------------------------------------------------------------------------------------- closing


def test_close_leaves_no_transaction_open(stage: Stage) -> None:
    """Readers of committed messages would be blocked until the broker ends it, minutes later."""
    writer = stage.writer()
    writer.begin()
    writer.send(stage.output, b"a", b"v", [])
    wait_until(lambda: stage.ends(stage.output) == (0, 1), "the transaction is open on the broker")
    writer.close()
    assert not writer.in_transaction
    assert stage.committed(stage.output) == []
    assert stage.ends(stage.output) == (2, 2)


def test_next_writer_ends_what_a_killed_one_left_open(stage: Stage) -> None:
    """The next writer to open with the id aborts it, and readers of committed messages can continue."""
    killed = stage.writer()
    killed.begin()
    killed.send(stage.output, b"a", b"v", [])
    wait_until(lambda: stage.ends(stage.output) == (0, 1), "the transaction is open on the broker")
    stage.writer()
    # Without waiting: opening returns only once the markers are written, so these offsets are final.
    assert stage.ends(stage.output) == (2, 2)


# -------------------------------------------------------------------------------------------------- outages


def test_silence_of_the_broker_is_outlasted_and_the_caller_goes_on_beating(
    frail: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever call it hits, the commit succeeds once in the end, and the caller was called every second.

    Here it is called four times as often, so that pauses of a busy machine do not matter.
    """
    calls: list[float] = []
    assert writer_.SLICE_SECONDS <= 1.0  # as it is shipped
    for module in (writer_, exactly_once):
        monkeypatch.setattr(module, "SLICE_SECONDS", 0.25)
    with staged(frail.bootstrap) as stage, member(stage) as consumer:
        writer = stage.writer(while_waiting=lambda: calls.append(time.monotonic()))
        for n, step in enumerate((Step.BEGUN, Step.CONFIRMED, Step.OFFSETS_SENT)):
            calls.clear()
            with silence_at(step, frail, 2.5):
                writer.begin()
                writer.send(stage.output, b"%d" % n, b"v", [])
                writer.commit([(b"%d" % n, b"v")], {(stage.input, 0): n}, consumer.consumer_group_metadata())
            assert len(calls) >= 2, step
            assert max(after - before for before, after in pairwise(calls)) < 1.5, step
        assert stage.committed(stage.output) == [(b"0", b"v"), (b"1", b"v"), (b"2", b"v")]
        assert stage.committed(stage.changelog) == [(b"0", b"v"), (b"1", b"v"), (b"2", b"v")]
        assert stage.group_offset() == 2


@contextmanager
def silence_at(step: Step, broker: KafkaBroker, seconds: float) -> Iterator[None]:
    """Silence the broker as soon as a step is reached: for some seconds, or until the end of the block."""
    timer = Timer(seconds, os.kill, (broker.pid, signal.SIGCONT))

    def reached(now: Step) -> None:
        if now is step:
            stand_still(broker.pid)
            timer.start()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "reached", reached)
        try:
            yield
        finally:
            timer.cancel()
            os.kill(broker.pid, signal.SIGCONT)


def test_commit_without_an_answer_has_an_unknown_outcome(frail: KafkaBroker) -> None:
    """It is neither committed nor aborted for certain: the process must end, and the next start reads the log."""
    with staged(frail.bootstrap) as stage:
        writer = stage.writer(stage.settings(deadline=2))
        writer.begin()
        writer.send(stage.output, b"a", b"v", [])
        with silence_at(Step.CONFIRMED, frail, 30), pytest.raises(OutcomeUnknownError):
            writer.commit(RECORDS, {}, None)
        # The request was in the broker's socket and is processed after all, so reporting an abort would be wrong.
        wait_until(lambda: stage.committed(stage.changelog) == RECORDS, "the broker commits")
        writer.close()
        assert not writer.in_transaction


def test_confirmation_that_does_not_come_aborts_and_nothing_counts(frail: KafkaBroker) -> None:
    """After the deadline the transaction is aborted, the broker being back, and the same batch then counts once."""
    with staged(frail.bootstrap) as stage:
        writer = stage.writer(stage.settings(deadline=2))
        with silence_at(Step.BEGUN, frail, 3):
            writer.begin()
            writer.send(stage.output, b"a", b"first", [])
            with pytest.raises(AbortedError):
                writer.commit(RECORDS, {}, None)
        writer.begin()
        writer.send(stage.output, b"a", b"again", [])
        writer.commit(RECORDS, {}, None)
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
        opened.append(writer)
        with silence_at(step, frail, 30):
            writer.begin()
            writer.send(stage.output, b"a", b"v", [])
            began = time.monotonic()
            with pytest.raises(BrokerError, match="stopped"):
                writer.commit(RECORDS, {(stage.input, 0): 1}, consumer.consumer_group_metadata())
            writer.close()
            assert time.monotonic() - began < 15  # of the 30 s of silence


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
