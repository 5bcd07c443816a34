"""Replay of the changelog: where it ends, and what it does if the log is not the one it knew."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient

from deploy.broker import KafkaBroker
from stream_dedup import Article, Deduplicator
from stream_dedup.engine.state import State
from stream_dedup.index.changelog import commit_records
from stream_dedup.index.records.ledger import ChangelogPosition
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.settings import Settings
from stream_dedup.stream.kafka.clients import BrokerError
from stream_dedup.stream.state.changelog import ChangelogLostError, ChangelogReader, ChangelogTruncatedError, ReadRecord
from stream_dedup.stream.state.replay import ChangelogFollower
from tests.engine.samples import bodies
from tests.stream.losing import lose_end
from tests.stream.messages import Incoming, produce
from tests.stream.topics import create_topic, delete_records, existing_topics
from tests.stream.waiting import wait_until

SECONDS = 20.0
MEGABYTE = 1 << 20


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A new topic of one partition."""
    name = f"t{uuid4().hex[:12]}"
    create_topic(bootstrap, name)
    return name


@pytest.fixture
def reader(bootstrap: str, topic: str) -> Iterator[ChangelogReader]:
    """A reader of the topic, not yet positioned."""
    with closing(ChangelogReader(settings(bootstrap), topic)) as made:
        yield made


def settings(bootstrap: str) -> Settings:
    """Return settings of a reader."""
    return Settings.model_validate({"kafka": {"bootstrap.servers": bootstrap}})


def transactional(bootstrap: str) -> Producer:
    """Return a producer with an open transaction."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"t-{uuid4().hex[:12]}", "log_level": 0})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    return producer


def put(producer: Producer, topic: str, *keys: bytes) -> None:
    """Write records and wait until the broker has them; the transaction stays open."""
    for key in keys:
        producer.produce(topic, b"of " + key, key)
    assert producer.flush(SECONDS) == 0


def settle(reader: ChangelogReader, end: int) -> None:
    """Wait for the end: a commit returns before its markers are written, and readers cannot pass until they are."""
    wait_until(lambda: reader.bounds() == (0, end), f"the end at {end}")


def replay(reader: ChangelogReader) -> list[ReadRecord]:
    """Read until nothing remains."""
    records: list[ReadRecord] = []

    def done() -> bool:
        records.extend(reader.read(0.1, MEGABYTE))
        return reader.remaining() == 0

    wait_until(done, "the end of the log", SECONDS)
    return records


def test_replay_gives_every_record_in_order(bootstrap: str, topic: str, reader: ChangelogReader) -> None:
    """Offsets, keys and values are as written, and a deletion differs from an empty value."""
    produce(bootstrap, topic, [Incoming(b"1", key=b"a"), Incoming(None, key=b"a"), Incoming(b"", key=b"b")])
    assert reader.bounds() == (0, 3)
    reader.seek(0)
    assert reader.remaining() == 3
    assert replay(reader) == [ReadRecord(0, b"a", b"1"), ReadRecord(1, b"a", None), ReadRecord(2, b"b", b"")]
    assert reader.position == 3


def test_replay_of_an_empty_log_is_done_at_once(reader: ChangelogReader) -> None:
    """An empty log has nothing to replay."""
    reader.seek(0)
    assert reader.bounds() == (0, 0)
    assert reader.remaining() == 0
    assert reader.read(0.0, MEGABYTE) == []


def test_replay_ends_behind_the_marker_of_the_last_transaction(
    bootstrap: str, topic: str, reader: ChangelogReader
) -> None:
    """The marker takes up an offset of its own: the position moves past it, and nothing remains."""
    producer = transactional(bootstrap)
    put(producer, topic, b"a", b"b")
    producer.commit_transaction(SECONDS)
    settle(reader, 3)
    reader.seek(0)
    assert [record.offset for record in replay(reader)] == [0, 1]
    assert reader.position == 3


def test_replay_ends_behind_an_aborted_tail(bootstrap: str, topic: str, reader: ChangelogReader) -> None:
    """Aborted records are skipped, and the position moves past all of them and their marker."""
    producer = transactional(bootstrap)
    put(producer, topic, b"a")
    producer.commit_transaction(SECONDS)
    producer.begin_transaction()
    put(producer, topic, *(b"%d" % n for n in range(20)))
    producer.abort_transaction(SECONDS)
    settle(reader, 23)
    reader.seek(0)
    assert [record.key for record in replay(reader)] == [b"a"]
    assert reader.position == 23


def test_replay_from_the_position_of_an_earlier_one_gives_what_is_new(
    bootstrap: str, topic: str, reader: ChangelogReader
) -> None:
    """A position before a marker leads to the same next record as one after it."""
    producer = transactional(bootstrap)
    put(producer, topic, b"a")
    producer.commit_transaction(SECONDS)
    producer.begin_transaction()
    put(producer, topic, b"b")
    producer.commit_transaction(SECONDS)
    settle(reader, 4)
    for position in (1, 2):
        reader.seek(position)
        assert reader.remaining() == 4 - position
        assert replay(reader) == [ReadRecord(2, b"b", b"of b")]
        assert reader.position == 4


def test_open_transaction_ends_the_log_for_the_time_being(bootstrap: str, topic: str, reader: ChangelogReader) -> None:
    """The end is the last stable offset; a commit moves it, and the same reader gets the new records."""
    produce(bootstrap, topic, [Incoming(b"1", key=b"a")])
    producer = transactional(bootstrap)
    put(producer, topic, b"b")
    produce(bootstrap, topic, [Incoming(b"1", key=b"c")])
    reader.seek(0)
    assert reader.bounds() == (0, 1)
    assert [record.key for record in replay(reader)] == [b"a"]
    assert reader.read(0.0, MEGABYTE) == []
    producer.commit_transaction(SECONDS)
    settle(reader, 4)
    assert [record.key for record in replay(reader)] == [b"b", b"c"]


def _sizes_of_reads(reader: ChangelogReader, most: int) -> list[int]:
    """Read a log to its end, asking for so many bytes at a time, and return how many each read took."""
    reader.seek(0)
    taken: list[int] = []

    def done() -> bool:
        taken.append(sum(len(record.value or b"") for record in reader.read(1.0, most)))
        return reader.remaining() == 0

    wait_until(done, "the end of the log")
    return taken


def test_no_more_is_taken_than_was_asked_for(bootstrap: str, topic: str, reader: ChangelogReader) -> None:
    """However much is available, a read exceeds its limit by at most the last record."""
    produce(bootstrap, topic, [Incoming(bytes(100_000), key=b"%d" % n) for n in range(60)])
    taken = _sizes_of_reads(reader, 500_000)
    assert sum(taken) == 6_000_000
    assert max(taken) <= 600_000


def test_small_records_do_not_invite_a_flood_of_large_ones(bootstrap: str, topic: str, reader: ChangelogReader) -> None:
    """How many are asked for follows from their size: a few small ones must not make it forget the large."""
    sizes = [100_000, *[10] * 30, *[100_000] * 60]
    produce(bootstrap, topic, [Incoming(bytes(size), key=b"%d" % n) for n, size in enumerate(sizes)])
    taken = _sizes_of_reads(reader, 500_000)
    assert sum(taken) == sum(sizes)
    assert max(taken) < 2_000_000


def test_waiting_is_for_the_first_record_only(bootstrap: str, topic: str, reader: ChangelogReader) -> None:
    """What is available is returned at once, however long the caller would have waited."""
    produce(bootstrap, topic, [Incoming(b"v", key=b"a")])
    reader.seek(0)
    began = time.monotonic()
    assert len(reader.read(SECONDS, MEGABYTE)) == 1
    assert time.monotonic() - began < SECONDS / 2


def test_truncated_log_is_told_before_anything_is_read(bootstrap: str, topic: str, reader: ChangelogReader) -> None:
    """A position that the topic no longer holds is refused, not skipped; the first one it does hold is fine."""
    produce(bootstrap, topic, [Incoming(b"v", key=b"%d" % n) for n in range(10)])
    delete_records(bootstrap, topic, 6)
    with pytest.raises(ChangelogTruncatedError, match="begins at 6, but the state is at 5"):
        reader.seek(5)
    reader.seek(6)
    assert [record.offset for record in replay(reader)] == [6, 7, 8, 9]


def test_log_that_is_truncated_past_a_waiting_reader_is_told(
    bootstrap: str, topic: str, reader: ChangelogReader
) -> None:
    """If a reader's next records are deleted before it gets them, it does not skip them."""
    produce(bootstrap, topic, [Incoming(b"v", key=b"a")])
    reader.seek(0)
    assert len(replay(reader)) == 1
    # The open transaction hides what follows from the reader until it is deleted.
    put(transactional(bootstrap), topic, b"b", b"c")
    produce(bootstrap, topic, [Incoming(b"v", key=b"d")])
    delete_records(bootstrap, topic, 4)

    def told() -> bool:
        try:
            return bool(reader.read(0.1, MEGABYTE))
        except ChangelogTruncatedError:
            return True

    wait_until(told, "the reader notices")
    with pytest.raises(ChangelogTruncatedError):
        reader.seek(reader.position)
    assert reader.position == 1


def test_recreated_log_is_told(bootstrap: str, topic: str, reader: ChangelogReader) -> None:
    """A position beyond the end means that this is another topic of the same name."""
    produce(bootstrap, topic, [Incoming(b"v", key=b"%d" % n) for n in range(10)])
    reader.seek(10)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(SECONDS)
    wait_until(lambda: topic not in existing_topics(bootstrap), "the topic is gone")
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [Incoming(b"v", key=b"other")])
    with closing(ChangelogReader(settings(bootstrap), topic)) as other:
        wait_until(lambda: other.bounds() == (0, 1), "the new topic")
        with pytest.raises(
            ChangelogLostError, match=f"{topic} ends at 1, but the state is at 10: .* Remove the state directory"
        ):
            other.seek(10)


def test_log_that_had_ended_before_the_position_is_told_even_if_it_has_grown_since(
    bootstrap: str, topic: str, reader: ChangelogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows is not what followed: a commit of the new log that began before the position would lack records."""
    produce(bootstrap, topic, [Incoming(b"v", key=b"a")])
    with monkeypatch.context() as late:
        late.setattr(reader, "bounds", lambda: (0, 3))
        reader.seek(3)
    told: list[Message] = []  # by the client, before the log grows, and looked at after that

    def is_told() -> bool:
        told.extend(reader._consumer.consume(1, 0.1))  # noqa: SLF001  # as `read` takes it
        return bool(told)

    wait_until(is_told, "the client says that the offset is out of range")
    produce(bootstrap, topic, [Incoming(b"v", key=b"%d" % n) for n in range(5)])
    with pytest.raises(ChangelogLostError, match=f"{topic} had ended before it grew to 6, but the state is at 3: "):
        reader._records(told)  # noqa: SLF001  # the same


def test_log_that_loses_what_was_read_is_told_even_if_it_grows_past_the_position() -> None:
    """By the time the reader is back, other records have taken the place of what it has read."""
    topic = f"t{uuid4().hex[:12]}"
    with KafkaBroker() as broker:
        create_topic(broker.bootstrap, topic)
        for _ in range(5):
            produce(broker.bootstrap, topic, [Incoming(b"old", key=b"a"), Incoming(b"old", key=b"b")])
        with closing(ChangelogReader(settings(broker.bootstrap), topic)) as reader:
            reader.seek(0)
            assert len(replay(reader)) == 10
            lose_end(broker, topic, 6)
            produce(broker.bootstrap, topic, [Incoming(b"new", key=b"%d" % n) for n in range(8)])
            with pytest.raises(ChangelogLostError, match="had ended before it grew to 14, but the state is at 10: "):
                reader.read(SECONDS, MEGABYTE)


def test_log_that_cannot_be_checked_for_losses_is_read_on(bootstrap: str, topic: str, reader: ChangelogReader) -> None:
    """The client ends fetching then, as if the offset were gone: it must not end for good."""
    produce(bootstrap, topic, [Incoming(b"v", key=b"a")])
    reader.seek(0)
    assert len(replay(reader)) == 1
    reader.rest()
    reader._fail(KafkaError(KafkaError._AUTO_OFFSET_RESET, "Unable to validate offset and epoch"))  # noqa: SLF001  # as the client tells it
    produce(bootstrap, topic, [Incoming(b"v", key=b"b")])
    assert [record.offset for record in reader.read(SECONDS, MEGABYTE)] == [1]


@pytest.mark.usefixtures("compiled")
def test_state_with_a_commit_that_its_log_has_lost_is_told(bootstrap: str, tmp_path: Path) -> None:
    """A log that has grown past the state's position may have another commit around it, with the number that follows.

    Of that commit, the state would take the records before its position for ones that compaction has taken away.
    """
    chosen = settings(bootstrap)
    with RocksStore(tmp_path / "owner") as ahead, RocksStore(tmp_path / "replica") as store:
        engine, state = Deduplicator(settings=chosen, store=ahead), State(store, chosen)
        first, lost, *after = (_committed(engine, Article(str(n), body)) for n, body in enumerate(bodies()[:4]))
        topics = {name: f"t{uuid4().hex[:12]}" for name in ("whole", "cut")}
        for name in topics.values():
            create_topic(bootstrap, name)
        produce(bootstrap, topics["whole"], [*first, *lost])
        produce(bootstrap, topics["cut"], [*first, *after[0], *after[1]])
        with closing(ChangelogReader(chosen, topics["whole"])) as reader:
            for _turn in ("restored", "started again"):
                follower = ChangelogFollower(state, reader, "log/1", lambda: None)
                follower.catch_up(lambda _left: None)
        assert state.progress.steps == 2
        with (
            closing(ChangelogReader(chosen, topics["cut"])) as reader,
            pytest.raises(ChangelogLostError, match="log had ended before it grew to "),
        ):
            ChangelogFollower(state, reader, "log/1", lambda: None)


@pytest.mark.usefixtures("compiled")
def test_state_that_follows_its_log_to_a_commit_ends_there(bootstrap: str, topic: str, tmp_path: Path) -> None:
    """A service writes on while its state, as it was read, is compared with a replay: what follows is too much."""
    chosen = settings(bootstrap)
    with RocksStore(tmp_path / "owner") as ahead, RocksStore(tmp_path / "replay") as store:
        engine, state = Deduplicator(settings=chosen, store=ahead), State(store, chosen)
        commits = [_committed(engine, Article(str(n), body)) for n, body in enumerate(bodies()[:3])]
        produce(bootstrap, topic, [record for commit in commits for record in commit])
        with closing(ChangelogReader(chosen, topic)) as reader:
            follower, left = ChangelogFollower(state, reader, "log/1", lambda: None), list[int]()
            follower.catch_up(left.append, len(commits[0]) + len(commits[1]))
        assert (state.progress.steps, follower.replayed, left[-1]) == (2, 2, 0)


def test_marker_of_the_last_commit_is_waited_for(bootstrap: str, topic: str, tmp_path: Path) -> None:
    """A commit returns before its markers are written: a state that has it is not ahead of a log that lost its end."""
    chosen, producer = settings(bootstrap), transactional(bootstrap)
    with RocksStore(tmp_path / "state") as store, closing(ChangelogReader(chosen, topic)) as reader:
        engine = Deduplicator(settings=chosen, store=store)
        records = _committed(engine, Article("1", bodies()[0]), ChangelogPosition("log/1", 2))
        for record in records:
            producer.produce(topic, record.value, record.key)
        assert producer.flush(SECONDS) == 0
        ends = [partial(producer.commit_transaction, SECONDS)]

        def heartbeat() -> None:
            if ends:
                ends.pop()()

        follower = ChangelogFollower(engine.state, reader, "log/1", heartbeat)
        follower.catch_up(lambda _left: None)
        assert (len(records), follower.position, follower.replayed) == (2, 3, 0)


def _committed(engine: Deduplicator, one: Article, place: ChangelogPosition | None = None) -> list[Incoming]:
    """Judge an article, and return the records of the commit; the state is then at a place in its changelog."""
    change = engine.decide([one]).change
    records = list(commit_records(engine.commit_of(change, {})))
    engine.apply(change, {}, place)
    return [Incoming(value, key=key) for key, value in records]


def test_topic_that_is_not_there_is_an_error_after_the_deadline(bootstrap: str) -> None:
    """It may have just been created: it is retried until the deadline, and the caller is called meanwhile."""
    waits: list[int] = []
    patient = settings(bootstrap)
    # Less than users may set, so that the test need not wait as long.
    hasty = patient.model_copy(update={"commit": patient.commit.model_copy(update={"deadline_seconds": 2.0})})
    absent = ChangelogReader(hasty, f"none-{uuid4().hex}", lambda: waits.append(1))
    told = "cannot read none-.*: no broker has answered for 2 s; "
    with closing(absent) as reader, pytest.raises(BrokerError, match=told):
        reader.bounds()
    assert waits


def test_reader_that_rests_fetches_nothing_and_goes_on_where_it_is_told(bootstrap: str, topic: str) -> None:
    """While resting it fetches nothing new but still gets statistics; after a seek it reads everything."""
    told: list[dict[str, Any]] = []
    records: list[ReadRecord] = []
    chosen = Settings.model_validate({"kafka": {"bootstrap.servers": bootstrap, "statistics.interval.ms": "100"}})
    made = time.monotonic()
    with closing(ChangelogReader(chosen, topic, on_statistics=lambda one: told.append(json.loads(one)))) as reader:

        def read(count: int) -> bool:
            records.extend(reader.read(0.1, MEGABYTE))
            return len(records) >= count

        def rest() -> None:
            """Rest for five statistics that are made from now on, and until no request waits for its answer."""
            began = time.monotonic()

            def has_rested() -> bool:
                reader.rest()
                since = [one for one in told if made + one["age"] / 1e6 > began]
                return len(since) >= 5 and not any(one["waitresp_cnt"] for one in since[-1]["brokers"].values())

            wait_until(has_rested, "statistics")

        produce(bootstrap, topic, [Incoming(b"1", key=b"a")])
        reader.seek(0)
        wait_until(lambda: read(1), "the first record")
        rest()
        before = told[-1]["rx_bytes"]
        produce(bootstrap, topic, [Incoming(bytes(MEGABYTE), key=b"b"), Incoming(bytes(MEGABYTE), key=b"c")])
        rest()
        assert told[-1]["rx_bytes"] - before < MEGABYTE / 10
        reader.seek(reader.position)
        wait_until(lambda: read(3), "the others")
        assert [record.key for record in records] == [b"a", b"b", b"c"]
        rest()
        assert told[-1]["rx_bytes"] - before > 2 * MEGABYTE


def test_properties_of_the_input_do_not_reach_the_replay(bootstrap: str, topic: str) -> None:
    """Even if the input is read from its end, uncommitted, the changelog is replayed whole and committed."""
    producer = transactional(bootstrap)
    put(producer, topic, b"a")
    producer.abort_transaction(SECONDS)
    produce(bootstrap, topic, [Incoming(b"v", key=b"b")])
    properties = {"consumer.auto.offset.reset": "latest", "consumer.isolation.level": "read_uncommitted"}
    chosen = Settings.model_validate({"kafka": {"bootstrap.servers": bootstrap, **properties}})
    with closing(ChangelogReader(chosen, topic)) as reader:
        settle(reader, 3)
        reader.seek(0)
        assert [record.key for record in replay(reader)] == [b"b"]
