"""Batches that are read and not committed: which messages still stand once partitions move or lose some."""

from typing import Any

import pytest

from stream_dedup.stream.input.message_batch import MessageBatch
from stream_dedup.stream.input.under_way import UnderWay
from stream_dedup.stream.kafka.places import Place, offset_of
from tests.unit.arrived import ArrivedMessage

_A: Place = ("in", 0)
_B: Place = ("in", 1)


def _arrived(offset: int, partition: int = 0) -> Any:  # noqa: ANN401  # a message, as far as is asked
    return ArrivedMessage(b"value", offset=offset, partition=partition)


@pytest.fixture
def under_way() -> UnderWay:
    """Offsets 5 and 6 of A and 3 of B in one batch, 7 and 8 of A in the next."""
    both = UnderWay()
    both.begin().add([_arrived(5), _arrived(3, partition=1), _arrived(6)])
    both.begin().add([_arrived(7), _arrived(8)])
    return both


def _lasts(under_way: UnderWay, place: Place) -> list[int]:
    return list(map(offset_of, under_way.lasts(place)))


def test_first_and_last_messages_are_those_of_each_partition(under_way: UnderWay) -> None:
    """First ones count over all batches, last ones in each; what is committed no longer does."""
    assert under_way.places() == {_A, _B}
    by_place = {place: list(map(offset_of, messages)) for place, messages in under_way.by_place().items()}
    assert by_place == {_A: [5, 6, 7, 8], _B: [3]}
    assert {place: offset_of(first) for place, first in under_way.firsts().items()} == {_A: 5, _B: 3}
    assert (_lasts(under_way, _A), _lasts(under_way, _B)) == ([6, 8], [3])
    under_way.clear()
    assert (under_way.places(), under_way.firsts(), _lasts(under_way, _A)) == (set(), {}, [])


def test_committed_batch_is_forgotten() -> None:
    """The batch itself, though another one has the same messages."""
    under_way = UnderWay()
    first, second = under_way.begin(), under_way.begin()
    first.add([_arrived(5)])
    second.add([_arrived(5), _arrived(6)])
    under_way.end(first)
    assert _lasts(under_way, _A) == [6]
    under_way.end(second)
    assert under_way.places() == set()


def test_message_that_comes_again_is_added_once() -> None:
    """A partition that was assigned again is read once more; the size is that of the messages added."""
    batch = MessageBatch()
    assert batch.add([_arrived(5), _arrived(6)]) == 2
    size = batch.size
    assert batch.add([_arrived(5), _arrived(6), _arrived(7), _arrived(6, partition=1)]) == 2
    assert list(map(offset_of, batch.messages)) == [5, 6, 7, 6]
    assert batch.size == 2 * size
    assert [batch.add([_arrived(0, partition=2)]) for _ in range(2)] == [1, 0]


@pytest.mark.parametrize(
    ("moved", "stays"), [((), True), ((_B,), False), ((_A, _B), False), ((("other", 0),), True)], ids=str
)
def test_batch_of_a_partition_that_moved_is_read_again(
    under_way: UnderWay, moved: tuple[Place, ...], *, stays: bool
) -> None:
    """Also if the partition is assigned again; batches with none of its messages stay as they are."""
    under_way.mark_moved(set(moved))
    assert under_way.stayed({_A, _B}) == stays
    assert _lasts(under_way, _A) == {(): [6, 8], (_B,): [8], (_A, _B): []}.get(moved, [6, 8])


def test_batch_of_a_partition_that_is_no_longer_assigned_has_not_stayed(under_way: UnderWay) -> None:
    """Whether or not anybody said that it moved."""
    assert under_way.stayed({_A, _B, ("other", 0)})
    assert not under_way.stayed({_A})


def test_lost_end_is_of_one_partition(under_way: UnderWay) -> None:
    """What is left of it is still to be committed, so first messages count; no last one of it does."""
    under_way.mark_lost(_B)
    assert under_way.lost() == {_B}
    assert (_lasts(under_way, _A), _lasts(under_way, _B)) == ([6, 8], [])
    assert {place: offset_of(first) for place, first in under_way.firsts().items()} == {_A: 5, _B: 3}
    under_way.mark_lost(("other", 0))
    assert under_way.lost() == {_B}
