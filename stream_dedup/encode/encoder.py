"""What all formats of outputs have in common, and JSON.

Knows what is encoded; knows no schema.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import orjson


class Encoder(Protocol):
    """Turns links (announcements included) and clusters into values of messages."""

    def link(self, fields: Mapping[str, Any], /) -> bytes:
        """Return a link, given its fields as in JSON."""
        ...

    def cluster(self, fields: Mapping[str, Any], /) -> bytes:
        """Return a cluster, given its fields as in JSON."""
        ...


class JsonEncoder:
    """JSON without a schema."""

    link = staticmethod(orjson.dumps)
    cluster = staticmethod(orjson.dumps)
