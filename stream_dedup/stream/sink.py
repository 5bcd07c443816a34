"""The outputs: unique articles, links and dead letters, and the wait until the broker has them all.

Knows topics, keys and headers; knows nothing of how a decision is made.
"""

from collections.abc import Callable
from typing import cast

import structlog
from confluent_kafka import KafkaError, KafkaException, Message

from stream_dedup.article import Decision, fingerprint_hex, link_json
from stream_dedup.decode import Reason, UndecodableError
from stream_dedup.settings import OutputSettings, Settings
from stream_dedup.stream.clients import BrokerError, make_producer, producer_properties

HEADER_PREFIX = "stream_dedup."
_LONGEST_HEADER = 1_000  # characters of a header of ours
_LONGEST_NAME = 40  # characters of a foreign header's name in one of ours
_FULL_QUEUE_SECONDS = 0.05
_CONNECT_SECONDS = 5.0

log = structlog.get_logger()

Headers = list[tuple[str, str | bytes | None]]


class Sink:
    """Produces the outputs of a batch; `confirmed` says when the broker has confirmed them all.

    Args:
        settings: topics and the way to the broker.
        dead_room: how much of a message the topic of dead letters takes, in bytes.
        while_waiting: called again and again while the queue is full; may raise to give up.
    """

    def __init__(self, settings: Settings, dead_room: int, while_waiting: Callable[[], None]) -> None:
        self._output: OutputSettings = settings.output
        properties = producer_properties(settings)
        most = min(int(properties["queue.buffering.max.kbytes"]) << 10, int(properties["message.max.bytes"])) // 2
        self._dead_room = min(dead_room, most)
        self._while_waiting = while_waiting
        self._producer = make_producer(settings)
        self._fault: KafkaError | None = None
        self._connect()

    def _connect(self) -> None:
        """Let the producer find the broker and get its id now: the first batch need not wait for either."""
        try:
            self._producer.list_topics(self._output.unique, timeout=_CONNECT_SECONDS)
        except KafkaException as error:
            log.warning("producer_waits", error=error.args[0].str())

    def decision(self, message: Message, decision: Decision, decided_ms: int) -> None:
        """Send a decision to the topic where it belongs: the article as it came, or its link."""
        key = decision.article.id.encode()
        if decision.unique:
            own = _own_headers(
                fingerprint=fingerprint_hex(decision.fingerprint),
                idf_epoch=str(decision.epoch),
                **({"relation": decision.link.relation, "matched": decision.link.matched} if decision.link else {}),
            )
            self._send(self._output.unique, key, message.value(), [*(_incoming_headers(message) or []), *own])
        elif decision.link is not None:
            self._send(self._output.duplicates, key, link_json(decision, decision.link, decided_ms), [])

    def dead_letter(self, message: Message, error: UndecodableError) -> None:
        """Send a message that cannot be judged to the topic of dead letters, as it came, with the reason.

        What the topic has no room for is left out, the value first, then the headers, then the key, and said so.
        """
        value, key, headers = message.value(), message.key(), _incoming_headers(message)
        unreadable = {} if headers is not None else {"headers_left_out": "names that are no UTF-8"}
        headers = headers or []
        own = _own_headers(
            **unreadable,
            reason=error.reason,
            exception=f"{type(error).__name__}: {error}",
            topic=str(message.topic()),
            partition=str(message.partition()),
            offset=str(message.offset()),
        )
        if value is not None and message_size(value, key, headers) > self._dead_room:
            own += _own_headers(value_left_out=f"{len(value)} bytes, the topic has room for {self._dead_room}")
            value = None
        if headers and message_size(value, key, headers) > self._dead_room:
            own += _own_headers(headers_left_out=", ".join(name[:_LONGEST_NAME] for name, _ in headers))
            headers = []
        if key is not None and message_size(value, key, headers) > self._dead_room:
            own += _own_headers(key_left_out=f"{len(key)} bytes")
            key = None
        self._send(self._output.dead, key, value, [*headers, *own])

    def confirmed(self, seconds: float) -> bool:
        """Wait for a while and tell whether the broker has confirmed everything.

        Raises:
            BrokerError: it refused a message, or gave no answer within `output.flush_seconds`.
        """
        waiting = self._producer.flush(seconds)
        if self._fault is not None:
            raise BrokerError(f"the broker refused an output: {self._fault.str()} ({self._fault.name()})")
        return waiting == 0

    def close(self) -> None:
        """Forget what is not sent yet: its batch was not committed and will be judged again."""
        self._producer.purge()
        self._producer.flush(1)

    def _send(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, headers=headers, on_delivery=self._delivered)
                break
            except BufferError:
                if len(self._producer) == 0:
                    raise BrokerError(f"a message to {topic} is larger than the producer's queue takes") from None
                # The queue is full: a slow broker slows the reading.
                self.confirmed(_FULL_QUEUE_SECONDS)
                self._while_waiting()
            except KafkaException as error:
                raise BrokerError(f"cannot write to {topic}: {error.args[0].str()}") from None
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None and self._fault is None:
            self._fault = error


def message_size(value: bytes | None, key: bytes | None, headers: Headers) -> int:
    """Return the bytes of a message."""
    return len(value or b"") + len(key or b"") + sum(len(name) + len(content or b"") for name, content in headers)


def size_beside_value(message: Message) -> int:
    """Return the bytes of a message's key and headers, as far as an output repeats them.

    Raises:
        UndecodableError: a header cannot be read.
    """
    headers = _incoming_headers(message)
    if headers is None:
        raise UndecodableError(Reason.INVALID_HEADERS, "the name of a header is no UTF-8")
    return message_size(None, message.key(), headers)


def _own_headers(**fields: str) -> Headers:
    return [
        (HEADER_PREFIX + name, value[:_LONGEST_HEADER].encode("utf-8", "replace")) for name, value in fields.items()
    ]


def _incoming_headers(message: Message) -> Headers | None:
    """Return the headers as they came, but for those of an earlier run over the same article; None if unreadable."""
    try:
        # The consumer hands over a list, though its types allow a dictionary.
        headers = cast("Headers", message.headers() or [])
    except (SystemError, UnicodeDecodeError):  # a name that is no UTF-8
        return None
    return [(name, value) for name, value in headers if not name.startswith(HEADER_PREFIX)]
