"""A message as a consumer hands it out, as far as decoding needs one.

Knows what decoding asks of a message; knows nothing of brokers.
"""


class ArrivedMessage:
    """A message without key and headers.

    Args:
        content: its value.
        timestamp_ms: when it was written, milliseconds since 1970 in UTC.
        offset: where it is in its partition.
    """

    def __init__(self, content: bytes, timestamp_ms: int = 2, offset: int = 7) -> None:
        self._content = content
        self._timestamp_ms = timestamp_ms
        self._offset = offset

    def value(self) -> bytes:
        """Return the value."""
        return self._content

    def key(self) -> None:
        """Return no key."""

    def headers(self) -> None:
        """Return no headers."""

    def topic(self) -> str:
        """Return the name of a topic."""
        return "in"

    def partition(self) -> int:
        """Return the number of a partition."""
        return 1

    def offset(self) -> int:
        """Return where it is in its partition."""
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of the timestamp, that of its producer, and the timestamp."""
        return 1, self._timestamp_ms
