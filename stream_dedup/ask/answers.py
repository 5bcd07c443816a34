"""What is answered: the fields of each answer, as they go out in JSON.

Knows names and meanings; knows nothing of where they come from.
"""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from stream_dedup.article import Announcement, Ground, Relation, Source
from stream_dedup.decode.fields import encodable

# Articles are judged by their own times: in a replay or out of a file this is not when they were judged by the clock.
_STREAM_TIME = "The stream's time at the decision: that of the newest article so far."


# Crawlers cut emoji in halves, of which no JSON can tell.
Encodable = Annotated[str, AfterValidator(encodable)]


class Answer(BaseModel):
    """An answer."""

    model_config = ConfigDict(frozen=True)


class LinkAnswer(Answer):
    """Why an article is a copy, as it was decided."""

    matched: str | None = Field(
        description="Id of the article that matched; null once that has expired or was withdrawn."
    )
    relation: Relation | None = Field(description="What the copy is to the matched article.")
    jaccard: float | None = Field(description="Estimated Jaccard of the two sets of n-grams, 0 to 1.")
    containment: float | None = Field(description="Estimated share of the smaller set in the other, 0 to 1.")
    hamming: int | None = Field(description="Bits in which the fingerprints differ; null of texts not cut into words.")
    candidate_source: Source = Field(description="Which index found the article that matched.")
    idf_epoch: int = Field(description="Number of the IDF epoch of the copy's fingerprint.")
    stream_time: str | None = Field(description=_STREAM_TIME)


class PlaceAnswer(Answer):
    """The message that an article came with."""

    topic: str
    partition: int
    offset: int


class ArticleAnswer(Answer):
    """What became of an article."""

    id: str
    scope: str
    decision: str = Field(description="`unique` or `duplicate`.")
    relation: Relation | None = Field(description="Of its newest text; null where it is like no other.")
    cluster: int = Field(description="Number of its cluster.")
    canonical: str = Field(description="Id of the article that the cluster is called by now.")
    link: LinkAnswer | None = Field(description="Why it is a copy; null of others, and once it has expired.")
    source: str
    published_at: str | None
    received_at: str | None = Field(description="When the message of its first text came.")
    stream_time: str | None = Field(description=f"{_STREAM_TIME} On its newest text.")
    characters: int
    texts: int = Field(description="Different texts that were seen under the id, of the newest 8.")
    message: PlaceAnswer | None = Field(description="Where its newest text is.")


class MemberAnswer(Answer):
    """An article of a cluster."""

    id: str
    canonical: bool
    source: str
    published_at: str | None
    received_at: str | None
    characters: int
    link: LinkAnswer | None = Field(description="Why it is a copy; null of the article that the others are copies of.")


class MomentAnswer(Answer):
    """A stretch of a cluster's timeline."""

    at: str | None = Field(description="When the stretch begins.")
    articles: int
    sources: int = Field(description="Different sources among them.")


class SourceAnswer(Answer):
    """How many articles of a cluster a source has."""

    source: str
    articles: int


class ClusterAnswer(Answer):
    """An article and its copies, by the names that the topic of clusters has for them."""

    number: int
    scope: str
    canonical: str
    copies: int = Field(description="Members beside the canonical article since the cluster began.")
    first_seen: str | None = Field(description="When the first of all members was seen.")
    last_seen: str | None
    distinct_sources: int = Field(description="Sources that are counted by name, those without one as one.")
    sources: list[SourceAnswer] = Field(description="Those with most articles first, at most 256.")
    other_sources_articles: int = Field(description="Articles of further sources.")
    known: int = Field(
        description="Members that have not expired, of the newest 10,000 copies; those below are some of them."
    )
    members: list[MemberAnswer] = Field(description="In the order of their publication, or else of their arrival.")
    stretch_seconds: int = Field(description="Length of a stretch of the timeline.")
    timeline: list[MomentAnswer] = Field(description="Stretches in which articles of the cluster came.")


class SimilarAnswer(Answer):
    """An article that a text is like."""

    id: str
    relation: Relation | None = Field(description="What the text would be to it; null where that is no copy.")
    jaccard: float
    containment: float
    hamming: int | None
    canonical: str
    cluster: int
    source: str
    published_at: str | None
    message: PlaceAnswer | None = Field(description="Where its newest text is.")


class SimilarAnswers(Answer):
    """What a text is like, the likest first."""

    decision: str = Field(description="What would be decided on it now: `unique` or `duplicate`.")
    articles: list[SimilarAnswer]
    unseen_entries: int = Field(description="Newest entries that were not looked through yet.")


class WordAnswer(Answer):
    """A word and its weights."""

    word: str
    weights: tuple[float, float] = Field(description="In the first text and in the second, 0 where it lacks the word.")


class TextAnswer(Answer):
    """A text that is compared."""

    id: str
    title: Encodable
    body: Encodable
    source: str
    url: str
    published_at: str | None
    message: PlaceAnswer | None = Field(description="Where it stands.")


class KeysAnswer(Answer):
    """Which keys of the index lead from the first text to the second."""

    content: bool = Field(description="Both have the same letters and digits.")
    landmarks: int = Field(description="Landmarks that both have.")
    table_keys: int = Field(description="Tables whose keys, probed as the first is, the second stands under.")


class MeasuresAnswer(Answer):
    """How two texts compare, by the settings of now."""

    relation: Relation | None = Field(description="What the first is to the second with the settings of now.")
    ground: Ground = Field(description="The reason: the relation, or why there is none.")
    verdict: str = Field(description="The reason, in words.")
    jaccard: float
    containment: float
    hamming: int
    fingerprints: tuple[str, str] = Field(description="16 hexadecimal digits each.")
    differing_bits: list[int] = Field(description="Numbers of the bits that differ, 0 the lowest.")
    cosine: float = Field(description="Of the two vectors of bit sums.")
    grams: tuple[int, int] = Field(description="Distinct n-grams of each text.")
    idf_epoch: int = Field(description="Of the weights and fingerprints here: the newest.")
    keys: KeysAnswer
    shared_words: list[WordAnswer]
    differing_words: list[WordAnswer]


class ReasonAnswer(MeasuresAnswer):
    """Why two articles are, or are not, copies."""

    first: TextAnswer
    second: TextAnswer
    decided: LinkAnswer | None = Field(description="How the first was linked to the second, if it was.")
    revised: bool = Field(
        description="Whether the second has another text by now than the one that was matched: the new one is told."
    )


class ShadowAnswer(Answer):
    """What other thresholds have come to, with which the stream is judged a second time."""

    judging: bool = Field(description="Whether it judges: it does not on a standby, nor once it has failed.")
    articles: int = Field(description="Articles that it judged since the service started.")
    disagreements: dict[str, int] = Field(description="Those that it judged otherwise, by kind.")


class PublishedLink(Answer):
    """A link or an announcement as it stands in the topic of duplicates."""

    model_config = ConfigDict(extra="allow")

    id: str
    duplicate_of: str | None = Field(None, description="Id of the cluster's canonical article.")
    matched: str | None = Field(None, description="Id of the article that matched.")
    relation: Relation | Announcement = Field(description="What the copy is to the matched article, or what happened.")
    jaccard: float | None = None
    containment: float | None = None
    hamming: int | None = None
    fingerprint: str | None = Field(None, description="Of the copy, 16 hexadecimal digits.")
    idf_epoch: int | None = Field(None, description="Number of the IDF epoch of the fingerprint.")
    candidate_source: Source | None = Field(None, description="Which index found the article that matched.")
    source: str | None = None
    url: str | None = None
    topic: str | None = Field(None, description="Of the input, with partition and offset of the message.")
    partition: int | None = None
    offset: int | None = None
    published_at: str | None = None
    received_at: str | None = None
    decided_at: str | None = None
    reason: str | None = Field(None, description="Why a cluster has another name; of announcements alone.")
    scope: str | None = Field(None, description="Missing where there is none.")


class FileAnswer(Answer):
    """How far a run over files has come in one of them."""

    results: str = Field(description="Directory of the run's results.")
    finished: bool = Field(description="Whether the run has come to its end.")
    file: str
    lines: int = Field(description="Number of the last one that was judged.")


class StatusAnswer(Answer):
    """How far the service has come."""

    version: str
    directory: str
    running: bool = Field(description="Whether the service answers on its own port (http.host, http.port).")
    ready: bool | None = Field(
        description="Whether it reads its input, or follows it closely, as its /readyz says; null where none answers."
    )
    not_ready: str = Field(description="Why it is not ready; else empty.")
    steps: int = Field(
        description="Steps of the state so far: one a commit, more where an epoch ends or withdrawals come in it."
    )
    articles_judged: int
    entries: int = Field(description="Entries of the index, those that have expired left out.")
    unseen_entries: int = Field(description="Newest entries that a search does not find yet.")
    idf_epoch: int
    stream_time: str | None
    window_since: str | None = Field(description="Since when articles are remembered.")
    input: list[PlaceAnswer] = Field(description="The next offset to be read of each partition.")
    files: list[FileAnswer] = Field(description="Files read, of a state that `stream-dedup dedup` has made.")
    decisions: dict[str, int] = Field(description="Articles by relation since the service started; `new` is none.")
    duplicates: int | None = Field(description="Those of them that are duplicates; null where nobody tells.")
    shadow: ShadowAnswer | None = Field(description="Null where none is asked for, or nobody tells.")
    consumer_lag: int | None = Field(description="Messages that wait in the input; null where nobody tells.")
    rate: float | None = Field(description="Articles a second between the last two looks.")
