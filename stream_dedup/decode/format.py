"""What every format of values has in common, and JSON without a schema.

Knows how fields come out of a value; knows nothing of topics or of what a field means.
"""

from collections.abc import Sequence
from typing import Protocol

from stream_dedup.decode.fields import Fields, Paths
from stream_dedup.decode.parse import exact_object, json_object
from stream_dedup.decode.scope import Header


class Format(Protocol):
    """A format of values."""

    def fields(self, value: bytes, headers: Sequence[Header]) -> Fields:
        """Return the object that a value holds.

        Args:
            value: of the message.
            headers: of the message, one of which may name the value's schema.

        Raises:
            UndecodableError: it holds none.
            RegistryError: the schema registry refuses, or is asked no more.
        """
        ...


def json_fields(value: bytes, paths: Paths) -> Fields:
    """Return the object of JSON in UTF-8, with a long integer in a name's field as it is; see `json_object`."""
    fields = json_object(value)
    if isinstance(paths.value(fields, "id"), float) or isinstance(paths.value(fields, "scope"), float):
        # orjson makes floats of integers over 64 bits.
        return exact_object(value)
    return fields


class JsonFormat:
    """JSON in UTF-8.

    Args:
        paths: of the fields, of which some may be long integers.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def fields(self, value: bytes, headers: Sequence[Header]) -> Fields:
        """Return the object that a value holds; see `Format`."""
        del headers
        return json_fields(value, self._paths)
