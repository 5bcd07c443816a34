"""Keeps deploy/events.md the page that the catalogue of events makes.

Knows how an event is written down; run as a module it renews the page.
"""

from collections.abc import Iterator
from pathlib import Path

from stream_dedup.observe.events import GROUPS, Event

PAGE = Path(__file__).parent.parent / "deploy" / "events.md"
_HEAD = """# Events of the log
Every line of the log is one of these events, with `timestamp` (UTC), `level` and `event`.
[How logs are written](README.md#logs).

Those with ↻ are told once for all that are alike in `error` within half a minute: the first at once, the others at the
end of it, as the last of them with `repeated`, their number.

The page is made of `stream_dedup/observe/events.py` by `make events-page`.
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
