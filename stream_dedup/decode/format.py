"""What all formats of values have in common, and JSON without a schema.

Knows how fields are read from a value; knows nothing of topics or of what a field means.
"""

from collections.abc import Sequence
from typing import Protocol

from stream_dedup.decode.fields import Fields, Paths
from stream_dedup.decode.parse import exact_object, json_object
from stream_dedup.decode.scope import Header


class Format(Protocol):
    """A format of values."""

    def fields(self, value: bytes, headers: Sequence[Header]) -> Fields:
        """Return the object in a value.

        Args:
            value: of the message.
            headers: of the message, one of which may name the value's schema.

        Raises:
            UndecodableError: it contains none.
            RegistryError: the schema registry refuses, or was closed.
        """
        ...


def json_fields(value: bytes, paths: Paths) -> Fields:
    """Return the object of JSON in UTF-8; a long integer as id or scope keeps all its digits. See `json_object`."""
    fields = json_object(value)
    if isinstance(paths.value(fields, "id"), float) or isinstance(paths.value(fields, "scope"), float):
        # orjson turns integers over 64 bits into floats.
        return exact_object(value)
    return fields


class JsonFormat:
    """JSON in UTF-8.

    Args:
        paths: of the fields, some of which may be long integers.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def fields(self, value: bytes, headers: Sequence[Header]) -> Fields:
        """Return the object in a value; see `Format`."""
        del headers
        return json_fields(value, self._paths)
