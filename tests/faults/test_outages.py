"""A broker that dies, is silent, slow or refuses connections is waited for, and the work resumes."""

import time
from contextlib import ExitStack, closing
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition

from stream_dedup.settings import Settings
from stream_dedup.stream.input.history import History
from stream_dedup.stream.kafka import tail
from stream_dedup.stream.kafka.clients import BrokerError, make_consumer
from stream_dedup.stream.kafka.ends import ends
from stream_dedup.stream.kafka.tail import Tail
from stream_dedup.stream.ownership import Ownership
from stream_dedup.stream.state.changelog import ChangelogReader
from tests.faults.chaos import Replica
from tests.faults.proxy import BLACK_HOLE, CUT, PASS, Traffic, slow
from tests.faults.stage import AT_LEAST_ONCE, EXACTLY_ONCE, LONG, OUTAGE_SECONDS, SIZE, SLOW_LINE, Run, Stage
from tests.stream.messages import Incoming, produce
from tests.stream.topics import ADMIN_SECONDS, admin_of, create_topic, new_topic
from tests.stream.waiting import PATIENCE_SECONDS, wait_until

_SILENT_ATTEMPTS = 3  # until the broker can be reached again

_WITH_BOTH_GUARANTEES = pytest.mark.parametrize("guarantee", [EXACTLY_ONCE, AT_LEAST_ONCE])


@_WITH_BOTH_GUARANTEES
@LONG
def test_broker_killed_and_restarted(run: Run, guarantee: str) -> None:
    """If the broker is killed in mid-work and comes back, the service waits for it."""
    with run.replica("waiting", "commit.articles=10", guarantee) as replica:
        run.progress.wait(SIZE // 4, [replica.start()])
        run.stage.broker.kill()
        run.stage.broker.restart()
        run.progress.finish([replica])
        replica.stop()
    run.check(repeats=guarantee == AT_LEAST_ONCE)


@pytest.mark.parametrize("traffic", [BLACK_HOLE, CUT], ids=["silent", "gone"])
def test_reader_of_what_is_there_waits_no_longer_than_it_says(
    traffic: Traffic, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the broker is lost once the ends are known, `tail --last` reports it instead of waiting forever."""

    class Interrupted(Tail):
        def _places(self, last: int | None) -> list[TopicPartition]:
            found = super()._places(last)
            stage.proxy.set(traffic)
            return found

    settings = Settings.model_validate({"kafka": {"bootstrap.servers": stage.proxy.address}})
    try:
        told = r"nothing has arrived for 2 s: see kafka\.bootstrap\.servers"
        with monkeypatch.context() as hasty, Interrupted(settings, [stage.topics.unique]) as reader:
            hasty.setattr(tail, "_SILENT_SECONDS", 2.0)
            with pytest.raises(BrokerError, match=told):
                list(reader.messages(5, endless=False))
    finally:
        stage.proxy.set(PASS)
    with Tail(settings, [stage.topics.unique]) as again:
        assert len(list(again.messages(5, endless=False))) == 5


@_WITH_BOTH_GUARANTEES
@LONG
def test_broker_slow_silent_and_refusing(run: Run, guarantee: str) -> None:
    """After a bad connection, a silent broker and refused connections, the work resumes."""
    proxy = run.stage.proxy
    with run.replica("waiting", guarantee, bootstrap=proxy.address) as replica:
        proxy.set(SLOW_LINE)
        replica.start()
        for part, traffic in enumerate((BLACK_HOLE, CUT), 1):
            run.progress.finish([replica], SIZE * part // 4)
            proxy.set(traffic)
            time.sleep(OUTAGE_SECONDS / 2)
            proxy.set(SLOW_LINE)
        run.progress.finish([replica], SIZE * 3 // 4)
        proxy.set(PASS)
        run.progress.finish([replica])
        replica.stop()
    run.check(repeats=guarantee == AT_LEAST_ONCE)


@LONG
def test_probes_say_that_the_broker_is_awaited(run: Run) -> None:
    """Whoever owned the index, and whoever stood by: neither blames its partitions, nor says that all is well."""
    proxy = run.stage.proxy
    with (
        run.replica("one", bootstrap=proxy.address) as one,
        run.replica("two", bootstrap=proxy.address) as two,
        ExitStack() as leaving,
    ):
        leaving.callback(proxy.set, PASS)
        both = [one.start(), two.start()]
        run.progress.finish(both)
        for replica in both:
            replica.service.wait_ready()
        wait_until(lambda: {replica.role for replica in both} == {"active", "standby"}, "one of them is active")
        proxy.set(BLACK_HOLE)
        wait_until(lambda: {_readiness(replica) for replica in both} == {"waiting for the broker\n"}, "both say so")
        proxy.set(PASS)
        for replica in both:
            replica.stop()
    run.check()


@LONG
def test_probes_say_that_a_commit_waits_for_the_broker(run: Run) -> None:
    """Long before the commit is given up: until then its process owns the index, and decides nothing."""
    proxy = run.stage.proxy
    with run.replica("one", "commit.articles=10", bootstrap=proxy.address) as replica, ExitStack() as leaving:
        leaving.callback(proxy.set, PASS)
        run.progress.wait(SIZE // 4, [replica.start()])
        proxy.set(BLACK_HOLE)
        wait_until(lambda: _readiness(replica) == "waiting for the broker\n", "it says so")
        assert (replica.role, replica.service.events("transaction_aborted")) == ("active", [])
        proxy.set(PASS)
        run.progress.finish([replica])
        replica.stop()
    run.check()


def _readiness(replica: Replica) -> str:
    return replica.service.ask("/readyz").text


def test_question_to_a_silent_group_holds_nobody_up(stage: Stage) -> None:
    """It waits as long as it is told and no longer, stays in the group meanwhile, and gets the answer later."""
    topic = f"t{uuid4().hex[:12]}.owner"
    create_topic(stage.broker.bootstrap, topic)
    kafka = {"bootstrap.servers": stage.proxy.address, "session.timeout.ms": "120000"}
    member = Ownership(Settings.model_validate({"kafka": kafka}), topic, "0a1b2c3d")

    def owns() -> bool:
        member.poll(0.02)
        return member.owner

    with ExitStack() as leaving:
        leaving.callback(member.leave)
        leaving.callback(stage.proxy.set, PASS)
        wait_until(owns, "it owns")
        stage.proxy.set(BLACK_HOLE)
        began = time.monotonic()
        assert not member.ask(0.5)
        member.poll()
        assert time.monotonic() - began < 30  # a request waits for twice as long
        stage.proxy.set(PASS)
        wait_until(lambda: member.ask(0.5), "an answer")


def test_ends_of_many_partitions_are_asked_at_once(stage: Stage) -> None:
    """One after the other, those of a slow broker took minutes, in which the group went on without the service."""
    topic, partitions = f"t{uuid4().hex[:12]}", 100
    admin = admin_of(stage.broker.bootstrap)
    admin.create_topics([new_topic(topic, partitions)])[topic].result(ADMIN_SECONDS)
    places = [(topic, partition) for partition in range(partitions)]
    settings = Settings.model_validate({"kafka": {"bootstrap.servers": stage.proxy.address}})
    with closing(make_consumer(settings)) as consumer:
        # Its partitions get their leaders one by one: those that have none yet are asked about again.
        assert ends(consumer, places, PATIENCE_SECONDS) == dict.fromkeys(places, 0)
        produce(stage.broker.bootstrap, topic, [Incoming(b"", partition=3)])
        # One after the other, they would take at least twice as long.
        stage.proxy.set(slow(0.5, 1_000_000))
        assert ends(consumer, places, 50.0) == {place: int(place[1] == 3) for place in places}
        stage.proxy.set(BLACK_HOLE)
        assert ends(consumer, places, 1.0) == {}


@LONG
def test_end_of_the_changelog_is_asked_again_while_the_broker_is_silent(stage: Stage) -> None:
    """Even if a request never left the client because the previous one is unanswered: that is not a refusal."""
    topic, wait = f"t{uuid4().hex[:12]}", _Wait(stage)
    create_topic(stage.broker.bootstrap, topic)
    kafka = {"bootstrap.servers": stage.proxy.address, "consumer.max.in.flight": "1"}
    with closing(ChangelogReader(Settings.model_validate({"kafka": kafka}), topic, wait)) as reader:
        reader.seek(0)
        # From here on, a request for records is in flight.
        assert reader.read(1.0, 1) == []
        stage.proxy.set(BLACK_HOLE)
        assert reader.bounds() == (0, 0)
    assert wait.count >= _SILENT_ATTEMPTS


@LONG
def test_group_is_asked_again_what_it_has_decided_while_the_broker_is_silent(stage: Stage) -> None:
    """A new state needs the answer before anything is published: a broker that is silent then is waited for."""
    topics, wait = stage.topics, _Wait(stage)
    kafka, taken = {"bootstrap.servers": stage.proxy.address}, {"topics": [topics.input], "group": topics.group}
    stage.proxy.set(BLACK_HOLE)
    settings = Settings.model_validate({"kafka": kafka, "input": taken})
    with closing(History(settings, {}, while_waiting=wait)) as history:
        assert history.total == SIZE
    assert wait.count >= _SILENT_ATTEMPTS


class _Wait:
    """What is called while the broker is silent: after some calls it can be reached again."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        if self.count == _SILENT_ATTEMPTS:
            self._stage.proxy.set(PASS)
