"""Which space of a state is reclaimed, and when; with a store that notes what it is asked for.

Knows generations; knows nothing of files.
"""

import queue
from typing import Any

import pytest
from structlog.testing import capture_logs

from stream_dedup.index.records.generations import EXPIRING
from stream_dedup.index.records.ledger import Generation, Progress
from stream_dedup.index.records.records import generation_prefix, key_of
from stream_dedup.index.stores.store import Family, StoreError
from stream_dedup.stream import upkeep as upkeep_
from stream_dedup.stream.upkeep import Upkeep
from tests.stream.waiting import wait_until

_SECONDS = 60.0

_Range = tuple[Family, bytes, bytes]


class _Store:
    """Notes the ranges of keys whose space is to be reclaimed; fails as often as it is told."""

    def __init__(self) -> None:
        self.ranges: queue.SimpleQueue[_Range] = queue.SimpleQueue()
        self.faults = 0

    def reclaim(self, family: Family, begin: bytes, end: bytes) -> None:
        if self.faults:
            self.faults -= 1
            raise StoreError("the disk is full")
        self.ranges.put((family, begin, end))


class _Snapshots:
    """Counts how often requests are looked for."""

    def __init__(self) -> None:
        self.served = 0

    def serve(self) -> None:
        self.served += 1


def _progress(first: int) -> Progress:
    return Progress(generations=tuple(Generation(number, 0, 10 * number) for number in (first, first + 1)))


def _before(number: int) -> set[_Range]:
    """Return the keys of all generations before one, and of their entries."""
    expired = {(family, generation_prefix(0), generation_prefix(number)) for family in EXPIRING}
    return expired | {(Family.ENTRIES, key_of(0), key_of(10 * number))}


def _taken(store: _Store) -> set[_Range]:
    return {store.ranges.get(timeout=_SECONDS) for _ in (*EXPIRING, Family.ENTRIES)}


def test_space_of_expired_generations_is_reclaimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first turn too, since an earlier process may have ended before it was done; then once for each."""
    monkeypatch.setattr(upkeep_, "_TURN_SECONDS", 0.0)
    store: Any = _Store()
    snapshots: Any = _Snapshots()
    with Upkeep(store, snapshots) as upkeep:
        for first in (3, 3, 3, 5, 5):
            upkeep.turn(_progress(first))
        assert [_taken(store), _taken(store)] == [_before(3), _before(5)]
    assert store.ranges.empty()
    assert snapshots.served == 5


def test_space_that_cannot_be_reclaimed_is_told_and_tried_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream goes on meanwhile."""
    monkeypatch.setattr(upkeep_, "_TURN_SECONDS", 0.0)
    store: Any = _Store()
    store.faults = 1
    snapshots: Any = _Snapshots()
    with capture_logs() as lines, Upkeep(store, snapshots) as upkeep:
        upkeep.turn(_progress(3))
        wait_until(lambda: any(line["event"] == "space_not_reclaimed" for line in lines), "the fault is told")
        upkeep.turn(_progress(4))
        assert _taken(store) == _before(4)


def test_turns_are_a_second_apart() -> None:
    """However often the loop goes round: each looks into a directory."""
    store: Any = _Store()
    snapshots: Any = _Snapshots()
    with Upkeep(store, snapshots) as upkeep:
        for _ in range(100):
            upkeep.turn(_progress(0))
    assert snapshots.served == 1
