"""Fixtures of the tests of the input without a broker.

Knows a client in memory, its clock, and sources that read from it.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from stream_dedup.settings import Settings
from stream_dedup.stream.input import source as source_
from stream_dedup.stream.input import subscription, time_order
from stream_dedup.stream.input.positions import Identify
from stream_dedup.stream.input.source import Source
from stream_dedup.stream.kafka.places import Place
from tests.unit.clock import Clock
from tests.unit.input.client import Client, Make


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that moves only while the client waits."""
    made = Clock()
    for module in (source_, subscription):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Client:
    """The client of the sources of a test."""
    made = Client(clock)
    made.topics = {"in": (0, 1)}
    monkeypatch.setattr(source_, "make_consumer", lambda *_: made)
    return made


@pytest.fixture
def make(client: Client) -> Iterator[Make]:  # noqa: ARG001  # must be there first
    """A function that makes a source of the topic `in`, given the state's positions and settings by group."""
    made: list[Source] = []

    def make(
        positions: dict[Place, int] | None = None, identify: Identify = lambda _: {}, **groups: dict[str, Any]
    ) -> Source:
        given = {"input": {"topics": ["in"]}, **groups}
        source = Source(Settings.model_validate(given), positions or {}, identify)
        made.append(source)
        return source

    yield make
    for source in made:
        source.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a silent partition be waited for, however slow the machine is."""
    monkeypatch.setattr(time_order, "_SILENCE_SECONDS", 1e9)
