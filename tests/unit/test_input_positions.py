"""When first positions are recorded, and when the group may know of them; topics do not change here."""

from confluent_kafka import OFFSET_END

from stream_dedup.stream.input.positions import InputPositions

_ONE, _OTHER = ("t", 0), ("t", 1)


def _positions() -> InputPositions:
    return InputPositions({}, lambda _: {}, OFFSET_END)


def test_first_position_is_told_once_it_is_recorded() -> None:
    """However often the partition is assigned until then."""
    positions = _positions()
    positions.begin_at({_ONE: 7})
    assert positions.starts({_ONE}) == {_ONE: 7}
    assert positions.recorded({_ONE, _OTHER}) == {}
    recording = positions.unrecorded()
    assert recording == {_ONE: 7}
    positions.mark_recorded(recording | {_ONE: 9})
    assert (positions.unrecorded(), positions.recorded({_ONE})) == ({}, {_ONE: 9})


def test_first_position_that_arises_during_a_commit_is_recorded_by_the_next() -> None:
    """As when the group assigns a partition while the broker keeps a commit waiting."""
    positions = _positions()
    positions.begin_at({_ONE: 7})
    recording = positions.unrecorded()
    positions.begin_at({_OTHER: 3})
    positions.mark_recorded(recording)
    assert positions.unrecorded() == {_OTHER: 3}
    assert positions.recorded({_ONE, _OTHER}) == {_ONE: 7}
