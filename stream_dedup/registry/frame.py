"""Confluent's wire format: which schema a value has, and where the value itself begins.

Knows the bytes before a value and the header that may replace them; knows no format.
"""

import struct
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from stream_dedup.registry.client import Key

HEADER = "__value_schema_id"  # set by newer producers, which leave the value unchanged
_MAGIC_ID, _MAGIC_GUID = 0, 1
_LARGEST_ID = 2**31 - 1  # registries count in signed 32-bit integers
_ID_END, _GUID_END = 5, 17
_FIRST = b"\0"  # the indexes of a file's first message, for short
_MOST_INDEXES = 64  # messages within messages
_LONGEST_VARINT = 5  # bytes of an index


class FrameError(ValueError):
    """A value does not name its schema."""


class Frame(NamedTuple):
    """A value and its schema.

    Attributes:
        schema: of the value.
        indexes: which of a file's messages it is, from the outermost one inwards; empty except for Protobuf.
        payload: the value itself.
    """

    schema: Key
    indexes: tuple[int, ...]
    payload: bytes


def framed(value: bytes, headers: Sequence[tuple[str, bytes | None]] = (), *, indexed: bool = False) -> Frame:
    """Return the value of a message and its schema, which the header names or else the value's first bytes.

    Args:
        value: of the message.
        headers: of the message; if a name occurs several times, the last counts.
        indexed: whether the indexes of a Protobuf message follow the schema.

    Raises:
        FrameError: it does not name its schema.
    """
    content = dict(headers).get(HEADER)
    if content is not None:
        key, indexes, _ = _read(content, indexed=indexed)
        return Frame(key, indexes, value)
    key, indexes, behind = _read(value, indexed=indexed)
    return Frame(key, indexes, value[behind:])


def prefix(schema_id: int, *, indexed: bool) -> bytes:
    """Return the bytes before a value of a schema; if indexed, before the first message of a Protobuf file."""
    return struct.pack(">BI", _MAGIC_ID, schema_id) + (_FIRST if indexed else b"")


def _read(head: bytes, *, indexed: bool) -> tuple[Key, tuple[int, ...], int]:
    magic = head[0] if head else None
    key: Key
    if magic == _MAGIC_ID and len(head) >= _ID_END:
        key, behind = _checked_id(int.from_bytes(head[1:_ID_END], "big")), _ID_END
    elif magic == _MAGIC_GUID and len(head) >= _GUID_END:
        key, behind = str(uuid.UUID(bytes=head[1:_GUID_END])), _GUID_END
    else:
        shown = head[:_ID_END].hex(" ") or "nothing"
        raise FrameError(f"{len(head)} bytes that begin with {shown}: no magic byte 0 followed by the id of a schema")
    if not indexed:
        return key, (), behind
    return key, *_indexes(head, behind)


def _checked_id(schema_id: int) -> int:
    if schema_id > _LARGEST_ID:
        raise FrameError(f"{schema_id} is not the id of a schema: these are at most {_LARGEST_ID}")
    return schema_id


def _indexes(head: bytes, place: int) -> tuple[tuple[int, ...], int]:
    count, place = _zigzag(head, place)
    if not 0 <= count <= _MOST_INDEXES:
        raise FrameError(f"{count} indexes of a message, at most {_MOST_INDEXES}")
    indexes = []
    for _ in range(count):
        index, place = _zigzag(head, place)
        indexes.append(index)
    return tuple(indexes) or (0,), place


def _zigzag(head: bytes, place: int) -> tuple[int, int]:
    number = 0
    for shift, byte in enumerate(head[place : place + _LONGEST_VARINT]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:  # noqa: PLR2004  # the bit that says that another byte follows
            return (number >> 1) ^ -(number & 1), place + shift + 1
    raise FrameError("the indexes of a message are truncated")
