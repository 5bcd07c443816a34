"""Decodes input messages into articles and withdrawals, or the reason why they are neither.

Knows messages and their headers; knows nothing of what becomes of them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from confluent_kafka import Message

from stream_dedup.article import Article, Origin, Withdrawal
from stream_dedup.decode import Decoder, UndecodableError, internal
from stream_dedup.engine.prepared import Prepared, prepared_without_faulty
from stream_dedup.machine_faults import MACHINE_FAULTS
from stream_dedup.observe.faults import raised_at
from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.registry import RegistryError
from stream_dedup.stream.kafka.headers import message_size, readable_headers
from stream_dedup.stream.kafka.places import offset_of, place_of, timestamp_of
from stream_dedup.trace import Trace, trace_of

log = structlog.get_logger()
_recurring_faults = RecurringFaults()  # shared by all messages


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded messages.

    Attributes:
        items: the articles and withdrawals, with their messages.
        dead: the other messages, with the reason.
    """

    items: Sequence[tuple[Message, Article | Withdrawal]]
    dead: Sequence[tuple[Message, UndecodableError]]


def decode_all(messages: Sequence[Message], decoder: Decoder, stream_ms: int) -> Decoded:
    """Decode messages; a faulty one never affects the others.

    Args:
        messages: in order.
        decoder: reads them.
        stream_ms: the stream's time, which has come even if the clock lags, milliseconds since 1970 in UTC; 0 if
            unknown.

    Raises:
        RegistryError: the schema registry refuses, or its client was closed.
        OSError: the machine fails, whatever the message.
        MemoryError: the same.
    """
    now_ms = max(time.time_ns() // 1_000_000, stream_ms)
    items: list[tuple[Message, Article | Withdrawal]] = []
    dead: list[tuple[Message, UndecodableError]] = []
    for message in messages:
        try:
            headers, key = readable_headers(message), message.key()
            beside = message_size(None, key, headers)
            origin = _origin(message, trace_of(headers))
            item = decoder.decode(message.value(), now_ms, origin, key=key, headers=headers, beside=beside)
            items.append((message, item))
        except UndecodableError as error:
            dead.append((message, error))
        except (RegistryError, *MACHINE_FAULTS):
            raise  # it says nothing about the message
        except Exception as error:  # noqa: BLE001  # whatever one message does, the stream continues
            dead.append((message, _fault(message, error)))
    return Decoded(items, dead)


def prepared_all(
    decoded: Decoded, prepare: Callable[[Sequence[Article | Withdrawal]], Prepared | None]
) -> tuple[Decoded, Prepared | None]:
    """Prepare the articles in messages; those that cannot be prepared are dead; see `prepared_without_faulty`."""
    prepared, faults = prepared_without_faulty([item for _, item in decoded.items], prepare)
    if not faults:
        return decoded, prepared
    sound = [one for place, one in enumerate(decoded.items) if place not in faults]
    faulty = [(decoded.items[place][0], fault) for place, fault in faults.items()]
    dead = [*decoded.dead, *((message, _fault(message, fault)) for message, fault in faulty)]
    return Decoded(sound, dead), prepared


def _fault(message: Message, error: Exception) -> UndecodableError:
    """Log a fault of the service, without the exception's message: that may quote the article. Return the reason."""
    where = raised_at(error)
    _recurring_faults.error(
        "message_not_decoded",
        error=f"{type(error).__name__} at {where.partition(' <')[0]}",
        detail=where,
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
    )
    log.debug("message_fault", exc_info=error)
    return internal(error)


def _origin(message: Message, trace: Trace | None) -> Origin:
    return Origin(*place_of(message), offset_of(message), timestamp_of(message), trace)
