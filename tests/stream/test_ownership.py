"""Ownership of the index: one member has it, nobody takes it from a live owner, and it passes on when that goes."""

import math
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import pytest
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, though its types do not say so
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from deploy.broker import KafkaBroker
from stream_dedup.settings import Settings
from stream_dedup.stream import ownership
from stream_dedup.stream.kafka.clients import BrokerError, is_transient
from stream_dedup.stream.ownership import Ownership
from tests.stream.arguments import clean_environment
from tests.stream.messages import Incoming, produce
from tests.stream.rights import enforce
from tests.stream.topics import ADMIN_SECONDS, add_partitions, create_topic, delete_topic
from tests.stream.waiting import wait_until

SESSION_SECONDS = 6.0
ANSWER_SECONDS = 30.0
QUICK = {"session_timeout_ms": "1500", "heartbeat_interval_ms": "300", "max_poll_interval_ms": "1500"}
LONG = {"session_timeout_ms": "120000"}
_DIGEST = "0a1b2c3d"
Joins = Callable[..., Ownership]


@pytest.fixture(scope="module")
def strict() -> Iterator[str]:
    """Address of a broker that checks ACLs and allows short sessions."""
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "group.min.session.timeout.ms": "500",
    }
    with KafkaBroker(properties) as broker:
        yield broker.bootstrap


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A new topic of one partition."""
    name = f"t{uuid4().hex[:12]}.owner"
    create_topic(bootstrap, name)
    return name


@pytest.fixture
def join(bootstrap: str, topic: str) -> Iterator[Joins]:
    """A factory of members of the topic's group, which leave at the end."""
    with ExitStack() as members:

        def make(**properties: str) -> Ownership:
            member = Ownership(settings(bootstrap, **properties), topic, _DIGEST)
            members.callback(member.leave)
            return member

        yield make


def settings(bootstrap: str, **properties: str) -> Settings:
    """Return settings; properties are spelled with underscores instead of dots."""
    dotted = {name.replace("_", "."): value for name, value in properties.items()}
    return Settings.model_validate({"kafka": {"bootstrap.servers": bootstrap, **dotted}})


@contextmanager
def closing_member(member: Ownership) -> Iterator[Ownership]:
    """Let a member leave at the end."""
    try:
        yield member
    finally:
        member.leave()


def members(bootstrap: str, group: str) -> list[str]:
    """Return the members of a stable group, none if it is rebalancing."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.describe_consumer_groups([group])[group].result(ADMIN_SECONDS)
    return [member.member_id for member in found.members] if found.state == ConsumerGroupState.STABLE else []


def owns(member: Ownership, *others: Ownership) -> Callable[[], bool]:
    """Return a condition that is true once the member is owner, while all of them keep polling."""

    def look() -> bool:
        for other in (*others, member):
            other.poll(0.02)
        return member.owner

    return look


def confirmed(member: Ownership) -> Callable[[], bool]:
    """Return a condition that is true once the member is owner and the group confirms it: sessions are short here."""

    def look() -> bool:
        try:
            return owns(member)() and member.ask(ANSWER_SECONDS)
        except KafkaException as error:
            assert error.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID  # noqa: PT017  # it was given up in between
            return False

    return look


def polled(member: Ownership) -> Callable[[], bool]:
    """Return a condition that never becomes true, while the member keeps polling."""

    def look() -> bool:
        member.poll(0.02)
        return False

    return look


def test_one_member_becomes_owner(join: Joins) -> None:
    """Alone in the group, it becomes owner after a moment, and that is its first term."""
    member = join()
    assert (member.owner, member.term) == (False, 0)
    wait_until(owns(member), "it owns")
    assert member.term == 1


def test_who_joins_takes_nothing_from_the_owner_and_follows_when_it_leaves(
    bootstrap: str, topic: str, join: Joins
) -> None:
    """The first keeps the partition while the second joins; when it leaves, the second takes over at once."""
    first = join(**LONG)
    wait_until(owns(first), "the first owns")
    second = join(**LONG)
    wait_until(lambda: owns(first, second)() and len(members(bootstrap, topic)) == 2, "the second is a member")
    assert all(owns(first, second)() for _ in range(50))
    assert (first.term, second.term) == (1, 0)
    first.leave()
    assert not first.owner
    wait_until(owns(second), "the second owns, long before the end of a session")


def test_partitions_that_somebody_adds_make_no_second_owner(bootstrap: str, topic: str, join: Joins) -> None:
    """Only the first one decides, whoever has the others."""
    add_partitions(bootstrap, topic, 2)
    each = [join(**LONG), join(**LONG)]

    def held() -> list[list[int]]:
        for member in each:
            member.poll(0.02)
        return [[one.partition for one in member._consumer.assignment()] for member in each]  # noqa: SLF001  # the client's

    wait_until(lambda: sorted(held()) == [[0], [1]], "each member has a partition")
    assert [member.owner for member in each] == [partitions == [0] for partitions in held()]


MEMBER = """
    import sys
    from stream_dedup.settings import Settings
    from stream_dedup.stream.ownership import Ownership

    member = Ownership(Settings.model_validate({"kafka": {"bootstrap.servers": sys.argv[1]}}), sys.argv[2], "0a1b2c3d")
    while True:
        member.poll(0.1)
"""


def test_killed_owner_is_followed_after_its_session(bootstrap: str, topic: str, join: Joins) -> None:
    """A killed process cannot leave: the next owner takes over once its session expires, and not much later."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(MEMBER), bootstrap, topic],
        env=clean_environment({"PYTHONPATH": ":".join(sys.path)}),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        with process.stdout:
            assert "ownership_gained" in process.stdout.readline()
        member = join()
        assert not any(owns(member)() for _ in range(20))
    finally:
        process.kill()
        process.wait()
    wait_until(owns(member), "the next owns", SESSION_SECONDS + 20)


def test_owner_that_stood_still_knows_that_it_was_not_owner_all_the_time(strict: str) -> None:
    """It loses the partition to another member and regains it: only the term shows that it was not always owner."""
    create_topic(strict, "still.owner")
    with (
        closing_member(Ownership(settings(strict, **QUICK), "still.owner", _DIGEST)) as first,
        closing_member(Ownership(settings(strict, **QUICK), "still.owner", _DIGEST)) as second,
    ):
        wait_until(owns(first), "the first owns")
        wait_until(owns(second), "the second owns while the first stands still")
        second.leave()
        assert (first.owner, first.term) == (True, 1)
        wait_until(lambda: owns(first)() and first.term > 1, "the first owns again")
        assert first.term == 2


def test_owner_that_stood_still_learns_by_asking_that_it_was_given_up(strict: str) -> None:
    """It believes it is owner until it polls; the group knows better, and recognises the member that followed."""
    create_topic(strict, "asking.owner")
    with (
        closing_member(Ownership(settings(strict, **QUICK), "asking.owner", _DIGEST)) as first,
        closing_member(Ownership(settings(strict, **QUICK), "asking.owner", _DIGEST)) as second,
    ):
        wait_until(confirmed(first), "the first owns, and the group says so")
        wait_until(confirmed(second), "the second owns while the first stands still")
        assert first.owner
        with pytest.raises(KafkaException) as told:
            first.ask(ANSWER_SECONDS)
        assert told.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID


def test_owner_that_asks_while_the_broker_is_gone_may_ask_again() -> None:
    """Nobody takes over meanwhile, and whoever ends for that would have to be started anew."""
    with KafkaBroker({"group.min.session.timeout.ms": "500"}) as broker:
        create_topic(broker.bootstrap, "gone.owner")
        with closing_member(Ownership(settings(broker.bootstrap, **QUICK), "gone.owner", _DIGEST)) as member:
            wait_until(confirmed(member), "it owns")
            broker.kill()
            with pytest.raises(KafkaException) as told:
                wait_until(lambda: member.ask(0.1), "an error, once a session is over")
            assert is_transient(told.value.args[0]), told.value


def test_nobody_is_owner_before_it_polls(join: Joins) -> None:
    """A process that is still starting blocks nobody: only the first poll joins the group."""
    joiners = [join() for _ in range(3)]
    member = join()
    wait_until(owns(member), "it owns")
    assert all(owns(member)() for _ in range(20))
    assert not any(joiner.owner for joiner in joiners)


def test_records_in_the_owner_topic_do_no_harm(bootstrap: str, topic: str, join: Joins) -> None:
    """Nothing is read from it, so a record written there has no effect."""
    produce(bootstrap, topic, [Incoming(b"?")])
    member = join()
    wait_until(owns(member), "it owns")
    produce(bootstrap, topic, [Incoming(b"!")])
    assert all(owns(member)() for _ in range(10))


def test_static_membership_of_the_input_does_not_delay_the_hand_over(join: Joins) -> None:
    """A static member would keep its partition for a whole session after leaving."""
    first = join(group_instance_id="static", **LONG)
    wait_until(owns(first), "the first owns")
    second = join(group_instance_id="other", **LONG)
    owns(first, second)()
    first.leave()
    wait_until(owns(second), "the second owns, long before the end of a session")


@pytest.mark.parametrize("stays", [True, False], ids=["running", "leaving"])
def test_deleted_topic_is_told(
    bootstrap: str,
    topic: str,
    join: Joins,
    monkeypatch: pytest.MonkeyPatch,
    *,
    stays: bool,
) -> None:
    """Whether the owner stays or goes, each process ends with what to do: none would ever own the index again."""
    monkeypatch.setattr(ownership, "_MISSING_SECONDS", 0.5)
    first, second = (join(topic_metadata_refresh_interval_ms="300") for _ in range(2))
    wait_until(owns(first), "the first owns")
    wait_until(lambda: owns(first, second)() and len(members(bootstrap, topic)) == 2, "the second is a member")
    delete_topic(bootstrap, topic)
    if not stays:
        first.leave()
    for member in (first, second)[not stays :]:
        with pytest.raises(BrokerError, match=f"the topic {topic} was deleted, .*: start again, which creates it"):
            wait_until(polled(member), "an error")


def test_topic_that_is_there_again_is_owned_again(
    bootstrap: str, topic: str, join: Joins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker may not know a topic for a moment: that alone ends nobody."""
    monkeypatch.setattr(ownership, "_MISSING_SECONDS", math.inf)
    member = join(topic_metadata_refresh_interval_ms="300")
    wait_until(owns(member), "it owns")
    delete_topic(bootstrap, topic)
    wait_until(lambda: not owns(member)(), "it owns no more")
    create_topic(bootstrap, topic)
    wait_until(owns(member), "it owns again")
    monkeypatch.setattr(ownership, "_MISSING_SECONDS", 0.0)
    assert all(owns(member)() for _ in range(50))


def test_refusal_says_which_rights_are_missing(strict: str) -> None:
    """Without the right to read as the group there is no ownership: the error says what to grant."""
    create_topic(strict, "refused.owner")
    rule = AclBinding(
        ResourceType.GROUP,
        "refused.owner",
        ResourcePatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        AclOperation.READ,
        AclPermissionType.DENY,
    )
    enforce(strict, [rule])
    with (
        closing_member(Ownership(settings(strict), "refused.owner", _DIGEST)) as member,
        pytest.raises(BrokerError, match="Read on that group"),
    ):
        wait_until(owns(member), "a refusal")


def test_session_that_the_broker_does_not_allow_is_told_as_such(join: Joins) -> None:
    """The error names the setting and the broker's bounds, and does not suggest missing rights."""
    member = join(session_timeout_ms="1000", heartbeat_interval_ms="300", max_poll_interval_ms="1500")
    with pytest.raises(BrokerError, match="INVALID_SESSION_TIMEOUT") as refused:
        wait_until(owns(member), "a refusal")
    assert "kafka.session.timeout.ms" in str(refused.value)
    assert "rights" not in str(refused.value)
