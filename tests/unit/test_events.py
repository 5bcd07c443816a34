"""The catalogue of events: the code logs exactly these, with these levels and fields."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import stream_dedup
from stream_dedup.observe.events import GROUPS, Event
from tests.events_page import PAGE, page
from tests.unit.catalogued import known_names

_SOURCES = Path(stream_dedup.__file__).parent
_LEVELS = {name: name for name in ("debug", "info", "warning", "error")} | {"exception": "error"}
_CATALOGUE = {event.name: event for events in GROUPS.values() for event in events}


@dataclass(frozen=True, slots=True)
class _Telling:
    """A place in the code that logs an event."""

    name: str
    level: str
    fields: frozenset[str]
    more: bool  # fields that the code does not name
    limited: bool
    place: str


def _tellings() -> Iterator[_Telling]:
    for path in sorted(_SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LEVELS:
                teller = _teller(node.func.value)
                if teller in {"log", "recurring_faults"}:
                    yield _telling(node, node.func.attr, teller, f"{path.relative_to(_SOURCES)}:{node.lineno}")


def _teller(node: ast.expr) -> str:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.lstrip("_")


def _telling(call: ast.Call, method: str, teller: str, place: str) -> _Telling:
    assert call.args, f"{place}: no event"
    name = call.args[0]
    assert isinstance(name, ast.Constant), f"{place}: the event's name is not written there"
    named = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    fields = frozenset({"exception" if field == "exc_info" else field for field in named})
    more = any(keyword.arg is None for keyword in call.keywords)
    return _Telling(str(name.value), _LEVELS[method], fields, more, teller == "recurring_faults", place)


_TELLINGS = list(_tellings())


def test_every_event_has_one_place_in_the_catalogue() -> None:
    """Names are in snake case and unique."""
    names = [event.name for events in GROUPS.values() for event in events]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in names)


def test_code_tells_the_events_of_the_catalogue_and_no_others() -> None:
    """According to the source, every event of the catalogue is logged somewhere, and no other is."""
    assert {telling.name for telling in _TELLINGS} == set(_CATALOGUE)


@pytest.mark.parametrize("telling", _TELLINGS, ids=lambda telling: f"{telling.name}-{telling.place}")
def test_telling_agrees_with_the_catalogue(telling: _Telling) -> None:
    """Each place that logs an event uses the catalogue's level, limit and fields."""
    event = _CATALOGUE[telling.name]
    assert (telling.level, telling.limited) == (event.level, event.limited)
    if telling.more:
        assert telling.fields < set(event.fields)
    else:
        assert telling.fields == set(event.fields)


@pytest.mark.parametrize("event", _CATALOGUE.values(), ids=lambda event: event.name)
def test_events_that_are_faults_say_what_to_do(event: Event) -> None:
    """Every event has a meaning, and every error an action."""
    assert event.meaning.endswith(".")
    assert event.action or event.level != "error"


def test_page_is_that_of_the_catalogue() -> None:
    """deploy/events.md is the output of `python -m tests.events_page`."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_nothing_is_told_past_the_log() -> None:
    """No module of the service uses Python's logging, except the one that captures what libraries log."""
    own = [path.name for path in _SOURCES.rglob("*.py") if "getLogger" in path.read_text(encoding="utf-8")]
    assert own == []


@pytest.mark.parametrize("event", _CATALOGUE.values(), ids=lambda event: event.name)
def test_names_that_a_text_refers_to_exist(event: Event) -> None:
    """These are other events, fields, and metrics without their prefix."""
    fields = {field for one in _CATALOGUE.values() for field in one.fields}
    known = {*_CATALOGUE, *fields, *(name.removeprefix("stream_dedup_") for name in known_names())}
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", f"{event.meaning} {event.action}"))
    assert named <= known
