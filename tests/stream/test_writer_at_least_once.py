"""Without transactions: in which order a commit reaches the broker, and who may go on with it."""

import os

import pytest
from confluent_kafka import KafkaError, KafkaException

from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.output.errors import AbortedError, FencedError
from stream_dedup.stream.output.writer import GroupOffsets, Writer
from stream_dedup.stream.protocol import Step
from tests.stream.topics import create_topic, delete_topic
from tests.stream.waiting import wait_until
from tests.stream.writing import RECORDS, Stage, steps


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
    assert writer.commit(RECORDS, GroupOffsets({(stage.input, 0): 1}, None)) == 2
    assert reached == [Step.LOGGED, Step.CONFIRMED]
    assert confirmed == [100]
    assert stage.committed(stage.changelog) == RECORDS
    assert stage.group_offset() < 0


def test_without_transactions_a_commit_without_records_has_no_offset_behind_them(stage: Stage) -> None:
    """That of an earlier one is not told again."""
    writer = stage.writer_without_transactions()
    begin_and_commit(writer, stage)
    writer.begin()
    assert writer.commit([], None) is None


def test_without_transactions_a_refused_output_keeps_the_records_back(stage: Stage) -> None:
    """No record may say that an article was published when it was not."""
    create_topic(stage.bootstrap, f"{stage.name}.small", max_bytes=2_000)
    writer = stage.writer_without_transactions()
    writer.begin()
    writer.send(f"{stage.name}.small", b"a", os.urandom(5_000), [])
    with pytest.raises(BrokerError, match=rf"{stage.name}\.small.*max\.message\.bytes"):
        writer.commit(RECORDS, None)
    assert stage.ends(stage.changelog) == (0, 0)


def test_without_transactions_a_topic_that_was_deleted_is_named(stage: Stage) -> None:
    """The error says which one to create."""
    writer = stage.writer_without_transactions(producer_topic_metadata_propagation_max_ms="100")
    begin_and_commit(writer, stage)
    delete_topic(stage.bootstrap, stage.output)

    def refused() -> bool:
        # A broker may take messages for a moment after it has stopped listing the topic.
        begin_and_commit(writer, stage)
        return False

    with pytest.raises(BrokerError, match=f"a message to {stage.output}: .*create the topic"):
        wait_until(refused, "the refusal")


@pytest.mark.parametrize("when", ["at the beginning", "amid the outputs"])
def test_without_transactions_whoever_was_given_up_writes_no_record(stage: Stage, when: str) -> None:
    """The broker fences nobody, and a changelog of two writers would be unreadable: so the group is asked."""
    passing = [KafkaError._WAIT_COORD, KafkaError.REBALANCE_IN_PROGRESS]  # noqa: SLF001  # librdkafka's name
    answers = [*passing, None, 0, KafkaError.UNKNOWN_MEMBER_ID]  # None: no answer yet

    def ask(_seconds: float) -> bool:
        code = answers.pop(0)
        if code:
            raise KafkaException(KafkaError(code))
        return code is not None

    if when == "at the beginning":
        del answers[:-1]
    writer = stage.writer_without_transactions(ask)
    with pytest.raises(AbortedError, match="no longer counts this process as a member"):
        begin_and_commit(writer, stage)
    assert stage.committed(stage.output) == ([] if when == "at the beginning" else [(b"a", b"1")])
    assert stage.ends(stage.changelog) == (0, 0)


def test_without_transactions_what_the_other_guarantee_left_open_is_aborted(stage: Stage) -> None:
    """As long as it is open, nobody can read the records that follow it, and it may yet count beside them."""
    killed = stage.writer()
    killed.begin()
    killed.send(stage.changelog, b"k0", b"v0", [])
    wait_until(lambda: stage.ends(stage.changelog) == (0, 1), "an open transaction")
    writer = stage.writer_without_transactions()
    begin_and_commit(writer, stage)
    assert stage.visible(stage.changelog) == RECORDS
    with pytest.raises(FencedError):
        killed.commit(RECORDS, None)


def begin_and_commit(writer: Writer, stage: Stage) -> None:
    """Write an output and the records."""
    writer.begin()
    writer.send(stage.output, b"a", b"1", [])
    writer.commit(RECORDS, None)
