"""Every setting with its type, default, unit and bounds.

Knows what is allowed; knows nothing of where values come from or who uses them.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator, model_validator

from stream_dedup.article import Relation

REDACTED = "[redacted]"
OWN_HEADERS = "stream_dedup."  # what the names of headers that the service writes begin with
_TOPIC = r"^[a-zA-Z0-9._-]{1,249}$"
_SECRET = re.compile(
    r"password|secret|token|private|assertion|\.pem$|oauthbearer\.config|jaas|credential|user\.info|^proxy$",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Tell whether the value of a setting or property must not be shown."""
    return _SECRET.search(name) is not None


class FileRelative:
    """Marks a path which, where a settings file names it, is relative to that file."""


SettingPath = Annotated[Path, FileRelative()]
FormatName = Literal["json", "avro", "protobuf", "json-schema"]


def unit(name: str) -> dict[str, JsonValue]:
    """Return what tells the unit of a setting, for the reference page."""
    return {"unit": name}


def _split_commas(value: object) -> object:
    """Take `a, b` for a list: the environment and flags hold text only."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def flattened(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Undo what TOML makes of unquoted dots: `security.protocol = ...` is one property, not a table."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _split_pairs(value: object) -> object:
    """Take `a = b, c = d` for a table: the environment holds text only."""
    if isinstance(value, Mapping):
        return dict(flattened(value))
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    return {name.strip(): item.strip() for name, _, item in pairs}


def takes_in(wanted: str, topic: str) -> bool:
    """Tell whether one of `input.topics`, a name or a regular expression, takes in a topic."""
    return re.match(wanted, topic) is not None if wanted.startswith("^") else wanted == topic


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


def _as_text(value: object) -> object:
    """Take properties of a client as text, as the environment and flags hold them."""
    if not isinstance(value, Mapping):
        return value
    return {name: str(item).lower() if isinstance(item, bool) else str(item) for name, item in value.items()}


def _check_url(setting: str, url: str, credentials: str) -> None:
    # The url itself may hold what must not be shown.
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{setting} must begin with http:// or https://")
    if "@" in urlsplit(url).netloc:
        raise ValueError(f"{setting} holds credentials: these belong into {credentials}")


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class FieldSettings(_Group):
    """Where in the incoming JSON each field stands, as dotted paths."""

    id: str = Field("id", min_length=1, description="Path of the article's id; a string or an integer.")
    title: str = Field("title", min_length=1, description="Path of the title.")
    body: str = Field("body", min_length=1, description="Path of the text that is compared.")
    url: str = Field("url", min_length=1, description="Path of the URL; an article without id is named by it.")
    source: str = Field("source", min_length=1, description="Path of the publisher's name.")
    published_at: str = Field(
        "published_at",
        min_length=1,
        description="Path of the time of publication: ISO 8601, or seconds or milliseconds since 1970.",
    )
    deleted: str = Field(
        "deleted", min_length=1, description="Path of a flag: true withdraws the article of that id or URL."
    )
    scope: str = Field(
        "",
        description="Path of the scope (a tenant, a channel, a language) within which alone articles are compared; a "
        "string or an integer. Empty: none is looked for.",
    )


class InputSettings(_Group):
    """What is read, and which articles are out of bounds."""

    topics: list[str] = Field(
        ["articles.in"],
        min_length=1,
        description="Topics to read; one that begins with ^ is a regular expression.",
    )
    group: str = Field("stream-dedup", min_length=1, description="Consumer group.")
    format: FormatName = Field(
        "json",
        description="Format of the values; all but `json` in Confluent's wire format, by schemas of `registry.url`.",
    )
    formats: dict[str, FormatName] = Field(
        {},
        description="Formats of single topics, for those of another one: names, or those of the regular expressions in "
        "`input.topics`.",
    )
    validate_schema: bool = Field(
        True, description="Whether values of the format `json-schema` are checked against their schema."
    )
    cloudevents: Literal["ignore", "accept"] = Field(
        "ignore",
        description="accept: attributes of CloudEvents, in headers or around the data, can be named by `input.fields` "
        "as `ce_id`, `ce_time`, ...; of events in structured mode the data is taken.",
    )
    fields: FieldSettings = FieldSettings()
    scope_header: str = Field(
        "",
        description="Header of a message that holds its scope, in UTF-8; it goes before `input.fields.scope`. Empty: "
        "none is looked for.",
    )
    scope_missing: Literal["unscoped", "dead"] = Field(
        "unscoped",
        description="What becomes of a message without a scope: compared with its like alone, or a dead letter.",
    )
    utc_offset: str = Field(
        "+08:00", pattern=r"^[+-](0\d|1[0-4]):[0-5]\d$", description="Time zone of times that do not name theirs."
    )
    max_message_bytes: int = Field(
        8 << 20, ge=1024, le=1 << 30, json_schema_extra=unit("bytes"), description="Largest message that is decoded."
    )
    max_body_chars: int = Field(
        1_000_000,
        ge=100,
        le=100_000_000,
        json_schema_extra=unit("characters"),
        description="Longest body that is judged.",
    )
    max_title_chars: int = Field(
        2_000, ge=1, le=1_000_000, json_schema_extra=unit("characters"), description="Longest title."
    )
    max_id_bytes: int = Field(512, ge=16, le=4096, json_schema_extra=unit("bytes"), description="Longest id, in UTF-8.")
    max_future_seconds: int = Field(
        86_400,
        ge=0,
        le=10**10,
        json_schema_extra=unit("seconds"),
        description="How far ahead of the clock a time of publication may be.",
    )

    _split_topics = field_validator("topics", mode="before")(_split_commas)
    _split_formats = field_validator("formats", mode="before")(_split_pairs)

    @model_validator(mode="after")
    def _formats_of_topics(self) -> Self:
        for name in self.formats:
            if name not in self.topics and not any(takes_in(topic, name) for topic in self.topics):
                raise ValueError(f"input.formats: {name!r} is none of input.topics ({', '.join(self.topics)})")
        return self

    def format_of(self, topic: str) -> FormatName:
        """Return the format of a topic: its own, or that of the first regular expression that takes it in."""
        if topic in self.formats:
            return self.formats[topic]
        return next((form for name, form in self.formats.items() if takes_in(name, topic)), self.format)

    @property
    def wire_formats(self) -> set[FormatName]:
        """The formats of its topics that want a schema registry."""
        return {self.format, *self.formats.values()} - {"json"}

    @field_validator("scope_header")
    @classmethod
    def _foreign_header(cls, name: str) -> str:
        if name.startswith(OWN_HEADERS):
            raise ValueError(f"headers that begin with {OWN_HEADERS} are the service's own, which it does not read")
        return name

    @model_validator(mode="after")
    def _scopes_looked_for(self) -> Self:
        if self.scope_missing == "dead" and not (self.scope_header or self.fields.scope):
            raise ValueError("input.scope_missing = dead wants input.scope_header or input.fields.scope")
        return self

    @field_validator("topics")
    @classmethod
    def _no_topic_twice(cls, topics: list[str]) -> list[str]:
        if len(set(topics)) < len(topics):
            raise ValueError("a topic stands there twice")
        return topics

    @field_validator("topics")
    @classmethod
    def _valid_patterns(cls, topics: list[str]) -> list[str]:
        for topic in topics:
            if topic.startswith("^"):
                _check_pattern(topic)
            elif not re.fullmatch(_TOPIC.strip("^$"), topic):
                raise ValueError(f"{topic!r} is no topic name (letters, digits, . _ -) and no ^regular expression")
        return topics


class OutputSettings(_Group):
    """Where decisions go."""

    unique: str = Field("articles.unique", pattern=_TOPIC, description="Topic of unique articles.")
    duplicates: str = Field("articles.duplicates", pattern=_TOPIC, description="Topic of links.")
    dead: str = Field("articles.dead", pattern=_TOPIC, description="Topic of messages that cannot be judged.")
    clusters: str = Field(
        "articles.clusters", pattern=_TOPIC, description="Compacted topic of clusters, by the canonical article's id."
    )
    format: FormatName = Field(
        "json",
        description="Format of links and clusters. Unique articles and dead letters are what came in, to the byte.",
    )
    register_schemas: bool = Field(
        True,
        description="Whether the schemas of links and clusters are registered (TOPIC-value); else they must be there.",
    )
    create: bool = Field(
        True,
        description="Whether missing topics are created: outputs with the broker's defaults, clusters and the state's "
        "compacted.",
    )


class CommitSettings(_Group):
    """When decisions are committed, and with which guarantee. What comes first of articles, bytes and time commits."""

    guarantee: Literal["exactly_once", "at_least_once"] = Field(
        "exactly_once",
        description="exactly_once: outputs, changelog and input offsets in one Kafka transaction. at_least_once: for "
        "brokers without transactions; after a kill the outputs of a commit may come twice, under the same keys.",
    )
    articles: int = Field(
        2048, ge=1, le=4096, json_schema_extra=unit("messages"), description="Messages after which a commit is due."
    )
    bytes: int = Field(
        32 << 20,
        ge=1 << 20,
        le=1 << 30,
        json_schema_extra=unit("bytes"),
        description="Size of the messages after which a commit is due.",
    )
    interval_ms: int = Field(
        25,
        ge=1,
        le=10_000,
        json_schema_extra=unit("milliseconds"),
        description="Time from the first message after which a commit is due.",
    )
    deadline_seconds: float = Field(
        60.0,
        ge=5,
        le=240,
        json_schema_extra=unit("seconds"),
        description="How long a commit may take, and how often a passing fault of the broker is tried again, before it "
        "is given up.",
    )


class StateSettings(_Group):
    """Where and how the index is kept: on Kafka as a changelog, and in a directory as a RocksDB database."""

    directory: SettingPath = Field(
        Path("state"),
        description="Directory of the databases, one for each set of settings whose fingerprints can be compared.",
    )
    name: str = Field(
        "",
        pattern=r"^[a-zA-Z0-9._-]{0,200}$",
        description="Name of the index on Kafka: its topics are NAME.owner and NAME.changelog.DIGEST, and only one "
        "process at a time writes under it. Empty: that of `input.group`, with what no topic can be called replaced.",
    )
    lag_records: int = Field(
        1_000,
        ge=1,
        le=10**9,
        json_schema_extra=unit("records"),
        description="A replica which is this far behind the changelog, or less, counts as warm.",
    )
    cache_bytes: int = Field(
        256 << 20, ge=1 << 20, le=1 << 40, json_schema_extra=unit("bytes"), description="Block cache of RocksDB."
    )
    write_buffer_bytes: int = Field(
        32 << 20,
        ge=1 << 20,
        le=1 << 32,
        json_schema_extra=unit("bytes"),
        description="Memory of each write buffer (two a family at most).",
    )
    sync: bool = Field(
        False,
        description="Whether each commit waits for the disk. Without it a power cut (not a kill) repeats the last "
        "moments of the stream.",
    )


class WindowSettings(_Group):
    """How long articles are remembered, in the time of the stream: that of the newest article so far."""

    days: float = Field(
        14.0,
        ge=0.001,
        le=36_500,
        json_schema_extra=unit("days"),
        description="Age at which an article is no longer compared with, by its time of publication.",
    )
    late: Literal["judge", "dead"] = Field(
        "judge",
        description="What becomes of an article that is older than that when it comes: judged and remembered from its "
        "arrival on, or a dead letter.",
    )


class ClusterSettings(_Group):
    """Which article of a cluster is the canonical one."""

    canonical: Literal["first_seen", "first_published", "preferred_source", "longest"] = Field(
        "first_seen", description="The article that links name, among those of a cluster; the first seen of equals."
    )
    preferred_sources: list[str] = Field(
        [], description="Sources in order of preference, for `preferred_source`; all others come after them."
    )
    variants: int = Field(
        8,
        ge=1,
        le=16,
        json_schema_extra=unit("entries"),
        description="Entries of a cluster in the index, from which on drifted copies are not indexed any more.",
    )

    _split_sources = field_validator("preferred_sources", mode="before")(_split_commas)

    @model_validator(mode="after")
    def _sources_named(self) -> Self:
        if self.canonical == "preferred_source" and not self.preferred_sources:
            raise ValueError("cluster.canonical = preferred_source wants cluster.preferred_sources")
        return self


class TextSettings(_Group):
    """From raw text to words."""

    segmenter: Literal["compiled", "rjieba", "jieba"] = Field(
        "compiled",
        description="Which segmenter cuts the words. `compiled` gives those of `rjieba`, several times faster.",
    )
    segment: Literal["all", "unproved"] = Field(
        "all",
        description="Which articles are cut into words. `unproved`: not those that their content or their landmarks "
        "prove to be copies; their links have no Hamming distance and no fingerprint. That saves CPU, most with a "
        "slow segmenter, but the words of the others are no longer cut ahead in the other thread.",
    )
    hmm: bool = Field(True, description="Whether words that the dictionary lacks are found by jieba's model.")
    simplify: bool = Field(True, description="Whether traditional characters count as their simplified ones.")
    strip_html: bool = Field(True, description="Whether left-over tags and entities are removed.")
    user_dictionary: SettingPath | None = Field(
        None, description="Words of your own, `word [frequency] [tag]` a line, as jieba reads them."
    )
    stop_words: SettingPath | None = Field(None, description="Stop words, one a line; none: the list that is shipped.")
    marker_words: SettingPath | None = Field(
        None, description="Marker words, one a line; none: the list that is shipped."
    )
    strip_boilerplate: bool = Field(
        True,
        description="Whether links and the lines of sites (editor, copyright, disclaimer, promotion) are not compared.",
    )
    boilerplate: SettingPath | None = Field(
        None, description="Phrases of such lines, one a line; none: the list that is shipped."
    )
    learn_lines: bool = Field(
        True,
        description="Whether lines that a site puts around its articles are learnt from the stream and not compared. A "
        "site is a source, or the host of a URL where the source is unknown.",
    )
    learn_min: int = Field(
        20,
        ge=2,
        le=1_000_000,
        json_schema_extra=unit("articles"),
        description="Articles of a site that begin or end with the same line, word for word, before it is learnt.",
    )
    learn_share: float = Field(
        0.05,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="Least share of the site's articles that these are.",
    )
    learn_max: int = Field(
        1_000_000,
        ge=1_000,
        le=10**8,
        json_schema_extra=unit("lines"),
        description="Most lines counted. What came once is forgotten with each epoch, the rarest half when full.",
    )


class WeightSettings(_Group):
    """Weights of words: tf x idf x (1 + part of speech + length + marker + title)."""

    profile: Literal["default", "paper2020"] = Field(
        "default", description="Where the factors below that are not set come from."
    )
    noun: float | None = Field(
        None, ge=0, le=100, json_schema_extra=unit("factor"), description="Part-of-speech factor of a noun."
    )
    verb: float | None = Field(
        None, ge=0, le=100, json_schema_extra=unit("factor"), description="Part-of-speech factor of a verb."
    )
    other: float | None = Field(
        None, ge=0, le=100, json_schema_extra=unit("factor"), description="Part-of-speech factor of any other word."
    )
    length: float | None = Field(
        None, ge=0, le=100, json_schema_extra=unit("factor"), description="Factor of the longest word of a text."
    )
    marker: float | None = Field(
        None, ge=0, le=100, json_schema_extra=unit("factor"), description="Factor of a marker word."
    )
    title: float | None = Field(
        None, ge=0, le=100, json_schema_extra=unit("factor"), description="Factor of a word that occurs in the title."
    )
    prior_documents: float | None = Field(
        None,
        ge=0,
        le=1e9,
        json_schema_extra=unit("articles"),
        description="Articles for which the dictionary's frequencies count; 0: bare counts.",
    )
    idf_floor: float | None = Field(None, ge=-100, le=100, json_schema_extra=unit("nats"), description="Lowest idf.")
    idf_ceiling: float | None = Field(None, ge=-100, le=100, json_schema_extra=unit("nats"), description="Highest idf.")

    @model_validator(mode="after")
    def _floor_below_ceiling(self) -> Self:
        if self.idf_floor is not None and self.idf_ceiling is not None and self.idf_floor >= self.idf_ceiling:
            raise ValueError(f"weights.idf_floor = {self.idf_floor} is not below idf_ceiling = {self.idf_ceiling}")
        return self


_MOST_DOUBLINGS = 40  # of the first epoch: beyond any number of articles


class IdfSettings(_Group):
    """Document counts and their epochs."""

    epoch_articles: int = Field(
        50_000,
        ge=10,
        le=10**9,
        json_schema_extra=unit("articles"),
        description="Articles judged with one epoch of the counts.",
    )
    first_epoch_articles: int = Field(
        1_000,
        ge=10,
        le=10**9,
        json_schema_extra=unit("articles"),
        description="Of the first epoch, which knows the dictionary alone; each after it is twice as long, up to "
        "epoch_articles.",
    )
    max_words: int = Field(
        2_000_000,
        ge=1_000,
        le=10**8,
        json_schema_extra=unit("words"),
        description="Most words counted; the rarest half is forgotten when full.",
    )

    def articles_of(self, epoch: int) -> int:
        """Return how many articles are judged with an epoch, by its number."""
        return min(self.epoch_articles, self.first_epoch_articles << min(epoch, _MOST_DOUBLINGS))


class SimhashSettings(_Group):
    """The permuted SimHash tables."""

    enabled: bool = Field(True, description="Whether the tables are kept and probed.")
    tables: int = Field(4, ge=1, le=32, json_schema_extra=unit("tables"), description="Permuted tables.")
    prefix_bits: int = Field(28, ge=8, le=28, json_schema_extra=unit("bits"), description="Bits of a table's key.")
    probes: int = Field(
        8,
        ge=1,
        le=4096,
        json_schema_extra=unit("keys"),
        description="Keys looked up a table, the likeliest first (1: the exact key alone).",
    )
    max_distance: int = Field(
        3, ge=0, le=32, json_schema_extra=unit("bits"), description="Largest Hamming distance of a candidate, bits."
    )
    bucket_cap: int = Field(
        64, ge=1, le=4096, json_schema_extra=unit("entries"), description="Entries kept a key, the newest."
    )


class LandmarkSettings(_Group):
    """The landmark index."""

    enabled: bool = Field(True, description="Whether landmarks are kept and looked up.")
    keys: int = Field(
        16,
        ge=1,
        le=64,
        json_schema_extra=unit("keys"),
        description="Smallest n-gram hashes of a text that are its landmarks, at least.",
    )
    spacing: int = Field(
        24,
        ge=1,
        le=100_000,
        json_schema_extra=unit("n-grams"),
        description="Longer texts have a landmark for each of so many n-grams, so that a short text is found in a long "
        "one: of s n-grams that two texts share about s / spacing are landmarks of both.",
    )
    most_keys: int = Field(
        128,
        ge=1,
        le=256,
        json_schema_extra=unit("keys"),
        description="Landmarks of a long text, at most; never more than `sketch.size`.",
    )
    cap: int = Field(
        64, ge=1, le=4096, json_schema_extra=unit("entries"), description="Articles kept a landmark, the newest."
    )


class SketchSettings(_Group):
    """The sketch that candidates are verified with."""

    gram: int = Field(5, ge=2, le=16, json_schema_extra=unit("characters"), description="Characters of an n-gram.")
    size: int = Field(
        256, ge=16, le=1024, json_schema_extra=unit("hashes"), description="Hashes kept of a text's n-grams."
    )
    numbers: int = Field(
        16, ge=4, le=64, json_schema_extra=unit("hashes"), description="Hashes kept of a text's numbers."
    )
    places: int = Field(
        8, ge=4, le=64, json_schema_extra=unit("hashes"), description="Hashes kept of the places that a text names."
    )


class VerifySettings(_Group):
    """When a candidate is a match."""

    near_jaccard: float = Field(
        0.33, ge=0.05, le=1, json_schema_extra=unit("share"), description="Least Jaccard of near copies."
    )
    min_containment: float = Field(
        0.6,
        ge=0.05,
        le=1,
        json_schema_extra=unit("share"),
        description="Least containment of a cut copy or a round-up.",
    )
    cut_containment: float = Field(
        0.9,
        ge=0.5,
        le=1,
        json_schema_extra=unit("share"),
        description="Containment from which a copy of quite another size is called contained or contains, not near.",
    )
    cut_jaccard: float = Field(
        0.75,
        ge=0.05,
        le=1,
        json_schema_extra=unit("share"),
        description="Jaccard below which it is of quite another size.",
    )
    min_grams: int = Field(
        10,
        ge=1,
        le=1000,
        json_schema_extra=unit("n-grams"),
        description="Texts with fewer n-grams are compared as wholes only.",
    )
    numbers_overlap: float = Field(
        0.5,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="Least share of the numbers, and of the names of places, that a copy keeps; below, it is another "
        "bulletin.",
    )
    numbers_min: int = Field(
        3,
        ge=1,
        le=1000,
        json_schema_extra=unit("numbers"),
        description="Fewer numbers than these in a text say nothing, nor do fewer numbers and places together.",
    )
    places_min: int = Field(
        2,
        ge=1,
        le=1000,
        json_schema_extra=unit("places"),
        description="Fewer places than these in a text say nothing: reposts swap the name of one.",
    )
    numbers_jaccard: float = Field(
        0.95,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="From this Jaccard on, differing numbers are taken for misprints.",
    )
    numbers_grams: int = Field(
        12,
        ge=1,
        le=100_000,
        json_schema_extra=unit("n-grams"),
        description="N-grams of another text that a differing number or place can explain; where more differ, the text "
        "was edited, and its numbers with it.",
    )
    variant_jaccard: float = Field(
        0.6,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="A copy below this, of whose text less than `cut_containment` is in the original, has drifted and "
        "is indexed beside it.",
    )
    chain_jaccard: float = Field(
        0.4,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="Least Jaccard of a copy of a drifted copy, unless it is a cut one: along a chain of edits what is "
        "shared with the original gets less.",
    )
    duplicates: list[Relation] = Field(
        [relation for relation in Relation if relation is not Relation.REVISION],
        description="Relations that make an article a duplicate; with others it stays unique.",
    )

    same_url: bool = Field(
        True,
        description="Whether another text under a known URL is a revision, whatever its id, and no copy of the text "
        "before it.",
    )

    _split_relations = field_validator("duplicates", mode="before")(_split_commas)


class HttpSettings(_Group):
    """Metrics and health."""

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(
        9108, ge=0, le=65535, description="Port of /metrics, /startupz, /healthz and /readyz; 0: any free one."
    )
    stuck_seconds: float = Field(
        60.0,
        ge=1,
        le=3600,
        json_schema_extra=unit("seconds"),
        description="Silence of the poll loop after which /healthz fails and the stacks of all threads are logged.",
    )


_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_SHORTEST_TOKEN = 16


class ApiSettings(_Group):
    """The HTTP API and its page, which read the state and change nothing."""

    enabled: bool = Field(False, description="Whether the service starts it, in a process of its own.")
    host: str = Field(
        "127.0.0.1", min_length=1, description="Address to listen on; any but the machine's own wants a token."
    )
    port: int = Field(9109, ge=0, le=65535, description="Port; 0: any free one.")
    token: str = Field(
        "",
        repr=False,
        description="What `Authorization: Bearer` must name, at least 16 characters; empty: nobody is asked.",
    )
    refresh_ms: int = Field(
        100,
        ge=20,
        le=60_000,
        json_schema_extra=unit("milliseconds"),
        description="Between two looks at what the service has written: answers are so old at most. Where nobody has "
        "asked for ten seconds it looks once a second.",
    )
    max_body_bytes: int = Field(
        1 << 20, ge=1 << 10, le=64 << 20, json_schema_extra=unit("bytes"), description="Of a request; beyond: 413."
    )
    nice: int = Field(
        0,
        ge=0,
        le=19,
        description="How far it steps back behind the stream where the cores are busy (nice); answers then wait.",
    )

    @model_validator(mode="after")
    def _token_guards(self) -> Self:
        if self.token and len(self.token) < _SHORTEST_TOKEN:
            raise ValueError(f"api.token has {len(self.token)} characters, fewer than {_SHORTEST_TOKEN}")
        if not self.token and self.host not in _LOOPBACK:
            raise ValueError(f"api.host = {self.host!r} can be reached from elsewhere: that wants an api.token")
        return self


class ShadowSettings(_Group):
    """Other thresholds, judged beside those in force and without effect."""

    enabled: bool = Field(
        False,
        description="Whether the stream is judged a second time, on a state of its own that begins as a copy of the "
        "live one.",
    )
    verify: dict[str, JsonValue] = Field(
        {}, description="The thresholds of `verify` that differ, by their names; the others are those in force."
    )
    topic: str = Field("articles.shadow", pattern=_TOPIC, description="Topic of disagreements.")
    sample: float = Field(
        1.0,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="Of the disagreements, those that are sent: by the hash of the article's id. All are counted.",
    )


class LogSettings(_Group):
    """Logs."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is written.")
    format: Literal["console", "json"] = Field("console", description="For people or for machines.")


class TracingSettings(_Group):
    """OpenTelemetry spans of commits and of sampled messages; they take the extra `otel`."""

    enabled: bool = Field(False, description="Whether spans are made and sent.")
    endpoint: str = Field(
        "",
        description="URL of the collector, OTLP over HTTP, without a path: `http://collector:4318`. Empty: what "
        "OTEL_EXPORTER_OTLP_ENDPOINT says.",
    )
    sample: float = Field(
        0.01,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="Of the commits without a sampled message, those that get a trace; those with one always do.",
    )

    # Of the whole group, so that the value is not shown: it may hold what must not be.
    @model_validator(mode="after")
    def _endpoint_is_plain(self) -> Self:
        if self.endpoint:
            _check_url("tracing.endpoint", self.endpoint, "OTEL_EXPORTER_OTLP_HEADERS")
        return self


class EngineSettings(_Group):
    """What the engine needs; the rest of the settings is the service's."""

    text: TextSettings = TextSettings()
    weights: WeightSettings = WeightSettings()
    idf: IdfSettings = IdfSettings()
    simhash: SimhashSettings = SimhashSettings()
    landmarks: LandmarkSettings = LandmarkSettings()
    sketch: SketchSettings = SketchSettings()
    verify: VerifySettings = VerifySettings()
    window: WindowSettings = WindowSettings()
    cluster: ClusterSettings = ClusterSettings()

    @model_validator(mode="after")
    def _landmarks_fit(self) -> Self:
        for name, most in (
            ("sketch.size", self.sketch.size),
            ("landmarks.most_keys", self.landmarks.most_keys),
        ):
            if self.landmarks.keys > most:
                raise ValueError(
                    f"landmarks.keys = {self.landmarks.keys} is more than {name} = {most}, the most that there can be"
                )
        return self


class Settings(EngineSettings):
    """All settings of the service."""

    input: InputSettings = InputSettings()
    output: OutputSettings = OutputSettings()
    commit: CommitSettings = CommitSettings()
    state: StateSettings = StateSettings()
    http: HttpSettings = HttpSettings()
    api: ApiSettings = ApiSettings()
    shadow: ShadowSettings = ShadowSettings()
    tracing: TracingSettings = TracingSettings()
    log: LogSettings = LogSettings()
    kafka: dict[str, str] = Field(
        {},
        description="Properties of librdkafka, passed through; those that begin with consumer. or producer. go to "
        "that client alone.",
    )
    registry: dict[str, str] = Field(
        {},
        description="Properties of confluent-kafka's client of the schema registry, passed through; `url` is needed "
        "where a format is not `json`.",
    )

    @field_validator("registry", mode="before")
    @classmethod
    def _registry_as_text(cls, value: object) -> object:
        given = _as_text(value)
        if isinstance(given, Mapping):
            for url in str(given.get("url", "http://")).split(","):
                _check_url("registry.url", url.strip(), "registry.basic.auth.user.info")
        return given

    @field_validator("kafka", mode="before")
    @classmethod
    def _kafka_as_text(cls, value: object) -> object:
        given = _as_text(value)
        if not isinstance(given, dict):
            return given
        for name in given:
            if not name.removeprefix("consumer.").removeprefix("producer.").strip():
                raise ValueError(f"{name!r} is no name of a property")
        if not given.get("bootstrap.servers", "-").strip():
            raise ValueError("bootstrap.servers is empty: name at least one broker, as host:port")
        return {"bootstrap.servers": "127.0.0.1:9092", **given}

    @model_validator(mode="after")
    def _registry_named(self) -> Self:
        wanting = {"input": self.input.wire_formats, "output": {self.output.format} - {"json"}}
        for group, formats in wanting.items():
            if formats and not self.registry.get("url"):
                raise ValueError(f"{group}: the format {', '.join(sorted(formats))} wants registry.url")
        return self

    @model_validator(mode="after")
    def _no_loop(self) -> Self:
        outputs = {
            f"output.{name}": getattr(self.output, name) for name in ("unique", "duplicates", "dead", "clusters")
        }
        outputs |= {"shadow.topic": self.shadow.topic} if self.shadow.enabled else {}
        for topic in self.input.topics:
            for name, output in outputs.items():
                if takes_in(topic, output):
                    raise ValueError(f"input.topics: {topic!r} takes in {name} = {output!r}: a loop")
        if len(set(outputs.values())) < len(outputs):
            told = ", ".join(f"{name} = {topic}" for name, topic in outputs.items())
            raise ValueError(f"the topics that are written to must differ, they are {told}")
        return self

    @model_validator(mode="after")
    def _shadow_differs(self) -> Self:
        if self.shadow_verify() == self.verify and self.shadow.enabled:
            raise ValueError("shadow.enabled = true, but no threshold in shadow.verify differs from that in force")
        return self

    def shadow_verify(self) -> VerifySettings:
        """Return the thresholds of the shadow.

        Raises:
            ValueError: one is unknown or out of bounds.
        """
        try:
            return VerifySettings.model_validate({**self.verify.model_dump(), **self.shadow.verify})
        except ValidationError as error:
            faults = [
                f"shadow.verify.{fault['loc'][0]} = {fault['input']!r}: {fault['msg']}" for fault in error.errors()
            ]
            raise ValueError("; ".join(faults)) from None

    def secrets(self) -> list[str]:
        """Return the values that must not be shown."""
        properties = [*self.kafka.items(), *self.registry.items()]
        return [self.api.token, *(value for name, value in properties if is_secret(name))]

    def redacted(self) -> dict[str, Any]:
        """Return the settings as plain data, secrets replaced."""
        plain = self.model_dump(mode="json")
        plain["api"]["token"] = REDACTED if self.api.token else ""
        for name, properties in (("kafka", self.kafka), ("registry", self.registry)):
            plain[name] = {one: REDACTED if is_secret(one) else value for one, value in properties.items()}
        return plain
