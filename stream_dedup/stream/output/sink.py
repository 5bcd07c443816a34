"""The outputs: unique articles, links, announcements, clusters and dead letters.

Knows topics, keys and headers; knows nothing of how a decision is made or when it is committed.
"""

from collections.abc import Mapping, Sequence

from confluent_kafka import Message

from stream_dedup.article import Article, Decision, Succession, Withdrawal, Withdrawn
from stream_dedup.decode import UndecodableError
from stream_dedup.encode import Encoder
from stream_dedup.engine.clusters import Cluster, cluster_fields
from stream_dedup.output_fields import fingerprint_hex, link_fields, scope_json, succession_fields, withdrawal_fields
from stream_dedup.scope import name_of
from stream_dedup.settings import OWN_HEADERS, OutputSettings
from stream_dedup.stream.kafka.headers import Headers, incoming_headers, message_size, trace_headers
from stream_dedup.stream.output.writer import Writer

_LONGEST_HEADER = 1_000  # characters of one of the service's headers
_LONGEST_NAME = 40  # characters of a foreign header's name in one of them


class Sink:
    """Sends the results of messages to the topics where they belong.

    Args:
        settings: the topics.
        writer: sends.
        encoder: of links and clusters.
        dead_room: the largest message that fits the dead-letter topic, in bytes.
    """

    def __init__(self, settings: OutputSettings, writer: Writer, encoder: Encoder, dead_room: int) -> None:
        self._output = settings
        self._writer = writer
        self._encoder = encoder
        self._dead_room = dead_room

    def decision(self, message: Message, decision: Decision, decided_ms: int) -> None:
        """Send a decision: the article as it arrived, or its link."""
        article = decision.article
        key = article.name.encode()
        if decision.unique:
            own = _own_headers(
                fingerprint=fingerprint_hex(decision.fingerprint),
                idf_epoch=str(decision.epoch),
                **scope_json(article.scope),
                **({"relation": decision.link.relation, "matched": decision.link.matched} if decision.link else {}),
            )
            headers = [*(incoming_headers(message) or []), *own]
            self._writer.send(self._output.unique, key, message.value(), headers)
        elif decision.link is not None:
            fields = link_fields(decision, decision.link, decided_ms)
            self._writer.send(self._output.duplicates, key, self._encoder.link(fields), trace_headers(article.origin))

    def withdrawn(self, withdrawn: Withdrawn, decided_ms: int) -> None:
        """Announce that an article was withdrawn, and what its cluster is called now."""
        value = self._encoder.link(withdrawal_fields(withdrawn, decided_ms))
        name = name_of(withdrawn.withdrawal.scope, withdrawn.id)
        headers = trace_headers(withdrawn.withdrawal.origin)
        self._writer.send(self._output.duplicates, name.encode(), value, headers)

    def successions(self, successions: Sequence[Succession], cause: Article | Withdrawal, decided_ms: int) -> None:
        """Announce new canonical articles, under the names of the old ones.

        Args:
            successions: in order.
            cause: what led to them.
            decided_ms: when, milliseconds since 1970 in UTC.
        """
        for one in successions:
            key, value = name_of(one.scope, one.old).encode(), self._encoder.link(succession_fields(one, decided_ms))
            self._writer.send(self._output.duplicates, key, value, trace_headers(cause.origin))

    def clusters(self, clusters: Mapping[str, Cluster | None], decided_ms: int) -> None:
        """Send clusters, by name, as they are now; a tombstone if the name is no longer in use.

        They have no trace context: a cluster is the work of many messages.
        """
        for canonical, cluster in clusters.items():
            value = self._encoder.cluster(cluster_fields(cluster, decided_ms)) if cluster is not None else None
            self._writer.send(self._output.clusters, canonical.encode(), value, [])

    def dead_letter(self, message: Message, error: UndecodableError) -> None:
        """Send a message that cannot be judged to the dead-letter topic, as it arrived, with the reason.

        What there is no room for is left out: first the value, then the headers, then the key; a header says so.
        """
        value, key, headers = message.value(), message.key(), incoming_headers(message)
        unreadable = {} if headers is not None else {"headers_left_out": "names that are not valid UTF-8"}
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
            own += _own_headers(value_left_out=f"{len(value)} bytes, there is room for {self._dead_room}")
            value = None
        if headers and message_size(value, key, headers) > self._dead_room:
            own += _own_headers(headers_left_out=", ".join(name[:_LONGEST_NAME] for name, _ in headers))
            headers = []
        if key is not None and message_size(value, key, headers) > self._dead_room:
            own += _own_headers(key_left_out=f"{len(key)} bytes")
            key = None
        self._writer.send(self._output.dead, key, value, [*headers, *own])


def _own_headers(**fields: str | None) -> Headers:
    """Return headers of the service; those without a value are left out."""
    known = {name: value for name, value in fields.items() if value is not None}
    return [(OWN_HEADERS + name, value[:_LONGEST_HEADER].encode("utf-8", "replace")) for name, value in known.items()]
