"""Decisions, as read from the output topics.

Knows the topics and what their messages contain; knows nothing of how they are read.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from confluent_kafka import Message
from pydantic import Field

from stream_dedup.article import Announcement, Article, Origin, Relation, Source
from stream_dedup.ask.answers import Answer, Encodable, MessageLocation
from stream_dedup.closing import SelfClosing
from stream_dedup.decode import UndecodableError
from stream_dedup.output_fields import iso
from stream_dedup.scope import id_of, scope_of
from stream_dedup.settings import Settings
from stream_dedup.stream.formats import Formats, give_up
from stream_dedup.stream.kafka.headers import incoming_headers, own_headers
from stream_dedup.stream.kafka.places import offset_of, place_of

DecisionKind = Literal["unique", "duplicate", "announcement", "dead"]


class DecisionAnswer(Answer):
    """A decision that was published."""

    decision: DecisionKind = Field(
        description="An announcement says that an article was withdrawn or a cluster renamed."
    )
    relation: Relation | Announcement | None = None
    id: str | None = Field(default=None, description="The article's id; null for a dead letter without a key.")
    scope: str = ""
    title: Encodable = Field(default="", description="Only for unique articles: links do not repeat it.")
    source: str = ""
    url: str = ""
    published_at: str | None = None
    duplicate_of: str | None = None
    matched: str | None = None
    jaccard: float | None = None
    containment: float | None = None
    hamming: int | None = None
    candidate_source: Source | None = None
    fingerprint: str | None = None
    idf_epoch: int | None = None
    reason: str | None = Field(
        default=None, description="Why a message is a dead letter, or a cluster goes by another id."
    )
    detail: str | None = Field(default=None, description="Why a message is a dead letter, in words.")
    decided_at: str | None = Field(default=None, description="The time of the message.")
    message: MessageLocation | None = Field(default=None, description="Location of the judged message, if known.")
    output: MessageLocation = Field(description="Location of the message that reports the decision.")


class Decisions(SelfClosing):
    """Reads the messages of the three output topics.

    Use it as a context manager, or call `close`.

    Args:
        settings: name the topics and the formats of articles and links there.

    Raises:
        SettingsError: the registry's client refuses a property, or a package is missing.
    """

    def __init__(self, settings: Settings) -> None:
        output, self._formats = settings.output, Formats(settings, give_up)
        self._decoder = self._formats.decoder()
        # A unique article has the bytes it came with and does not say from which topic: try one topic for each format.
        named = [*settings.input.formats, ""]
        self._origins = [
            Origin(topic, 0, 0) for topic in {settings.input.format_of(name): name for name in named}.values()
        ]
        self._read_link = self._formats.link_reader()
        self._readers = {output.unique: self._unique, output.duplicates: self._link, output.dead: _dead_letter}

    def close(self) -> None:
        """Disconnect from the registry."""
        self._formats.close()

    @property
    def topics(self) -> list[str]:
        """The topics that decisions are read from."""
        return list(self._readers)

    def decision(self, message: Message) -> DecisionAnswer | None:
        """Return the decision that a message reports; None if the message is empty.

        Raises:
            RegistryError: the schema registry does not answer, or refuses.
            ValueError: it was not written by the service, or its format cannot be read.
        """
        output = output_of(message)
        try:
            fields = self._readers[output.topic](message)
            if fields is None:
                return None
            told = {**fields, "decided_at": iso(message.timestamp()[1]), "output": output}
            return DecisionAnswer.model_validate(told)
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"not a decision of this service, or in an unknown format: {output}") from None

    def _unique(self, message: Message) -> dict[str, Any]:
        own, name = own_headers(message), _name(message)
        article = self._article(message)
        told = (
            {
                "title": article.title,
                "source": article.source,
                "url": article.url,
                "published_at": iso(article.published_ms),
            }
            if article is not None
            else {}
        )
        return {
            "decision": "unique",
            "id": id_of(name),
            "scope": scope_of(name),
            **{header: own.get(header) for header in ("relation", "matched", "fingerprint", "idf_epoch")},
            **told,
        }

    def _article(self, message: Message) -> Article | None:
        """Return a unique article, None if it cannot be read with the current settings."""
        now_ms = time.time_ns() // 1_000_000
        # A published article had readable headers.
        headers = incoming_headers(message) or []
        for origin in self._origins:
            with suppress(UndecodableError):
                item = self._decoder.decode(message.value(), now_ms, origin, key=message.key(), headers=headers)
                return item if isinstance(item, Article) else None
        return None

    def _link(self, message: Message) -> dict[str, Any] | None:
        value = message.value()
        if value is None:
            return None
        link = self._read_link(value)
        announced = link["relation"] in set(Announcement)
        told = DecisionAnswer.model_fields.keys() & link.keys()
        known = {name: link[name] for name in told if link[name] is not None}
        return {"decision": "announcement" if announced else "duplicate", **known, "message": judged_location(link)}


def output_of(message: Message) -> MessageLocation:
    """Return the location of a message."""
    topic, partition = place_of(message)
    return MessageLocation(topic=topic, partition=partition, offset=offset_of(message))


def _dead_letter(message: Message) -> dict[str, Any]:
    own, name = own_headers(message), _name(message)
    return {
        "decision": "dead",
        "id": id_of(name) or None,
        "scope": scope_of(name),
        "reason": own.get("reason"),
        "detail": own.get("exception"),
        "message": judged_location(own),
    }


def judged_location(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the location of the judged message from the fields of a decision; None if they lack it."""
    known = {name: fields.get(name) for name in ("topic", "partition", "offset")}
    return None if None in known.values() else known


def _name(message: Message) -> str:
    return (message.key() or b"").decode("utf-8", "replace")
