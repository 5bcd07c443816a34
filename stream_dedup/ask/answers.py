"""Answers to queries: their fields, as they appear in JSON.

Knows names and meanings; knows nothing of where the values come from.
"""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from stream_dedup.article import Announcement, Relation, Source, VerdictReason
from stream_dedup.decode.fields import encodable

# Articles are judged by their own times: in a replay or a run over files this differs from clock time.
_STREAM_TIME = "The stream's time at the decision: that of the newest article so far."


# Crawlers cut emoji in half; half a surrogate pair cannot be encoded in JSON.
Encodable = Annotated[str, AfterValidator(encodable)]


class Answer(BaseModel):
    """An answer."""

    model_config = ConfigDict(frozen=True)


class LinkAnswer(Answer):
    """Why an article is a copy, as decided at the time."""

    matched: str | None = Field(
        description="Id of the article that matched; null once it has expired or been withdrawn."
    )
    relation: Relation | None = Field(description="What the copy is to the matched article.")
    jaccard: float | None = Field(description="Estimated Jaccard of the two sets of n-grams, 0 to 1.")
    containment: float | None = Field(description="Estimated share of the smaller set in the other, 0 to 1.")
    hamming: int | None = Field(
        description="Number of bits in which the fingerprints differ; null if a text was not segmented into words."
    )
    candidate_source: Source = Field(description="Which index found the article that matched.")
    idf_epoch: int = Field(description="Number of the IDF epoch of the copy's fingerprint.")
    stream_time: str | None = Field(description=_STREAM_TIME)


class MessageLocation(Answer):
    """The location of a message."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        """Return the location in words."""
        return f"{self.topic}, partition {self.partition}, offset {self.offset:,}"


class ArticleAnswer(Answer):
    """What was decided on an article."""

    id: str
    scope: str
    decision: str = Field(description="`unique` or `duplicate`.")
    relation: Relation | None = Field(description="Relation of its newest text; null if that resembles no other.")
    cluster: int = Field(description="Number of its cluster.")
    canonical: str = Field(description="Id of the article that its cluster now goes by.")
    link: LinkAnswer | None = Field(description="Why it is a copy; null if it is not, and once the link has expired.")
    source: str
    published_at: str | None
    received_at: str | None = Field(
        description="When the message with its first text arrived; null if it came from a file."
    )
    stream_time: str | None = Field(
        description=f"{_STREAM_TIME} For its newest text; of a canonical article, when a copy last joined it."
    )
    characters: int
    texts: int = Field(description="Number of different texts seen under the id, at most the newest 8.")
    message: MessageLocation | None = Field(description="Location of the message with its newest text.")


class MemberAnswer(Answer):
    """An article of a cluster."""

    id: str
    canonical: bool
    source: str
    published_at: str | None
    received_at: str | None
    characters: int
    link: LinkAnswer | None = Field(description="Why it is a copy; null for the article that the others are copies of.")


class TimelineInterval(Answer):
    """An interval of a cluster's timeline."""

    at: str | None = Field(description="Beginning of the interval.")
    articles: int
    sources: int = Field(description="Number of different sources among them.")


class SourceAnswer(Answer):
    """The number of a cluster's articles from one source."""

    source: str
    articles: int


class ClusterAnswer(Answer):
    """An article and its copies, with the field names of the topic of clusters."""

    number: int
    scope: str
    canonical: str
    copies: int = Field(description="Number of members other than the canonical article since the cluster began.")
    first_seen: str | None = Field(description="When its first member was seen.")
    last_seen: str | None
    distinct_sources: int = Field(description="Number of sources counted by name; articles without one count as one.")
    sources: list[SourceAnswer] = Field(description="Those with most articles first, at most 256.")
    other_sources_articles: int = Field(description="Number of articles from further sources.")
    known: int = Field(
        description="Number of members that have not expired, among the newest 10,000 copies; `members` lists some of "
        "them."
    )
    members: list[MemberAnswer] = Field(description="In order of publication, or of arrival if that is unknown.")
    stretch_seconds: int = Field(description="Length of an interval of the timeline.")
    timeline: list[TimelineInterval] = Field(description="Intervals that contain articles of the cluster.")


class SimilarAnswer(Answer):
    """An article that a text resembles."""

    id: str
    relation: Relation | None = Field(description="What the text would be to it; null if it would not be a copy.")
    ground: VerdictReason = Field(description="The reason: the relation, or why there is none.")
    jaccard: float
    containment: float
    hamming: int | None
    canonical: str
    cluster: int
    source: str
    published_at: str | None
    message: MessageLocation | None = Field(description="Location of the message with its newest text.")


class SimilarAnswers(Answer):
    """The articles that a text resembles, most similar first."""

    decision: str = Field(description="What would be decided on it now: `unique` or `duplicate`.")
    articles: list[SimilarAnswer]
    unseen_entries: int = Field(description="Number of the newest entries that were not searched yet.")


class WordAnswer(Answer):
    """A word and its weights."""

    word: str
    weights: tuple[float, float] = Field(
        description="In the first text and in the second; 0 if the text lacks the word."
    )


class TextAnswer(Answer):
    """One of two compared texts."""

    id: str
    title: Encodable
    body: Encodable
    source: str
    url: str
    published_at: str | None
    message: MessageLocation | None = Field(description="Location of its message.")


class KeysAnswer(Answer):
    """Which keys of the index lead from the first text to the second."""

    content: bool = Field(description="Whether both have the same words and numbers.")
    landmarks: int = Field(description="Number of landmarks that both have.")
    table_keys: int = Field(description="Number of tables in which a search for the first text finds the second.")


class MeasuresAnswer(Answer):
    """How two texts compare with the current settings."""

    relation: Relation | None = Field(description="What the first is to the second with the current settings.")
    ground: VerdictReason = Field(description="The reason: the relation, or why there is none.")
    verdict: str = Field(description="The reason, in words.")
    jaccard: float
    containment: float
    hamming: int
    fingerprints: tuple[str, str] = Field(description="16 hexadecimal digits each.")
    differing_bits: list[int] = Field(description="Numbers of the bits that differ, 0 the lowest.")
    cosine: float = Field(description="Cosine of the two vectors of bit sums.")
    grams: tuple[int, int] = Field(description="Number of distinct n-grams of each text.")
    idf_epoch: int = Field(description="Number of the IDF epoch of these weights and fingerprints: the newest.")
    keys: KeysAnswer
    shared_words: list[WordAnswer]
    differing_words: list[WordAnswer]


class ReasonAnswer(MeasuresAnswer):
    """Why two articles are, or are not, copies."""

    first: TextAnswer
    second: TextAnswer
    decided: LinkAnswer | None = Field(description="How the first was linked to the second, if it was.")
    revised: bool = Field(
        description="Whether the second's text has changed since it was matched: the new text is returned."
    )


class ShadowAnswer(Answer):
    """Figures of a shadow, which judges the stream a second time with other thresholds."""

    judging: bool = Field(description="Whether it is judging: not during a start, on a standby, or once it has failed.")
    articles: int = Field(description="Number of articles that it has judged since the service started.")
    disagreements: dict[str, int] = Field(description="Number of those that it judged differently, by kind.")


class PublishedLink(Answer):
    """A link or an announcement, with the fields it has in the topic of duplicates."""

    model_config = ConfigDict(extra="allow")

    id: str
    duplicate_of: str | None = Field(default=None, description="Id of the cluster's canonical article.")
    matched: str | None = Field(default=None, description="Id of the article that matched.")
    relation: Relation | Announcement = Field(description="What the copy is to the matched article, or what happened.")
    jaccard: float | None = None
    containment: float | None = None
    hamming: int | None = None
    fingerprint: str | None = Field(default=None, description="The copy's fingerprint, 16 hexadecimal digits.")
    idf_epoch: int | None = Field(default=None, description="Number of the IDF epoch of the fingerprint.")
    candidate_source: Source | None = Field(default=None, description="Which index found the article that matched.")
    source: str | None = None
    url: str | None = None
    topic: str | None = Field(
        default=None, description="Input topic of the message; partition and offset are its location."
    )
    partition: int | None = None
    offset: int | None = None
    published_at: str | None = None
    received_at: str | None = None
    decided_at: str | None = None
    reason: str | None = Field(default=None, description="Why a cluster goes by another id; only in announcements.")
    scope: str | None = Field(default=None, description="Missing if the article has none.")


class FileAnswer(Answer):
    """Progress of a run over files, in one of them."""

    results: str = Field(description="Directory of the run's results.")
    finished: bool = Field(description="Whether the run has finished.")
    file: str
    lines: int = Field(description="Number of the last line that was judged.")


class StatusAnswer(Answer):
    """The progress and state of the service."""

    version: str
    directory: str
    of_files: bool = Field(description="Whether the state was made by `stream-dedup dedup`; no service runs on it.")
    running: bool = Field(description="Whether the service answers on its own port (http.host, http.port).")
    ready: bool | None = Field(
        description="Whether it reads its input, or follows it closely, according to /readyz; null if it does not "
        "answer."
    )
    not_ready: str = Field(description="Why it is not ready; else empty.")
    steps: int = Field(
        description="Number of steps of the state so far: one per commit, more if an epoch ends or articles are "
        "withdrawn in it."
    )
    articles_judged: int
    entries: int = Field(description="Number of index entries that have not expired.")
    unseen_entries: int = Field(description="Number of the newest entries that a search does not see yet.")
    idf_epoch: int
    stream_time: str | None
    window_since: str | None = Field(description="Beginning of the window: older articles are forgotten.")
    input: list[MessageLocation] = Field(description="The next offset to read of each partition.")
    files: list[FileAnswer] = Field(description="Files read; only for a state made by `stream-dedup dedup`.")
    decisions: dict[str, int] = Field(
        description="Number of articles by relation since the service started; `new` stands for no relation."
    )
    duplicates: int | None = Field(description="Number of those that are duplicates; null if unknown.")
    shadow: ShadowAnswer | None = Field(description="Null if there is no shadow, or if unknown.")
    consumer_lag: int | None = Field(description="Number of messages waiting in the input; null if unknown.")
    rate: float | None = Field(description="Articles judged per second, from the last two refreshes.")
