"""A message as a consumer hands it out, as far as its readers need one, or an error in its place.

Knows what is asked of a message; knows nothing of brokers.
"""

from collections.abc import Sequence

from confluent_kafka import KafkaError

from stream_dedup.decode import Header
from stream_dedup.stream.kafka.places import Place


class ArrivedMessage:
    """A message.

    Args:
        content: its value; None if it has none.
        timestamp_ms: when it was written, milliseconds since 1970 in UTC.
        offset: where it is in its partition.
        partition: which one.
        topic: of the partition.
        key: its key.
        headers: its headers; None if they cannot be read.
        epoch: of the leader that wrote it; None if the broker is too old to have any.
    """

    def __init__(
        self,
        content: bytes | None,
        timestamp_ms: int = 2,
        offset: int = 7,
        *,
        partition: int = 1,
        topic: str = "in",
        key: bytes | None = None,
        headers: Sequence[Header] | None = (),
        epoch: int | None = None,
    ) -> None:
        self._content = content
        self._timestamp_ms = timestamp_ms
        self._offset = offset
        self._partition = partition
        self._topic = topic
        self._key = key
        self._headers = headers
        self._epoch = epoch

    def error(self) -> None:
        """Return nothing: it is a message."""

    def __len__(self) -> int:
        """Return the size of the value."""
        return len(self._content or b"")

    def value(self) -> bytes | None:
        """Return the value."""
        return self._content

    def key(self) -> bytes | None:
        """Return the key."""
        return self._key

    def headers(self) -> list[Header] | None:
        """Return the headers; None if there are none.

        Raises:
            UnicodeDecodeError: they cannot be read.
        """
        if self._headers is None:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return list(self._headers) or None

    def topic(self) -> str:
        """Return the name of its topic."""
        return self._topic

    def partition(self) -> int:
        """Return the number of its partition."""
        return self._partition

    def offset(self) -> int:
        """Return where it is in its partition."""
        return self._offset

    def leader_epoch(self) -> int | None:
        """Return the epoch of its leader."""
        return self._epoch

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of the timestamp, that of its producer, and the timestamp."""
        return 1, self._timestamp_ms


class Fault(ArrivedMessage):
    """An error in place of a message."""

    def __init__(self, code: int, place: Place = ("in", 0), offset: int = 0, told: str = "as the broker says") -> None:
        super().__init__(b"", offset=offset, partition=place[1], topic=place[0])
        self._code = code
        self._told = told

    def error(self) -> KafkaError:  # type: ignore[override]  # not as of a message
        """Return the error."""
        return KafkaError(self._code, self._told)
