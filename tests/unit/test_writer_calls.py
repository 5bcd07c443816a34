"""Which calls a writer makes of its client, and what it makes of their errors, on a clock that the client moves.

Knows the errors of a client; knows nothing of when a broker has them, which is tested in tests/stream.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple
from unittest.mock import ANY, Mock, call

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from stream_dedup.settings import Settings
from stream_dedup.stream import protocol
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.output import exactly_once
from stream_dedup.stream.output import writer as writer_
from stream_dedup.stream.output.at_least_once import AtLeastOnceWriter
from stream_dedup.stream.output.errors import AbortedError, FencedError, OutcomeUnknownError
from stream_dedup.stream.output.exactly_once import ExactlyOnceWriter, abort_open_transaction
from stream_dedup.stream.output.writer import GroupOffsets
from stream_dedup.stream.protocol import Step
from tests.unit.clock import Clock

_SECONDS = 30.0
_SETTINGS = Settings.model_validate({"kafka": {}, "commit": {"deadline_seconds": _SECONDS}})
_OFFSETS = GroupOffsets({("in", 0): 1}, object())
_RECORDS = [(b"k1", b"v1"), (b"k2", None)]

_PASSING = KafkaException(KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, "loading", retriable=True))
_TO_ABORT = KafkaException(KafkaError(KafkaError._TIMED_OUT, "late", txn_requires_abort=True))  # noqa: SLF001  # librdkafka's name
_FENCED = KafkaException(KafkaError(KafkaError._FENCED, "fenced", fatal=True))  # noqa: SLF001  # the same
_LOST = KafkaException(KafkaError(KafkaError._FATAL, "out of order", fatal=True))  # noqa: SLF001  # the same
_STATE = KafkaException(KafkaError(KafkaError._STATE, "in a transaction"))  # noqa: SLF001  # the same
_NO_RIGHT = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no right"))
_PURGED = KafkaError(KafkaError._PURGE_QUEUE, "purged")  # noqa: SLF001  # the same
_TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large")


class _Clock(Clock):
    """The time as the writer sees it."""

    def taking(self, seconds: float, outcome: Exception | int) -> Callable[..., int]:
        """Return a call that takes a while."""

        def take(*_: object) -> int:
            self.now += seconds
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return take


class _Scene(NamedTuple):
    client: Mock
    clock: _Clock
    waits: Mock

    def writer(self) -> ExactlyOnceWriter:
        """Return a writer in a transaction."""
        made = ExactlyOnceWriter(_SETTINGS, "changelog", self.waits)
        made.begin()
        return made

    def reports(self, *faults: KafkaError) -> None:
        """Let the client report these, one for each message that was sent, as soon as it may."""
        pending: Iterator[KafkaError] = iter(faults)

        def report(*_: object) -> int:
            for made in self.client.produce.call_args_list:
                if (fault := next(pending, None)) is not None:
                    made.args[4](fault, Mock())
            return 0

        self.client.flush.side_effect = self.client.poll.side_effect = report

    def ends(self) -> list[str]:
        """Return how the client was asked to end a transaction."""
        return [name for name, *_ in self.client.method_calls if name in {"abort_transaction", "commit_transaction"}]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> _Scene:
    """Return a client that accepts and confirms everything, and is in a transaction once one has begun."""
    client, clock = Mock(**{"flush.return_value": 0, "begin_transaction.side_effect": [None, _STATE, _STATE]}), _Clock()
    monkeypatch.setattr(writer_, "make_producer", lambda *_: client)
    for module in (writer_, exactly_once):
        monkeypatch.setattr(module, "time", clock)
    return _Scene(client, clock, Mock())


# ------------------------------------------------------------------------------------------------ deadlines


@pytest.mark.parametrize(
    ("step", "raised"), [("send_offsets_to_transaction", AbortedError), ("commit_transaction", OutcomeUnknownError)]
)
def test_steps_of_a_commit_have_one_deadline(scene: _Scene, step: str, raised: type[Exception]) -> None:
    """What confirming took is not there for the rest: a transaction that the broker times out would fence its owner."""
    scene.client.flush.side_effect = scene.clock.taking(25.0, 0)
    getattr(scene.client, step).side_effect = scene.clock.taking(1.0, _PASSING)
    writer = scene.writer()
    with pytest.raises(raised):
        writer.commit(_RECORDS, _OFFSETS)
    assert 1_000 + _SECONDS <= scene.clock.now < 1_000 + _SECONDS + 2


def test_call_is_given_a_time_that_the_client_keeps(scene: _Scene) -> None:
    """At the deadline as well: it takes a negative one for no limit."""
    scene.client.init_transactions.side_effect = scene.clock.taking(0.9732, _PASSING)  # it passes in a pause
    with pytest.raises(BrokerError, match="no success within 30 s"):
        ExactlyOnceWriter(_SETTINGS, "changelog", scene.waits).open()
    given = [seconds for ((seconds,), _) in scene.client.init_transactions.call_args_list]
    assert len(given) == scene.waits.call_count + 1 > 20
    assert all(0 < seconds <= 1 for seconds in given)
    assert given[-1] < 0.2


def test_confirmation_is_awaited_until_the_deadline(scene: _Scene) -> None:
    """The caller is called about every second meanwhile."""
    writer = scene.writer()
    scene.client.flush.side_effect = scene.clock.taking(1.0, 1)
    with pytest.raises(AbortedError, match="no confirmation"):
        writer.commit(_RECORDS, None)
    assert 1_000 + _SECONDS <= scene.clock.now < 1_000 + _SECONDS + 2
    assert scene.waits.call_count >= _SECONDS
    assert all(seconds <= 1 for ((seconds,), _) in scene.client.flush.call_args_list)
    assert scene.ends() == ["abort_transaction"]


def test_fault_that_does_not_pass_is_told_at_once(scene: _Scene) -> None:
    """Who is fenced must not keep trying until the deadline."""
    scene.client.init_transactions.side_effect = _FENCED
    with pytest.raises(FencedError):
        ExactlyOnceWriter(_SETTINGS, "changelog", scene.waits).open()
    scene.client.init_transactions.assert_called_once()


# ---------------------------------------------------------------------------------------------- what is sent


def test_steps_are_told_between_the_calls_that_they_are_named_after(
    scene: _Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault tests kill a process there: at each step, what follows it must not have begun."""
    monkeypatch.setattr(protocol, "reached", scene.client.reached)
    scene.writer().commit(_RECORDS, _OFFSETS)
    assert [args[0] if name == "reached" else name for name, args, _ in scene.client.method_calls] == [
        "begin_transaction",
        Step.BEGUN,
        "produce",
        "produce",
        Step.LOGGED,
        "flush",
        Step.CONFIRMED,
        "send_offsets_to_transaction",
        Step.OFFSETS_SENT,
        "commit_transaction",
        Step.COMMITTED,
    ]


def test_records_go_to_the_partition_that_is_replayed(scene: _Scene) -> None:
    """Even if somebody has added others; outputs, with their headers, go where their keys lead."""
    writer = scene.writer()
    writer.send("out", b"a", b"1", [("h", b"x")])
    writer.commit(_RECORDS, None)
    assert scene.client.produce.call_args_list == [
        call("out", b"1", b"a", -1, ANY, headers=[("h", b"x")]),
        call("changelog", b"v1", b"k1", 0, ANY, headers=None),
        call("changelog", None, b"k2", 0, ANY, headers=None),
    ]


def test_position_is_behind_the_last_record(scene: _Scene) -> None:
    """Outputs have offsets of their own, and may be confirmed later; a batch without records has no position."""
    scene.client.begin_transaction.side_effect = None
    writer = scene.writer()
    writer.send("out", b"a", b"1", [])

    def confirm(*_: object) -> int:
        output, *records = scene.client.produce.call_args_list
        for made, offset in zip((*records, output), (40, 41, 7), strict=True):
            made.args[4](None, Mock(**{"offset.return_value": offset}))
        return 0

    scene.client.flush.side_effect = confirm
    assert writer.commit(_RECORDS, None) == 42
    scene.client.flush.side_effect = None
    writer.begin()
    assert writer.commit([], None) is None


def test_reports_are_handled_while_messages_are_sent(scene: _Scene) -> None:
    """Now and then: each of them takes memory until then."""
    writer = scene.writer()
    for _ in range(200):
        writer.send("out", b"a", b"1", [])
    assert scene.client.poll.call_args_list == [call(0)] * 3


def test_group_is_left_alone_where_nothing_was_read(scene: _Scene) -> None:
    """As when messages are judged without publishing."""
    scene.writer().commit(_RECORDS, GroupOffsets({}, object()))
    scene.client.send_offsets_to_transaction.assert_not_called()
    scene.client.commit_transaction.assert_called_once()


# -------------------------------------------------------------------------------------------------- reports


@pytest.mark.parametrize("records", [[], _RECORDS])
def test_first_of_several_reports_is_the_cause(scene: _Scene, records: list[tuple[bytes, bytes | None]]) -> None:
    """Those that follow only say that the rest was dropped."""
    writer = scene.writer()
    if not records:
        writer.send("out", b"a", b"1", [])
        writer.send("out", b"b", b"2", [])
    scene.reports(_TOO_LARGE, _PURGED)
    with pytest.raises(BrokerError, match=r"max\.message\.bytes"):
        writer.commit(records, None)


def test_report_is_heeded_before_the_rest_is_confirmed(scene: _Scene) -> None:
    """Which may take until the deadline."""
    writer = scene.writer()
    writer.send("out", b"a", b"1", [])
    scene.reports(_PURGED)
    report, flushes = scene.client.flush.side_effect, list[None]()

    def flush(*_: object) -> int:
        flushes.append(None)
        return int(report()) + (len(flushes) < 5)

    scene.client.flush.side_effect = flush
    with pytest.raises(AbortedError, match="_PURGE_QUEUE"):
        writer.commit([], None)
    assert len(flushes) == 1


def test_report_is_heeded_while_the_queue_is_full(scene: _Scene) -> None:
    """Otherwise a queue of messages that the broker never takes would stay full."""
    writer = scene.writer()
    writer.send("out", b"a", b"1", [])
    scene.reports(_PURGED)
    scene.client.produce.side_effect = [BufferError("full")] * 5 + [None]
    scene.client.__len__ = Mock(return_value=1)
    with pytest.raises(AbortedError, match="_PURGE_QUEUE"):
        writer.send("out", b"b", b"2", [])
    assert scene.client.produce.call_count == 2


def test_message_that_is_not_taken_is_explained_by_the_reports(scene: _Scene) -> None:
    """After an earlier one has failed, the client says only that it takes no more."""
    writer = scene.writer()
    writer.send("out", b"a", b"1", [])
    scene.reports(_TOO_LARGE)
    scene.client.produce.side_effect = _STATE
    with pytest.raises(BrokerError, match=r"cannot write to out: .*max\.message\.bytes"):
        writer.send("out", b"b", b"2", [])


def test_fault_of_one_batch_is_not_that_of_the_next(scene: _Scene) -> None:
    """The same messages are decided again, and may be accepted then."""
    scene.client.begin_transaction.side_effect = [None, _STATE, None]
    writer = scene.writer()
    writer.send("out", b"a", b"1", [])
    scene.reports(_PURGED)
    with capture_logs() as events, pytest.raises(AbortedError):
        writer.commit([], None)
    assert [(event["event"], event["error"]) for event in events] == [("transaction_aborted", "_PURGE_QUEUE")]
    writer.begin()
    writer.commit([], None)
    assert scene.ends() == ["abort_transaction", "commit_transaction"]


@pytest.mark.parametrize("of_python", [True, False])
@pytest.mark.parametrize("named", ["by itself", "by the client", "by a report"])
def test_error_that_python_hides_is_found(scene: _Scene, named: str, *, of_python: bool) -> None:
    """One that is raised while reports are handled becomes the cause of another, or is lost."""
    writer = scene.writer()
    writer.send("out", b"a", b"1", [])
    hiding = SystemError("a call returned a result with an exception set")
    hiding.__cause__ = TypeError("a report was not made") if of_python else None
    if named == "by itself":
        (hiding.__cause__ or hiding).__cause__ = _FENCED
    elif named == "by the client":
        scene.client.begin_transaction.side_effect = _FENCED

    def flush(*_: object) -> None:
        if named == "by a report":
            scene.client.produce.call_args.args[4](_PURGED, Mock())
        raise hiding

    scene.client.flush.side_effect = flush
    scene.client.abort_transaction.side_effect = None if named == "by a report" else _FENCED
    with pytest.raises(AbortedError if named == "by a report" else FencedError):
        writer.commit(_RECORDS, None)
    assert not writer.in_transaction


def test_error_of_python_that_hides_none_of_the_client_is_told(scene: _Scene) -> None:
    """It would be taken for a confirmation."""
    scene.client.flush.side_effect = SystemError("a call returned a result with an exception set")
    with pytest.raises(SystemError):
        scene.writer().commit(_RECORDS, None)
    scene.client.commit_transaction.assert_not_called()


# ------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("reported", "told", "raised", "said"),
    [
        (_PURGED, _NO_RIGHT, BrokerError, "grant the right Write on the topic"),
        (_PURGED, _STATE, AbortedError, "_PURGE_QUEUE"),
        (_PURGED, _TO_ABORT, AbortedError, "_TIMED_OUT"),
        (_TOO_LARGE, _STATE, BrokerError, "raise the topic's max.message.bytes"),
    ],
)
def test_reason_of_the_client_explains_what_it_dropped(
    scene: _Scene, reported: KafkaError, told: KafkaException, raised: type[Exception], said: str
) -> None:
    """If it gives none, the report does; whether the batch is tried again depends on it."""
    scene.client.begin_transaction.side_effect = [None, told]
    writer = scene.writer()
    writer.send("out", b"a", b"1", [])
    scene.reports(reported)
    with pytest.raises(raised, match=said):
        writer.commit([], None)
    assert scene.ends() == ["abort_transaction"]
    assert not writer.in_transaction


@pytest.mark.parametrize(
    ("of_abort", "raised", "said"),
    [(_STATE, BrokerError, r"max\.message\.bytes"), (_FENCED, FencedError, "another process has taken over")],
)
def test_refusal_is_told_even_if_the_abort_is_refused_too(
    scene: _Scene, of_abort: KafkaException, raised: type[Exception], said: str
) -> None:
    """Unless another process has taken over: that is what the exit code must tell."""
    writer = scene.writer()
    writer.send("out", b"a", b"1", [])
    scene.reports(_TOO_LARGE)
    scene.client.abort_transaction.side_effect = of_abort
    with pytest.raises(raised, match=said):
        writer.commit([], None)


@pytest.mark.parametrize(("fault", "raised"), [(_FENCED, FencedError), (_LOST, BrokerError)])
def test_client_that_has_failed_for_good_is_asked_nothing_more(
    scene: _Scene, fault: KafkaException, raised: type[Exception]
) -> None:
    """Whatever it would answer, the error is the one that came first."""
    writer = scene.writer()
    scene.client.send_offsets_to_transaction.side_effect = fault
    with pytest.raises(raised, match="cannot commit the input's offsets" if fault is _LOST else "taken over"):
        writer.commit(_RECORDS, _OFFSETS)
    assert not writer.in_transaction
    writer.close()
    assert not scene.ends()
    scene.client.begin_transaction.assert_called_once()


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (_FENCED, FencedError),
        (_LOST, BrokerError),
        (_TO_ABORT, OutcomeUnknownError),
        (_STATE, OutcomeUnknownError),
        (_NO_RIGHT, OutcomeUnknownError),
    ],
)
def test_commit_that_fails_is_never_taken_for_an_abort(
    scene: _Scene, fault: KafkaException, raised: type[Exception]
) -> None:
    """The broker may have committed, whatever the client asks for: only the changelog can tell."""
    writer = scene.writer()
    scene.client.commit_transaction.side_effect = fault
    with pytest.raises(raised) as told:
        writer.commit(_RECORDS, _OFFSETS)
    assert type(told.value) is raised
    assert scene.ends() == ["commit_transaction"]


# ----------------------------------------------------------------------------------------- aborts and closing


def test_abort_is_retried_until_it_succeeds(scene: _Scene) -> None:
    """The caller is called in between; where no transaction is open, nothing is asked."""
    writer = scene.writer()
    scene.client.abort_transaction.side_effect = [_PASSING, _PASSING, None]
    writer.abort()
    assert not writer.in_transaction
    assert scene.waits.call_count == 2
    assert scene.clock.now > 1_000  # not in a busy loop
    writer.abort()
    assert scene.client.abort_transaction.call_count == 3


def test_abort_without_an_answer_is_tried_once_more_when_closing(scene: _Scene) -> None:
    """The transaction is still open, as far as is known."""
    writer = scene.writer()
    scene.client.abort_transaction.side_effect = scene.clock.taking(1.0, _PASSING)
    with pytest.raises(BrokerError, match="cannot abort a transaction"):
        writer.abort()
    assert writer.in_transaction
    scene.client.abort_transaction.side_effect = None
    writer.close()
    assert not writer.in_transaction


@pytest.mark.parametrize("committing", [True, False])
def test_closing_ends_the_transaction_the_way_it_was_ending(scene: _Scene, *, committing: bool) -> None:
    """For a moment only, whatever the caller wants by then; what is left open is told, and the rest is dropped."""
    writer = scene.writer()
    writer.commit(_RECORDS, None)  # an earlier commit says nothing of the next end
    scene.client.begin_transaction.side_effect = None
    writer.begin()
    if committing:
        scene.client.commit_transaction.side_effect = _TO_ABORT
        with pytest.raises(OutcomeUnknownError):
            writer.commit(_RECORDS, None)
    scene.client.reset_mock()
    scene.waits.side_effect = BrokerError("stopped")
    end = scene.client.commit_transaction if committing else scene.client.abort_transaction
    end.side_effect = scene.clock.taking(0.5, _PASSING)
    began = scene.clock.now
    with capture_logs() as events:
        writer.close()
    assert [(event["event"], event["id"]) for event in events] == [("transaction_left_open", "changelog")]
    assert set(scene.ends()) == {"commit_transaction" if committing else "abort_transaction"}
    assert end.call_count > 2
    assert scene.clock.now - began < 3
    assert writer.in_transaction
    assert [name for name, *_ in scene.client.method_calls][-2:] == ["purge", "flush"]


@pytest.mark.parametrize("error", [_LOST, SystemError("a call returned a result with an exception set")])
def test_what_the_client_raises_while_it_is_closed_or_idle_ends_nothing(scene: _Scene, error: Exception) -> None:
    """Closing is over anyway, and between two batches the next one is told."""
    writer = AtLeastOnceWriter(_SETTINGS, "changelog", scene.waits)
    scene.client.poll.side_effect = scene.client.flush.side_effect = error
    writer.poll()
    writer.close()
    scene.client.poll.assert_called_once_with(0)
    scene.client.purge.assert_called_once()


def test_reports_are_handled_between_two_batches_only(scene: _Scene) -> None:
    """An error that is raised while nobody expects it in a transaction would be lost."""
    writer = scene.writer()
    writer.poll()
    scene.client.poll.assert_not_called()
    writer.commit(_RECORDS, None)
    writer.poll()
    scene.client.poll.assert_called_once_with(0)


@pytest.mark.parametrize("fails", [True, False])
def test_client_that_ends_the_transaction_of_another_is_closed(
    scene: _Scene, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """Even if it could not: there may be many to end, one after another."""
    monkeypatch.setattr(exactly_once, "has_open_transaction", lambda *_: True)
    scene.client.init_transactions.side_effect = [_PASSING, _NO_RIGHT if fails else None]
    if fails:
        with pytest.raises(BrokerError, match="cannot start writing"):
            abort_open_transaction(_SETTINGS, "changelog", scene.waits)
    else:
        abort_open_transaction(_SETTINGS, "changelog", scene.waits)
    scene.waits.assert_called_once()
    called = [name for name, *_ in scene.client.method_calls]
    assert called == ["init_transactions", "init_transactions", "purge", "flush"]
