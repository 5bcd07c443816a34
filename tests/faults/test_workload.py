"""The workload: deterministic, labelled, with different ids for each seed, and with every kind of confusing message."""

import json
from collections import Counter, defaultdict
from itertools import islice

from tests.faults.workload import KINDS, NUMBER_HEADER, Labelled, endless, workload


def _id(message: Labelled) -> str | None:
    return message.incoming.key.decode() if message.incoming.key else None


def test_workload_is_the_same_at_each_call() -> None:
    """Two calls give the same bytes, keys, headers and partitions; another seed gives others."""
    assert workload(1500) == workload(1500)
    assert workload(1500) != workload(1500, seed=40)


def test_workload_begins_like_a_longer_one() -> None:
    """A longer workload continues where a shorter one ends."""
    assert workload(2000)[:700] == workload(700)


def test_all_kinds_are_there() -> None:
    """A thousand messages include all kinds; most are stories."""
    kinds = Counter(message.kind for message in workload(1000))
    assert set(kinds) == set(KINDS)
    assert kinds["story"] > 700
    assert min(kinds.values()) > 10


def test_messages_are_numbered() -> None:
    """The header `n` counts from 0, whatever the kind."""
    headers = [message.incoming.headers for message in workload(600)]
    assert headers == [[(NUMBER_HEADER, str(number).encode())] for number in range(600)]


def test_ids_of_different_streams_differ() -> None:
    """An id recurs only where intended: as a redelivery, revision or withdrawal."""
    first: dict[str, bytes | None] = {}
    for message in workload(3000):
        name = _id(message)
        if message.kind == "story" and name is not None:
            # The sample streams contain a few redeliveries of their own: the same message again.
            assert first.setdefault(name, message.incoming.value) == message.incoming.value


def test_aftermaths_follow_what_they_are_about() -> None:
    """Mixed-in messages have the key of an earlier article; only redeliveries also have its bytes."""
    values: defaultdict[str, set[bytes | None]] = defaultdict(set)
    for message in workload(2000):
        name, value = _id(message) or "", message.incoming.value
        if message.kind not in {"story", "broken"}:
            assert name in values
            assert (value in values[name]) == (message.kind == "redelivery")
        if message.kind == "tombstone":
            assert value is None
        if message.kind == "deleted":
            assert json.loads(value or b"") == {"id": name, "deleted": True}
        if message.kind == "story":
            values[name].add(value)


def test_messages_of_an_id_are_in_one_partition() -> None:
    """With several partitions all are used, and each id stays in one."""
    partitions: defaultdict[str, set[int]] = defaultdict(set)
    for message in workload(1000, partitions=3):
        partitions[_id(message) or ""].add(message.incoming.partition)
    del partitions[""]
    assert all(len(used) == 1 for used in partitions.values())
    assert set.union(*partitions.values()) == {0, 1, 2}


def test_stream_has_no_end() -> None:
    """Sample streams follow one another; the giant message is left out of all but the first."""
    sizes = [len(message.incoming.value or b"") for message in islice(endless(), 3000)]
    assert sum(size > 1_000_000 for size in sizes) == 1
