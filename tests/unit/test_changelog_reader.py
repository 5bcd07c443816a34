"""How the changelog is read: what is asked of the client, where reading stands, and what its errors mean.

Knows a client in memory; knows no broker.
"""

from collections import deque
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from structlog.testing import capture_logs

from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.state import changelog
from stream_dedup.stream.state.changelog import ChangelogLostError, ChangelogReader, ChangelogTruncatedError
from tests.unit.arrived import ArrivedMessage, Fault
from tests.unit.clock import Clock

TOPIC = "index.changelog"
_GONE = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001  # librdkafka's name
_END = KafkaError._PARTITION_EOF  # noqa: SLF001  # the same
_AWAY = KafkaError._TRANSPORT  # noqa: SLF001  # the same


class _Client:
    """A client of one partition.

    Attributes:
        arrived: what `consume` hands out, in order.
        bounds: first offset of the partition, and its end.
        at: position that it tells; negative before the first record.
        asked: how many messages were asked for, and how long it might take, by call.
        calls: what else it was told.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.arrived: deque[ArrivedMessage] = deque()
        self.bounds = 0, 0
        self.at = -1001
        self.asked: list[tuple[int, float]] = []
        self.calls: list[object] = []

    def get_watermark_offsets(self, place: TopicPartition, *, timeout: float) -> tuple[int, int]:
        """Return the bounds."""
        assert (place.topic, place.partition) == (TOPIC, 0)
        assert timeout
        return self.bounds

    def assign(self, places: list[TopicPartition]) -> None:
        """Note where reading begins."""
        self.calls += [place.offset for place in places]

    def unassign(self) -> None:
        """Note that reading ends."""
        self.calls.append("unassign")

    def poll(self, seconds: float) -> None:
        """Note that the client is served."""
        self.calls.append(("poll", seconds))

    def consume(self, most: int, seconds: float) -> list[ArrivedMessage]:
        """Hand out what has arrived; wait for it in vain otherwise."""
        self.asked.append((most, seconds))
        taken = [self.arrived.popleft() for _ in range(min(most, len(self.arrived)))]
        if not taken:
            self._clock.sleep(seconds)
        return taken

    def position(self, places: list[TopicPartition]) -> list[TopicPartition]:
        """Return where reading stands."""
        (place,) = places
        return [TopicPartition(place.topic, place.partition, self.at)]

    def close(self) -> None:
        """Note it."""
        self.calls.append("close")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> _Client:
    """The client of the reader; its clock moves only while it waits."""
    clock = Clock()
    made = _Client(clock)
    monkeypatch.setattr(changelog, "time", clock)
    monkeypatch.setattr(changelog, "make_consumer", lambda *_: made)
    return made


@pytest.fixture
def reader(client: _Client) -> ChangelogReader:
    """A reader at the beginning of a changelog with 100 offsets."""
    client.bounds = 0, 100
    made = ChangelogReader(Settings(), TOPIC)
    made.seek(0)
    return made


def _records(*sizes: int, first: int = 0) -> list[ArrivedMessage]:
    """Return records whose keys and values have these sizes together, one after another."""
    return [
        ArrivedMessage(bytes(size - size // 2), offset=first + number, key=bytes(size // 2), topic=TOPIC)
        for number, size in enumerate(sizes)
    ]


def test_records_are_as_the_client_has_them(client: _Client, reader: ChangelogReader) -> None:
    """A missing key is empty; a missing value remains one, as it deletes the key."""
    client.arrived += [
        ArrivedMessage(b"v", offset=3, key=b"k", topic=TOPIC),
        ArrivedMessage(None, offset=5, key=b"gone", topic=TOPIC),
        ArrivedMessage(b"", offset=6, topic=TOPIC),
    ]
    assert reader.read(0.0, 1_000) == [(3, b"k", b"v"), (5, b"gone", None), (6, b"", b"")]
    assert reader.position == 7
    assert reader.remaining() == 93


def test_as_many_are_asked_for_as_will_fit(client: _Client, reader: ChangelogReader) -> None:
    """One as long as their size is unknown; then it goes by their size so far, fading by a tenth each time."""
    for sizes, asked in [
        ([100], [1, 900 // 100]),
        ([10] * 9, [1_000 // 100, 910 // 90]),
        ([10] * 30, [1_000 // 90, 890 // 81, int(790 / 72.9), int(700 / 65.61)]),
        ([500], [int(1_000 / 65.61), 500 // 500]),
    ]:
        client.asked.clear()
        client.arrived += _records(*sizes)
        assert len(reader.read(0.0, 1_000)) == len(sizes)
        assert [most for most, _ in client.asked] == asked


@pytest.mark.parametrize(("most_bytes", "asked"), [(1, 1), (1 << 40, 10_000)])
def test_at_least_one_is_asked_for_and_ten_thousand_at_most(
    most_bytes: int, asked: int, client: _Client, reader: ChangelogReader
) -> None:
    """However small or large the room is."""
    client.arrived += _records(100)
    reader.read(0.0, 1)
    client.arrived += _records(100)
    reader.read(0.0, most_bytes)
    assert client.asked[1][0] == asked


def test_no_more_is_asked_for_once_the_room_is_used_up(client: _Client, reader: ChangelogReader) -> None:
    """To the byte: it is a limit, and what is left arrives at the next read."""
    client.arrived += _records(100, 100)
    assert len(reader.read(0.0, 100)) == 1
    assert len(client.asked) == 1


def test_reader_that_has_not_begun_may_rest(client: _Client) -> None:
    """It has nothing to end, nothing to read and nothing before it."""
    made = ChangelogReader(Settings(), TOPIC)
    made.rest()
    assert client.calls == [("poll", 0)]
    assert (made.position, made.remaining()) == (0, 0)


def test_empty_records_weigh_something(client: _Client, reader: ChangelogReader) -> None:
    """They must not make a size of zero, of which any number would fit."""
    client.arrived += _records(0)
    reader.read(0.0, 1)
    client.asked.clear()
    reader.read(0.0, 50)
    assert client.asked[0][0] == 50


def test_only_the_first_record_is_waited_for(client: _Client, reader: ChangelogReader) -> None:
    """And no longer than was said, a twentieth of a second at a time."""
    assert reader.read(0.12, 1_000) == []
    waited = [seconds for _, seconds in client.asked]
    assert sum(waited) == pytest.approx(0.12)
    assert max(waited) == pytest.approx(0.05)
    client.asked.clear()
    client.arrived += _records(5, 5)
    assert len(reader.read(0.12, 1_000)) == 2
    assert [seconds for _, seconds in client.asked] == [0.05, 0.0, 0.0]


def test_end_and_markers_move_the_position_on(client: _Client, reader: ChangelogReader) -> None:
    """Where a transaction ends, or compaction has removed the last records, no record leads on; it never goes back."""
    client.arrived += _records(5, first=10)
    client.at = 12  # a marker after it
    reader.read(0.0, 1)
    assert reader.position == 12
    client.arrived.append(Fault(_END, offset=100))
    reader.read(0.0, 1)
    assert (reader.position, reader.remaining()) == (100, 0)
    client.arrived.append(Fault(_END, offset=50))
    reader.read(0.0, 1)
    assert reader.position == 100


def test_what_remains_is_never_negative(client: _Client, reader: ChangelogReader) -> None:
    """The log may have grown since its end was asked for."""
    client.arrived += _records(5, first=150)
    reader.read(0.0, 1)
    assert reader.remaining() == 0


@pytest.mark.parametrize(
    ("position", "kind", "told"),
    [
        (9, ChangelogTruncatedError, f"^{TOPIC} begins at 10, but the state is at 9$"),
        (21, ChangelogLostError, f"^{TOPIC} ends at 20, but the state is at 21: "),
    ],
)
def test_position_outside_of_the_log_is_refused(
    position: int, kind: type[BrokerError], told: str, client: _Client, reader: ChangelogReader
) -> None:
    """Both of its bounds are positions to read from."""
    client.bounds, client.calls = (10, 20), []
    for allowed in (10, 20):
        reader.seek(allowed)
    with pytest.raises(kind, match=told):
        reader.seek(position)
    assert client.calls == [10, 20]


def test_reading_goes_on_where_it_was_if_the_log_still_has_that(client: _Client, reader: ChangelogReader) -> None:
    """The client ends fetching when it cannot check a position for losses; the log has lost nothing."""
    client.arrived += [*_records(5, first=7), Fault(_GONE, told="the broker did not say where the epoch ended")]
    reader.read(0.0, 1)
    client.calls = []
    with capture_logs() as logs:
        reader.read(0.0, 1)
    assert client.calls == [8]
    assert [line["event"] for line in logs] == ["changelog_waits"]


@pytest.mark.parametrize("code", [_GONE, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE])  # noqa: SLF001  # librdkafka's name
def test_log_that_begins_after_the_position_is_told(code: int, client: _Client, reader: ChangelogReader) -> None:
    """Whichever way the client learns of it."""
    client.bounds = 50, 100
    client.arrived.append(Fault(code))
    with pytest.raises(ChangelogTruncatedError, match="begins at 50, but the state is at 0"):
        reader.read(0.0, 1)


def test_log_that_had_ended_before_the_position_is_told(client: _Client, reader: ChangelogReader) -> None:
    """Even if it has grown past it since."""
    client.arrived += [*_records(5, first=7), Fault(_GONE, told="fetch failed: Broker: Offset out of range")]
    reader.read(0.0, 1)
    with pytest.raises(ChangelogLostError, match=f"^{TOPIC} had ended before it grew to 100, but the state is at 8: "):
        reader.read(0.0, 1)


def test_broker_that_is_away_is_waited_for(client: _Client, reader: ChangelogReader) -> None:
    """What arrives with the error, or after it, is not lost."""
    client.arrived += [*_records(5), Fault(_AWAY, told="connection refused"), *_records(5, first=1)]
    with capture_logs() as logs:
        found = [offset for _ in range(3) for offset, _, _ in reader.read(0.0, 1)]
    assert found == [0, 1]
    assert [(line["event"], line["detail"]) for line in logs] == [("changelog_waits", "connection refused")]


def test_refusal_is_told_with_the_topic(client: _Client, reader: ChangelogReader) -> None:
    """And with what to do."""
    client.arrived.append(Fault(KafkaError.TOPIC_AUTHORIZATION_FAILED, told="not authorized"))
    with pytest.raises(BrokerError, match=f"^cannot read {TOPIC}: not authorized: grant the right Read on the topic"):
        reader.read(0.0, 1)


def test_reader_at_rest_only_serves_the_client(client: _Client, reader: ChangelogReader) -> None:
    """It stops fetching once, and again after it has read."""
    assert (reader.position, reader.remaining()) == (0, 100)
    client.calls = []
    reader.rest()
    reader.rest()
    assert client.calls == ["unassign", ("poll", 0), ("poll", 0)]
    reader.seek(4)
    assert (reader.position, reader.remaining()) == (4, 96)
    reader.rest()
    assert client.calls[3:] == [4, "unassign", ("poll", 0)]
    reader.close()
    assert client.calls[-1] == "close"


def test_client_gets_the_changelogs_properties(monkeypatch: pytest.MonkeyPatch) -> None:
    """An offset that is gone is an error, and only what is committed is read."""
    made: list[Any] = []
    monkeypatch.setattr(changelog, "make_consumer", lambda *given: made.append(given))
    told: list[str] = []
    ChangelogReader(Settings(), TOPIC, on_statistics=told.append)
    _, properties, on_statistics = made[0]
    assert properties["auto.offset.reset"] == "error"
    assert properties["isolation.level"] == "read_committed"
    on_statistics("{}")
    assert told == ["{}"]
