"""Messages that carry their number in a header, so that each can be found in the outputs.

Knows how a message came out; knows nothing of what is in it.
"""

from collections.abc import Iterable
from dataclasses import replace

from tests.stream.messages import Headers, Incoming
from tests.stream.records import Outputs, Record


def numbered(messages: Iterable[Incoming], headers: Headers | None = None) -> list[Incoming]:
    """Number messages in a header, so that each can be found in the outputs."""
    return [
        replace(message, headers=[("number", str(number).encode()), *(headers or [])])
        for number, message in enumerate(messages)
    ]


def number_of(record: Record) -> int:
    """Return the number of a message that came out whole."""
    return int(dict(record.headers)["number"] or b"")


def numbers_of(outputs: Outputs) -> list[int]:
    """Return the numbers of all messages that came out; links name offsets, which equal the numbers."""
    whole = [number_of(record) for record in (*outputs.unique, *outputs.dead)]
    return sorted(whole + [int(record.json()["offset"]) for record in outputs.duplicates])
