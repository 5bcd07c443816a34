"""What a transaction leaves on the broker, who fences whom, and what a killed or closed writer leaves open."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, Message
from confluent_kafka.admin import AdminClient

from stream_dedup.stream.output.errors import AbortedError, FencedError
from stream_dedup.stream.output.writer import GroupOffsets, Writer
from stream_dedup.stream.protocol import Step
from tests.stream.waiting import wait_until
from tests.stream.writing import RECORDS, SECONDS, Stage, member, reading, send_and_commit, steps

# ------------------------------------------------------------------------------------------ commit and abort


def test_commit_makes_outputs_records_and_offsets_visible(stage: Stage) -> None:
    """Before it nothing is visible; after it all three are, and the offset after the last record is returned."""
    writer = stage.writer()
    with member(stage) as consumer:
        writer.begin()
        writer.send(stage.output, b"a", b"article", [("h", b"x")])
        assert stage.visible(stage.output) == []
        behind = writer.commit(RECORDS, GroupOffsets({(stage.input, 0): 41}, consumer.consumer_group_metadata()))
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
    assert writer.commit([], None) is None
    assert stage.committed(stage.output) == [(b"b", b"committed")]


def test_offset_behind_the_records_is_that_of_the_log(stage: Stage) -> None:
    """It counts the markers of earlier transactions, even of aborted ones: a reader can resume from it."""
    writer = stage.writer()
    for n in range(3):
        writer.begin()
        behind = writer.commit([(b"%d" % n, b"v")] * (n + 1), None)
        stage.committed(stage.changelog)
        assert stage.ends(stage.changelog)[1] == (behind or 0) + 1  # the marker
    writer.begin()
    assert writer.commit([], None) is None


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
        writer.commit(RECORDS, GroupOffsets({(stage.input, 0): 1}, consumer.consumer_group_metadata()))
    assert reached == [Step.BEGUN, Step.LOGGED, Step.CONFIRMED, Step.OFFSETS_SENT, Step.COMMITTED]
    assert seen == [0, 0, 0, 0, 1]


# --------------------------------------------------------------------------------------------------- fencing


def commit_only(writer: Writer, _stage: Stage) -> None:
    """Commit what was sent."""
    writer.commit([], None)


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
    second.commit(RECORDS, None)
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
    first.commit(RECORDS, None)
    second = stage.writer()
    second.begin()
    second.commit(RECORDS, None)
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
                writer.commit(RECORDS, GroupOffsets({(stage.input, 0): 1}, stale))
            assert not writer.in_transaction
            owner = consumer if consumer.assignment() else other
            writer.begin()
            writer.send(stage.output, b"a", b"again", [])
            writer.commit(RECORDS, GroupOffsets({(stage.input, 0): 1}, owner.consumer_group_metadata()))
    assert stage.committed(stage.output) == [(b"a", b"again")]
    assert stage.committed(stage.changelog) == RECORDS
    assert stage.group_offset() == 1


def joined(stage: Stage, *members: Consumer) -> bool:
    """Let members poll, and return whether the group is stable with all of them in it, and one has the partition."""
    for one in members:
        one.poll(0.05)
    admin = AdminClient({"bootstrap.servers": stage.bootstrap})
    group = admin.describe_consumer_groups([stage.name])[stage.name].result(SECONDS)
    stable = group.state == ConsumerGroupState.STABLE and len(group.members) == len(members)
    return stable and any(one.assignment() for one in members)


def test_offsets_of_a_member_that_has_left_are_refused(stage: Stage) -> None:
    """A member that the group has dropped may not commit for it."""
    with member(stage) as consumer:
        gone = consumer.consumer_group_metadata()
    writer = stage.writer()
    writer.begin()
    with pytest.raises(AbortedError, match="UNKNOWN_MEMBER_ID"):
        writer.commit(RECORDS, GroupOffsets({(stage.input, 0): 1}, gone))
    writer.begin()
    writer.commit([(b"next", b"v")], None)
    assert stage.committed(stage.changelog) == [(b"next", b"v")]


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
