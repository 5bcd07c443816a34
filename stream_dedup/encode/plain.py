"""Links as they are in JSON, from what a typed format gives.

Knows fields and kinds; knows no format.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from stream_dedup.output_fields import iso
from stream_dedup.output_shapes import LINK, ONLY_WHERE_TOLD, Kind


def plain_link(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a link or an announcement, with null for missing fields and times as ISO 8601."""
    link = {}
    for field in LINK.fields:
        value = fields.get(field.name)
        if isinstance(value, datetime) and field.kind is Kind.TIMESTAMP:
            value = iso(round(value.timestamp() * 1000))
        if value is not None or field.name not in ONLY_WHERE_TOLD:
            link[field.name] = value
    return link
