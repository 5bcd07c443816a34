"""What links and clusters look like: the kinds of their fields, which every format's schema is made from.

Knows names and kinds of fields; knows no format. A field's position is its number in Protobuf: new ones come last,
and none is removed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Any

NAMESPACE = "stream_dedup"


class Kind(Enum):
    """What a field holds."""

    TEXT = auto()
    INTEGER = auto()
    FLOAT = auto()  # a floating-point number
    TIMESTAMP = auto()  # a time, to the millisecond


@dataclass(frozen=True, slots=True)
class Field:
    """A field.

    Attributes:
        name: as in JSON.
        kind: what it holds; a shape stands for a list of these.
        required: whether it is always there; otherwise it may be null or missing.
    """

    name: str
    kind: "Kind | Shape"
    required: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """A record.

    Attributes:
        name: of the record.
        fields: in order.
    """

    name: str
    fields: tuple[Field, ...]


def time_parser(shape: Shape) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that returns a record's fields, given as in JSON, with times as `datetime`."""
    times = [field.name for field in shape.fields if field.kind is Kind.TIMESTAMP]

    def parsed(fields: Mapping[str, Any]) -> dict[str, Any]:
        known = {name: fields[name] for name in times if fields.get(name) is not None}
        return {**fields, **{name: datetime.fromisoformat(text) for name, text in known.items()}}

    return parsed


LINK = Shape(
    "Link",
    (
        Field("id", Kind.TEXT, required=True),
        Field("duplicate_of", Kind.TEXT),
        Field("matched", Kind.TEXT),
        Field("relation", Kind.TEXT, required=True),
        Field("jaccard", Kind.FLOAT),
        Field("containment", Kind.FLOAT),
        Field("hamming", Kind.INTEGER),
        Field("fingerprint", Kind.TEXT),
        Field("idf_epoch", Kind.INTEGER),
        Field("candidate_source", Kind.TEXT),
        Field("source", Kind.TEXT),
        Field("url", Kind.TEXT),
        Field("topic", Kind.TEXT),
        Field("partition", Kind.INTEGER),
        Field("offset", Kind.INTEGER),
        Field("published_at", Kind.TIMESTAMP),
        Field("received_at", Kind.TIMESTAMP),
        Field("decided_at", Kind.TIMESTAMP),
        Field("reason", Kind.TEXT),
        Field("scope", Kind.TEXT),
    ),
)
# In JSON, these fields of a link are missing if they have no value; any other is null.
ONLY_WHERE_TOLD = frozenset({"reason", "scope"})

SOURCE = Shape("Source", (Field("source", Kind.TEXT, required=True), Field("articles", Kind.INTEGER, required=True)))

CLUSTER = Shape(
    "Cluster",
    (
        Field("canonical", Kind.TEXT, required=True),
        Field("copies", Kind.INTEGER, required=True),
        Field("first_seen", Kind.TIMESTAMP),
        Field("last_seen", Kind.TIMESTAMP),
        Field("distinct_sources", Kind.INTEGER, required=True),
        Field("sources", SOURCE, required=True),
        Field("other_sources_articles", Kind.INTEGER, required=True),
        Field("updated_at", Kind.TIMESTAMP),
        Field("scope", Kind.TEXT),
    ),
)
