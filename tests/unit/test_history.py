"""Reading the input that the group has already decided, with a client that returns what the test says."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from structlog.testing import capture_logs

from stream_dedup.settings import Settings
from stream_dedup.stream.input import history as history_
from stream_dedup.stream.input.history import History
from stream_dedup.stream.kafka import patience as patience_
from stream_dedup.stream.kafka import transactions as transactions_
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.kafka.places import IDENTITY
from stream_dedup.stream.life import StoppedError
from tests.unit.clock import Clock


class _Message:
    def __init__(self, offset: int, size: int = 1, epoch: int | None = None) -> None:
        self._offset = offset
        self._size = size
        self._epoch = epoch

    def error(self) -> None:
        """Return nothing, as for a valid message."""

    def topic(self) -> str:
        return "in"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def key(self) -> None:
        """Return nothing, as for a message without a key."""

    def headers(self) -> None:
        """Return nothing, as for a message without headers."""

    def __len__(self) -> int:
        return self._size

    def timestamp(self) -> tuple[int, int]:
        return 1, self._offset

    def leader_epoch(self) -> int | None:
        return self._epoch


class _Fault(_Message):
    """An error instead of a message."""

    def __init__(self, error: KafkaError, offset: int = -1001) -> None:
        super().__init__(offset)
        self._error = error

    def error(self) -> KafkaError:  # type: ignore[override]  # not as for a valid message
        return self._error


_Coming = Sequence[Sequence[int | _Fault]]


class _Client:
    """A client of one partition that returns the lists in `coming` one by one, and then nothing."""

    def __init__(self, coming: _Coming, committed: int, end: int, size: int = 1) -> None:
        self._size = size
        self._coming = deque(coming)
        self._committed = committed
        self._end = end
        self._position = -1001  # as in librdkafka, before the first message
        self.epoch: int | None = None  # of the last message that the group has decided
        self.later = end  # offset of the first message of the epoch after it
        self.metadata = ""
        self.partitions = 1
        self.first = 0
        self.moves: list[int] = []
        self.silent = False
        self.closed = False

    def list_topics(self, timeout: float) -> SimpleNamespace:
        assert timeout
        return SimpleNamespace(topics={"in": SimpleNamespace(partitions=dict.fromkeys(range(self.partitions)))})

    def committed(self, places: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout
        if self.silent:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001  # librdkafka's name
        epoch = -1 if self.epoch is None else self.epoch
        return [
            TopicPartition(place.topic, place.partition, self._committed, metadata=self.metadata, leader_epoch=epoch)
            for place in places
        ]

    def get_watermark_offsets(self, _place: TopicPartition, timeout: float) -> tuple[int, int]:
        assert timeout
        return self.first, self._end

    def consume(self, _most: int, _seconds: float) -> list[_Message]:
        some = self._coming.popleft() if self._coming else ()
        self._position = max((self._position, *(offset + 1 for offset in some if isinstance(offset, int))))
        return [_Message(one, self._size, 3 + (one >= self.later)) if isinstance(one, int) else one for one in some]

    def position(self, _places: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition("in", 0, self._position)]

    def assign(self, _places: list[TopicPartition]) -> None:
        """Do nothing."""

    pause = resume = incremental_unassign = assign

    def incremental_assign(self, places: list[TopicPartition]) -> None:
        self.moves += [place.offset for place in places]

    def shorten(self, end: int) -> None:
        self._end = end

    def close(self) -> None:
        self.closed = True


def _batches(
    monkeypatch: pytest.MonkeyPatch,
    coming: _Coming,
    committed: int = 4,
    end: int = 4,
    size: int = 1,
    articles: int = 2,
) -> Iterator[list[int | None]]:
    monkeypatch.setattr(history_, "make_consumer", lambda *_: _Client(coming, committed, end, size))
    commit = {"articles": articles, "bytes": 1 << 20}
    history = History(Settings.model_validate({"input": {"topics": ["in"]}, "commit": commit}), {})
    return ([message.offset() for message in batch] for batch in history.batches())


def test_ends_where_the_group_has_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages beyond that are not returned."""
    assert list(_batches(monkeypatch, [[0, 1, 2], [3, 4, 5]], end=6)) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(("size", "expected"), [(400_000, [[0, 1, 2], [3, 4, 5]]), (1 << 19, [[0, 1], [2, 3], [4, 5]])])
def test_batch_is_no_larger_than_a_commit(
    monkeypatch: pytest.MonkeyPatch, size: int, expected: list[list[int]]
) -> None:
    """As in the stream, a batch ends with the message that reaches the bound in bytes: a few long ones fill memory."""
    coming = [[offset] for offset in range(6)]
    batches = _batches(monkeypatch, coming, committed=6, end=6, size=size, articles=5)
    assert [batch for batch in batches if batch] == expected


def test_progress_is_that_of_all_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many messages there are in all, and how many of them were handed out with each batch."""
    monkeypatch.setattr(history_, "make_consumer", lambda *_: _Client([[0, 1, 2, 3], [4]], 5, 5))
    settings = Settings.model_validate({"input": {"topics": ["in"]}, "commit": {"articles": 2}})
    history = History(settings, {})
    assert history.total == 5
    assert [(len(batch), history.done) for batch in history.batches()] == [(2, 2), (2, 4), (1, 5)]


def test_silence_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """While no broker answers, the caller still gets batches, so that it stays alive and can be stopped."""
    assert list(islice(_batches(monkeypatch, [[0], [], [1, 2]]), 4)) == [[], [0, 1], [], []]


def test_broker_that_is_away_is_waited_for_until_the_caller_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before the first batch, while it is asked what the group has decided; the client is then closed."""
    client, other = _Client([], 4, 4), _Client([], 4, 4)
    client.silent = other.silent = True
    monkeypatch.setattr(history_, "make_consumer", lambda *_: client)
    monkeypatch.setattr(transactions_, "make_consumer", lambda *_: other)
    settings = Settings.model_validate({"input": {"topics": ["in"]}})

    def back() -> None:
        client.silent = False

    assert History(settings, {}, while_waiting=back).total == 4
    assert not client.closed

    def give_up() -> None:
        raise StoppedError

    client.silent = True
    with pytest.raises(StoppedError):
        History(settings, {}, while_waiting=give_up)
    assert client.closed


def test_broker_that_takes_its_time_for_each_partition_keeps_nobody_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer comes in time, but all of them take longer than a loop may give no sign of life."""
    client, beats = _Client([], 4, 4), list[int]()
    client.partitions = 5
    monkeypatch.setattr(history_, "make_consumer", lambda *_: client)
    monkeypatch.setattr(history_, "_BEAT_SECONDS", 0.0)
    settings = Settings.model_validate({"input": {"topics": ["in"]}})
    assert History(settings, {}, while_waiting=lambda: beats.append(1)).total == 5 * 4
    assert len(beats) == 5


def test_open_transaction_that_hides_what_is_decided_is_told_from_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever ends transactions must not end those of a rebuild under way because the broker was away for a second."""
    hidden, regardless, told = _Client([], 4, 4), _Client([], 4, 4), list[str]()
    hidden.silent = regardless.silent = True
    monkeypatch.setattr(history_, "make_consumer", lambda *_: hidden)
    monkeypatch.setattr(transactions_, "make_consumer", lambda *_: regardless)

    def wait() -> None:
        told.append("silence")
        regardless.silent = told.count("silence") < 3

    def end() -> None:
        told.append("hidden")
        hidden.silent = False

    settings = Settings.model_validate({"input": {"topics": ["in"]}})
    assert History(settings, {}, while_waiting=wait, while_hidden=end).total == 4
    assert told == ["silence", "silence", "silence", "hidden", "silence"]
    assert regardless.closed


@pytest.mark.parametrize(
    ("silent", "told"), [(True, "no broker has answered for 30 s"), (False, "a killed process has left open hides")]
)
def test_error_at_the_end_of_the_patience_tells_a_silent_broker_from_an_open_transaction(
    monkeypatch: pytest.MonkeyPatch, told: str, *, silent: bool
) -> None:
    """What helps differs: to start that service again ends no outage."""
    hidden, regardless = _Client([], 4, 4), _Client([], 4, 4)
    hidden.silent, regardless.silent = True, silent
    monkeypatch.setattr(history_, "make_consumer", lambda *_: hidden)
    monkeypatch.setattr(transactions_, "make_consumer", lambda *_: regardless)
    monkeypatch.setattr(patience_, "time", Clock())
    settings = Settings.model_validate({"input": {"topics": ["in"]}, "commit": {"deadline_seconds": 30}})
    with pytest.raises(BrokerError, match=told):
        History(settings, {})
    assert hidden.closed


def test_what_a_broker_has_lost_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a topic ends before the group's position, as after an unclean leader election, reading ends there."""
    assert list(islice(_batches(monkeypatch, [[0, 1], [2]], committed=9, end=3), 3)) == [[0, 1], [2]]


_GONE = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001  # librdkafka's name
_TRUNCATED = "Partition log truncation detected at offset 3 (leader epoch 0): broker end offset is 2"


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    ("first", "told", "moves", "read"),
    [
        (3, "Offset out of range", [3], [0, 1, 3]),  # deleted: the others are read
        (9, "Offset out of range", [], [0, 1]),  # all of them
        (0, _TRUNCATED, [], [0, 1]),  # the end: what is there now was decided by nobody
    ],
)
def test_messages_that_are_gone_are_passed_over(
    monkeypatch: pytest.MonkeyPatch, first: int, told: str, moves: list[int], read: list[int], *, at_once: bool
) -> None:
    """Whatever the broker loses while it is read, reading ends, and only after what is left.

    What has arrived counts, even if it has not been handed out by then.
    """
    fault = _Fault(KafkaError(_GONE, told))
    client = _Client([[0, 1, fault], [3]] if at_once else [[0, 1], [fault], [3]], 4, 9)
    monkeypatch.setattr(history_, "make_consumer", lambda *_: client)
    history = History(Settings.model_validate({"input": {"topics": ["in"]}}), {})
    client.first = first
    with capture_logs() as logged:
        messages = [message.offset() for batch in islice(history.batches(), 9) for message in batch]
    assert (messages, client.moves) == (read, moves)
    assert [(line["read_to"], line["goes_on"]) for line in logged if line["event"] == "input_lost"] == [
        (2, min(4, max(2, first)))
    ]


@pytest.mark.parametrize("times", [0, 2])
def test_end_that_is_lost_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """What is left before it is read; other messages have its place now. The client may tell of it again."""
    lost = _Fault(KafkaError(_GONE, _TRUNCATED))
    batches = _batches(monkeypatch, [[0], [lost], [1, *[lost] * times, 2, 3]], articles=9)
    assert [batch for batch in islice(batches, 9) if batch] == [[0, 1]]


@pytest.mark.parametrize(("epoch", "read"), [(3, [0, 1]), (4, [0, 1, 2, 3]), (None, [0, 1, 2, 3])])
def test_messages_in_the_place_of_lost_ones_are_left_to_the_stream(
    monkeypatch: pytest.MonkeyPatch, epoch: int | None, read: list[int]
) -> None:
    """The log has grown past what the group has decided since it lost the end of that; the leader epoch tells."""
    client = _Client([[0, 1], [2, 3, 4]], 4, 5)
    client.epoch, client.later = epoch, 2
    monkeypatch.setattr(history_, "make_consumer", lambda *_: client)
    with capture_logs() as logged:
        history = History(Settings.model_validate({"input": {"topics": ["in"]}}), {})
        assert [message.offset() for batch in islice(history.batches(), 9) for message in batch] == read
    losses = [(line["read_to"], line["goes_on"]) for line in logged if line["event"] == "input_lost"]
    assert losses == ([(4, 2)] if read == [0, 1] else [])


def test_end_that_is_lost_before_anything_is_read_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client then knows of no loss: it only tells that the partition ends before what the group has decided."""
    ends = _Fault(KafkaError(KafkaError._PARTITION_EOF), 2)  # noqa: SLF001  # librdkafka's name
    client = _Client([[0, 1], [ends]], 4, 4)
    monkeypatch.setattr(history_, "make_consumer", lambda *_: client)
    history = History(Settings.model_validate({"input": {"topics": ["in"]}}), {})
    client.shorten(2)
    assert [message.offset() for batch in islice(history.batches(), 9) for message in batch] == [0, 1]


def test_end_of_a_partition_is_the_end_where_the_last_messages_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No message leads there if they were deleted behind the client's back, as by compaction."""
    ends = _Fault(KafkaError(KafkaError._PARTITION_EOF), 4)  # noqa: SLF001  # librdkafka's name
    assert list(islice(_batches(monkeypatch, [[0, 1], [ends]]), 9)) == [[0, 1]]


def test_what_was_deleted_before_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic may begin behind the state's position: only what is left is to be judged."""
    client = _Client([], 4, 4)
    client.first = 3
    monkeypatch.setattr(history_, "make_consumer", lambda *_: client)
    assert History(Settings.model_validate({"input": {"topics": ["in"]}}), {("in", 0): 1}).total == 1


def test_what_is_waited_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that ends before its end, and a topic that is not there, are waited for, but not in silence."""
    ends = _Fault(KafkaError(KafkaError._PARTITION_EOF), 2)  # noqa: SLF001  # librdkafka's name
    unknown = _Fault(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    with capture_logs() as logged:
        assert [*islice(_batches(monkeypatch, [[0, 1], [ends], [unknown]]), 4)] == [[0, 1], [], [], []]
    assert [line["error"] for line in logged if line["event"] == "input_waits"] == [
        "_PARTITION_EOF",
        "UNKNOWN_TOPIC_OR_PART",
    ]


def test_topic_that_was_made_anew_is_judged_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets that a state has of a deleted topic of the same name do not apply to the new one."""
    settings = Settings.model_validate({"input": {"topics": ["in"]}})
    monkeypatch.setattr(history_, "make_consumer", lambda *_: _Client([], 4, 4))
    for known, left in ((None, 1), (5, 1), (6, 4)):
        positions = {("in", 0): 3} if known is None else {("in", 0): 3, ("in", IDENTITY): known}
        assert History(settings, positions, lambda _: {"in": 5}).total == left


@pytest.mark.parametrize(("stored", "now", "left"), [("5", 6, 0), ("6", 6, 4), ("", 6, 4), ("5", 5, 1)])
def test_what_was_decided_of_a_deleted_topic_says_nothing_of_a_new_one(
    monkeypatch: pytest.MonkeyPatch, stored: str, now: int, left: int
) -> None:
    """The group's offset may be of the topic that the state knows, read on under its name; it may also be of the new.

    One without an identity, as tools set it, counts for the topic that exists.
    """
    client = _Client([], 4, 4)
    client.metadata = stored
    monkeypatch.setattr(history_, "make_consumer", lambda *_: client)
    settings = Settings.model_validate({"input": {"topics": ["in"]}})
    assert History(settings, {("in", 0): 3, ("in", IDENTITY): 5}, lambda _: {"in": now}).total == left


@pytest.mark.parametrize(("stored", "left"), [("5", 0), ("6", 4), ("", 4), ("of another program", 4)])
def test_what_was_decided_of_a_deleted_topic_says_nothing_to_a_new_state(
    monkeypatch: pytest.MonkeyPatch, stored: str, left: int
) -> None:
    """A state without positions, new or of other settings, never knew the old topic: what the group stored tells."""
    client = _Client([], 4, 4)
    client.metadata = stored
    monkeypatch.setattr(history_, "make_consumer", lambda *_: client)
    assert History(Settings.model_validate({"input": {"topics": ["in"]}}), {}, lambda _: {"in": 6}).total == left
