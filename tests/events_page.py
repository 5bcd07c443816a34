"""Keeps deploy/events.md in step with the catalogue of events.

Knows how an event is written down; run as a module it updates the page.
"""

from collections.abc import Iterator
from pathlib import Path

from stream_dedup.observe.events import GROUPS, Event

PAGE = Path(__file__).parent.parent / "deploy" / "events.md"
_HEAD = """# Events of the log
Every line of the log is one of these events, with `timestamp` (UTC), `level` and `event`.
[How logs are written](README.md#logs).

Events marked ↻ are limited. The first is logged at once. Those with the same `error` that follow within half a minute
are combined: at its end the last of them is logged, with their number in `repeated`.

`make events-page` generates this page from `stream_dedup/observe/events.py`.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *(line for title, events in GROUPS.items() for line in _group(title, events))])


def _group(title: str, events: tuple[Event, ...]) -> Iterator[str]:
    yield f"## {title}"
    yield "| event | level | fields | meaning | what to do |\n| --- | --- | --- | --- | --- |"
    for event in events:
        name = f"`{event.name}`{' ↻' if event.limited else ''}"
        fields = ", ".join(f"`{field}`" for field in event.fields)
        yield f"| {name} | {event.level} | {fields} | {event.meaning} | {event.action} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
