"""What the service reads and writes, when it commits, and where it keeps its state.

Knows names and bounds of these settings; knows nothing of where values come from or who uses them.
"""

import re
from itertools import permutations
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from stream_dedup.settings.kinds import (
    TOPIC,
    TOPIC_FORM,
    Group,
    SettingPath,
    check_pattern,
    form,
    split_commas,
    split_pairs,
    unit,
)

OWN_HEADERS = "stream_dedup."  # prefix of the headers that the service writes
FormatName = Literal["json", "avro", "protobuf", "json-schema"]


def is_expression(wanted: str) -> bool:
    """Tell whether one of `input.topics` is a Python regular expression and not a name."""
    return wanted.startswith("^")


def topic_matches(wanted: str, topic: str) -> bool:
    """Tell whether one of `input.topics`, a name or a regular expression, matches a topic."""
    return re.match(wanted, topic) is not None if is_expression(wanted) else wanted == topic


class FieldSettings(Group):
    """Where each field is in the incoming JSON, as a dotted path."""

    id: str = Field(default="id", min_length=1, description="Path of the article's id, a string or an integer.")
    title: str = Field(default="title", min_length=1, description="Path of the title.")
    body: str = Field(default="body", min_length=1, description="Path of the text that is compared.")
    url: str = Field(default="url", min_length=1, description="Path of the URL, which names an article without an id.")
    source: str = Field(default="source", min_length=1, description="Path of the publisher's name.")
    published_at: str = Field(
        default="published_at",
        min_length=1,
        description="Path of the publication time: ISO 8601, the forms of Chinese sites or of RSS, or seconds or "
        "milliseconds since 1970.",
    )
    deleted: str = Field(
        default="deleted", min_length=1, description="Path of a flag; true withdraws the article with that id or URL."
    )
    scope: str = Field(
        default="",
        description="Path of the scope (a tenant, a channel, a language), a string or an integer. Articles are "
        "compared only within a scope. Empty: no scope is read.",
    )

    @field_validator("*")
    @classmethod
    def _names_between_dots(cls, path: str) -> str:
        if path and not all(path.split(".")):
            raise ValueError("a name is missing before or after a dot: `doc.text` is `text` in `doc`")
        return path

    @model_validator(mode="after")
    def _no_value_within_another(self) -> Self:
        paths = [(f"input.fields.{name} = {path!r}", path) for name, path in self.model_dump().items() if path]
        for (inner, longer), (outer, path) in permutations(paths, 2):
            if longer.startswith(f"{path}."):
                raise ValueError(
                    f"{inner} is within {outer}, which must be a value and not an object: change one of the paths; "
                    "for a field that the articles do not have, to one that they do not have either"
                )
        return self


class InputSettings(Group):
    """What is read, and the limits that articles must respect."""

    topics: list[str] = Field(
        default=["articles.in"],
        min_length=1,
        description="Topics to read. A name that begins with ^ is a Python regular expression, applied from the start "
        "of topic names; the index's own topics are always excluded.",
    )
    group: str = Field(
        default="stream-dedup",
        min_length=1,
        pattern=r"\S",
        json_schema_extra=form("not blank"),
        description="Consumer group. Two indexes (`state.name`) need two groups: of one, each gets only some of "
        "the partitions.",
    )
    format: FormatName = Field(
        default="json",
        description="Format of the message values. All except `json` use Confluent's wire format and the schemas of "
        "`registry.url`.",
    )
    formats: dict[str, FormatName] = Field(
        default={},
        description="Formats of topics that differ from `input.format`, by name or by a regular expression in "
        "`input.topics`.",
    )
    validate_schema: bool = Field(
        default=True, description="Whether `json-schema` values are validated against their schema."
    )
    cloudevents: Literal["ignore", "accept"] = Field(
        default="ignore",
        description="`accept`: `input.fields` can refer to CloudEvents attributes, in headers or around the data, as "
        "`ce_id`, `ce_time`, ...; for structured-mode events, the data is read as the article.",
    )
    fields: FieldSettings = FieldSettings()
    scope_header: str = Field(
        default="",
        description="Message header with the scope, in UTF-8. It takes precedence over `input.fields.scope`. Empty: "
        "no header is read.",
    )
    scope_missing: Literal["unscoped", "dead"] = Field(
        default="unscoped",
        description="What happens to a message without a scope: it is compared only with others without one, or "
        "becomes a dead letter.",
    )
    utc_offset: str = Field(
        default="+08:00",
        pattern=r"^[+-](0\d|1[0-4]):[0-5]\d$",
        json_schema_extra=form("a sign, two digits of hours up to 14, a colon and two of minutes, such as +08:00"),
        description="Time zone of times that do not specify one.",
    )
    max_message_bytes: int = Field(
        default=8 << 20,
        ge=1024,
        le=1 << 30,
        json_schema_extra=unit("bytes"),
        description="Maximum size of a message that is decoded.",
    )
    max_body_chars: int = Field(
        default=1_000_000,
        ge=100,
        le=100_000_000,
        json_schema_extra=unit("characters"),
        description="Maximum length of a body that is judged.",
    )
    max_title_chars: int = Field(
        default=2_000,
        ge=1,
        le=1_000_000,
        json_schema_extra=unit("characters"),
        description="Maximum length of a title.",
    )
    max_id_bytes: int = Field(
        default=512, ge=16, le=4096, json_schema_extra=unit("bytes"), description="Maximum length of an id in UTF-8."
    )
    max_future_seconds: int = Field(
        default=86_400,
        ge=0,
        le=10**10,
        json_schema_extra=unit("seconds"),
        description="How far a publication time may be ahead of the clock. A message timestamp further ahead is "
        "ignored.",
    )

    _split_topics = field_validator("topics", mode="before")(split_commas)
    _split_formats = field_validator("formats", mode="before")(split_pairs)

    @model_validator(mode="after")
    def _formats_of_topics(self) -> Self:
        for name in self.formats:
            if name not in self.topics and not any(topic_matches(topic, name) for topic in self.topics):
                raise ValueError(f"input.formats: {name!r} is not one of input.topics ({', '.join(self.topics)})")
        return self

    @property
    def scoped(self) -> bool:
        """Whether messages can have a scope."""
        return bool(self.scope_header or self.fields.scope)

    def format_of(self, topic: str) -> FormatName:
        """Return the format of a topic: its own, that of the first regular expression that matches, or the default."""
        if topic in self.formats:
            return self.formats[topic]
        return next((form for name, form in self.formats.items() if topic_matches(name, topic)), self.format)

    @property
    def wire_formats(self) -> set[FormatName]:
        """The formats of its topics that require a schema registry."""
        return {self.format, *self.formats.values()} - {"json"}

    @field_validator("scope_header")
    @classmethod
    def _foreign_header(cls, name: str) -> str:
        if name.startswith(OWN_HEADERS):
            raise ValueError(f"headers that begin with {OWN_HEADERS} are the service's own, which it does not read")
        return name

    @model_validator(mode="after")
    def _scopes_looked_for(self) -> Self:
        if self.scope_missing == "dead" and not self.scoped:
            raise ValueError("input.scope_missing = dead requires input.scope_header or input.fields.scope")
        return self

    @field_validator("topics")
    @classmethod
    def _no_topic_twice(cls, topics: list[str]) -> list[str]:
        if len(set(topics)) < len(topics):
            raise ValueError("a topic is listed twice")
        return topics

    @field_validator("topics")
    @classmethod
    def _valid_patterns(cls, topics: list[str]) -> list[str]:
        for topic in topics:
            if is_expression(topic):
                check_pattern(topic)
            elif not re.fullmatch(TOPIC.strip("^$"), topic):
                raise ValueError(
                    f"{topic!r} is neither a topic name (letters, digits, . _ -) nor a ^regular expression; a flag or "
                    "variable is split at commas, so an expression with a comma belongs in the settings file"
                )
        return topics


class OutputSettings(Group):
    """Where decisions go."""

    unique: str = Field(
        default="articles.unique", pattern=TOPIC, json_schema_extra=TOPIC_FORM, description="Topic of unique articles."
    )
    duplicates: str = Field(
        default="articles.duplicates", pattern=TOPIC, json_schema_extra=TOPIC_FORM, description="Topic of links."
    )
    dead: str = Field(
        default="articles.dead",
        pattern=TOPIC,
        json_schema_extra=TOPIC_FORM,
        description="Topic of dead letters: messages that cannot be judged.",
    )
    clusters: str = Field(
        default="articles.clusters",
        pattern=TOPIC,
        json_schema_extra=TOPIC_FORM,
        description="Compacted topic of clusters, keyed by the canonical article's id.",
    )
    format: FormatName = Field(
        default="json",
        description="Format of links and clusters. Unique articles and dead letters keep the incoming bytes.",
    )
    register_schemas: bool = Field(
        default=True,
        description="Whether the service registers the schemas of links and clusters (as TOPIC-value); if not, they "
        "must already exist.",
    )
    create: bool = Field(
        default=True,
        description="Whether missing topics are created: outputs with the broker's defaults, the clusters and state "
        "topics as compacted.",
    )


class CommitSettings(Group):
    """When decisions are committed, and with which guarantee. The first limit reached triggers a commit."""

    guarantee: Literal["exactly_once", "at_least_once"] = Field(
        default="exactly_once",
        description="`exactly_once`: outputs, changelog and input offsets in one Kafka transaction. `at_least_once`: "
        "for brokers without transactions; after a kill, the outputs of a commit may appear twice, under the same "
        "keys.",
    )
    articles: int = Field(
        default=2048,
        ge=1,
        le=4096,
        json_schema_extra=unit("messages"),
        description="Messages after which a commit is due.",
    )
    bytes: int = Field(
        default=32 << 20,
        ge=1 << 20,
        le=1 << 30,
        json_schema_extra=unit("bytes"),
        description="Bytes of messages after which a commit is due.",
    )
    interval_ms: int = Field(
        default=25,
        ge=1,
        le=10_000,
        json_schema_extra=unit("milliseconds"),
        description="Time after its first message when a commit is due.",
    )
    deadline_seconds: float = Field(
        default=60.0,
        ge=5,
        le=240,
        json_schema_extra=unit("seconds"),
        description="How long a commit may take, including retries after transient broker errors, before it is "
        "aborted. Aborting it may take as long again; without a broker, the process ends after that.",
    )


class StateSettings(Group):
    """Where and how the index is stored: on Kafka as a changelog, and in a directory as a RocksDB database."""

    directory: SettingPath = Field(
        default=Path("state"),
        description="Directory of the databases, one for each set of settings that fingerprints depend on.",
    )
    name: str = Field(
        default="",
        pattern=r"^[a-zA-Z0-9._-]{0,200}$",
        json_schema_extra=form("at most 200 characters out of a-z, A-Z, 0-9, dot, underscore and hyphen"),
        description="Name of the index on Kafka. Its topics are NAME.owner and NAME.changelog.DIGEST, and only one "
        "process at a time writes to them. Empty: `input.group`, with characters that topic names cannot contain "
        "replaced.",
    )
    lag_records: int = Field(
        default=1_000,
        ge=1,
        le=10**9,
        json_schema_extra=unit("records"),
        description="A replica at most this far behind the changelog counts as warm.",
    )
    cache_bytes: int = Field(
        default=256 << 20,
        ge=1 << 20,
        le=1 << 40,
        json_schema_extra=unit("bytes"),
        description="Size of RocksDB's block cache.",
    )
    write_buffer_bytes: int = Field(
        default=32 << 20,
        ge=1 << 20,
        le=1 << 32,
        json_schema_extra=unit("bytes"),
        description="Size of each write buffer (at most two per column family).",
    )
    sync: bool = Field(
        default=False,
        description="Whether each commit is flushed to disk. If not, a power failure (not a kill) makes the service "
        "repeat the last moments of the stream.",
    )
