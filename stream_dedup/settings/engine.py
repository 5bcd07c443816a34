"""The settings that decisions depend on: text, weights, fingerprints, thresholds, how long articles are remembered.

Knows names and bounds of these settings; knows nothing of where values come from or who uses them.
"""

from math import inf
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from stream_dedup.article import Relation
from stream_dedup.settings.kinds import Group, SettingPath, split_commas, unit

SegmenterName = Literal["compiled", "rjieba", "jieba"]


class TextSettings(Group):
    """From raw text to words."""

    segmenter: SegmenterName = Field(
        default="compiled",
        description="Word segmenter. `compiled` gives the words of `rjieba`, several times faster.",
    )
    segment: Literal["all", "unproved"] = Field(
        default="all",
        description="Which articles are segmented into words. `unproved` skips those that their content or landmarks "
        "prove to be copies, unless they are indexed for later articles; links of skipped articles have no Hamming "
        "distance and no fingerprint. This saves CPU with a slow segmenter; with `compiled` it saves little.",
    )
    hmm: bool = Field(default=True, description="Whether jieba's model finds words that are not in the dictionary.")
    simplify: bool = Field(
        default=True, description="Whether traditional characters are treated as their simplified forms."
    )
    strip_html: bool = Field(default=True, description="Whether leftover HTML tags and entities are removed.")
    user_dictionary: SettingPath | None = Field(
        default=None, description="File of your own words, one `word [frequency] [tag]` per line, in jieba's format."
    )
    stop_words: SettingPath | None = Field(
        default=None, description="File of stop words, one per line. Unset: the list in the package."
    )
    marker_words: SettingPath | None = Field(
        default=None, description="File of marker words, one per line. Unset: the list in the package."
    )
    strip_boilerplate: bool = Field(
        default=True,
        description="Whether the comparison ignores links and site boilerplate (editor, copyright, disclaimer, "
        "promotion).",
    )
    boilerplate: SettingPath | None = Field(
        default=None, description="File of boilerplate phrases, one per line. Unset: the list in the package."
    )
    learn_lines: bool = Field(
        default=True,
        description="Whether lines that a site puts around its articles are learnt from the stream and then ignored. "
        "A site is a source, or the host of the URL if the source is unknown.",
    )
    learn_min: int = Field(
        default=20,
        ge=2,
        le=1_000_000,
        json_schema_extra=unit("articles"),
        description="How many of a site's articles must begin or end with exactly the same line before it is learnt.",
    )
    learn_share: float = Field(
        default=0.05,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="Minimum share of the site's articles that these must be.",
    )
    learn_max: int = Field(
        default=1_000_000,
        ge=1_000,
        le=10**8,
        json_schema_extra=unit("lines"),
        description="Maximum number of lines counted. Each epoch forgets lines seen only once; when the limit is "
        "reached, the rarest half is forgotten.",
    )


IDF_FLOOR, IDF_CEILING = 0.5, 9.0  # nats, of the profile `default`; the paper's has none


class WeightSettings(Group):
    """Weights of words: tf x idf x (1 + part of speech + length + marker + title)."""

    profile: Literal["default", "paper2020"] = Field(
        default="default", description="Source of the factors below that are not set."
    )
    noun: float | None = Field(
        default=None, ge=0, le=100, json_schema_extra=unit("factor"), description="Part-of-speech factor for nouns."
    )
    verb: float | None = Field(
        default=None, ge=0, le=100, json_schema_extra=unit("factor"), description="Part-of-speech factor for verbs."
    )
    other: float | None = Field(
        default=None,
        ge=0,
        le=100,
        json_schema_extra=unit("factor"),
        description="Part-of-speech factor for all other words.",
    )
    length: float | None = Field(
        default=None,
        ge=0,
        le=100,
        json_schema_extra=unit("factor"),
        description="Factor for the longest word of a text.",
    )
    marker: float | None = Field(
        default=None, ge=0, le=100, json_schema_extra=unit("factor"), description="Factor for marker words."
    )
    title: float | None = Field(
        default=None,
        ge=0,
        le=100,
        json_schema_extra=unit("factor"),
        description="Factor for words that occur in the title.",
    )
    prior_documents: float | None = Field(
        default=None,
        ge=0,
        le=1e9,
        json_schema_extra=unit("articles"),
        description="Weight of the dictionary's frequencies, as a number of articles; 0: counts only.",
    )
    idf_floor: float | None = Field(
        default=None, ge=-100, le=100, json_schema_extra=unit("nats"), description="Minimum idf."
    )
    idf_ceiling: float | None = Field(
        default=None, ge=-100, le=100, json_schema_extra=unit("nats"), description="Maximum idf."
    )

    @model_validator(mode="after")
    def _floor_below_ceiling(self) -> Self:
        floor, ceiling = (IDF_FLOOR, IDF_CEILING) if self.profile == "default" else (-inf, inf)
        floor = floor if self.idf_floor is None else self.idf_floor
        ceiling = ceiling if self.idf_ceiling is None else self.idf_ceiling
        if floor >= ceiling:
            raise ValueError(f"weights.idf_floor = {floor} is not below idf_ceiling = {ceiling}")
        return self


_MOST_DOUBLINGS = 40  # of the first epoch's length: more than any number of articles


class IdfSettings(Group):
    """Document counts and the epochs in which they are used."""

    epoch_articles: int = Field(
        default=50_000,
        ge=10,
        le=10**9,
        json_schema_extra=unit("articles"),
        description="Number of articles judged with one epoch's counts.",
    )
    first_epoch_articles: int = Field(
        default=1_000,
        ge=10,
        le=10**9,
        json_schema_extra=unit("articles"),
        description="Length of the first epoch, which uses only the dictionary. Each later epoch is twice as long, up "
        "to `idf.epoch_articles`.",
    )
    max_words: int = Field(
        default=2_000_000,
        ge=1_000,
        le=10**8,
        json_schema_extra=unit("words"),
        description="Maximum number of words counted; when it is reached, the rarest half is forgotten.",
    )

    def articles_of(self, epoch: int) -> int:
        """Return how many articles are judged within an epoch, given its number."""
        return min(self.epoch_articles, self.first_epoch_articles << min(epoch, _MOST_DOUBLINGS))


class SimhashSettings(Group):
    """The permuted SimHash tables."""

    enabled: bool = Field(default=True, description="Whether the tables are maintained and probed.")
    tables: int = Field(
        default=4, ge=1, le=32, json_schema_extra=unit("tables"), description="Number of permuted tables."
    )
    prefix_bits: int = Field(
        default=28, ge=8, le=28, json_schema_extra=unit("bits"), description="Bits in a table's key."
    )
    probes: int = Field(
        default=8,
        ge=1,
        le=4096,
        json_schema_extra=unit("keys"),
        description="Keys looked up per table, most likely first (1: only the exact key).",
    )
    max_distance: int = Field(
        default=3, ge=0, le=32, json_schema_extra=unit("bits"), description="Maximum Hamming distance of a candidate."
    )
    bucket_cap: int = Field(
        default=64, ge=1, le=4096, json_schema_extra=unit("entries"), description="Entries visible per key, the newest."
    )


class LandmarkSettings(Group):
    """The landmark index."""

    enabled: bool = Field(default=True, description="Whether landmarks are indexed and looked up.")
    keys: int = Field(
        default=16,
        ge=1,
        le=64,
        json_schema_extra=unit("keys"),
        description="Minimum number of a text's landmarks, which are its smallest n-gram hashes.",
    )
    spacing: int = Field(
        default=24,
        ge=1,
        le=100_000,
        json_schema_extra=unit("n-grams"),
        description="N-grams per landmark in longer texts, so that a short text is found inside a long one: if two "
        "texts share s n-grams, they share about s / spacing landmarks.",
    )
    most_keys: int = Field(
        default=128,
        ge=1,
        le=256,
        json_schema_extra=unit("keys"),
        description="Maximum number of landmarks of a long text; never more than `sketch.size`.",
    )
    cap: int = Field(
        default=64,
        ge=1,
        le=4096,
        json_schema_extra=unit("entries"),
        description="Articles visible per landmark, the newest.",
    )


class SketchSettings(Group):
    """The sketch used to verify candidates."""

    gram: int = Field(
        default=5, ge=2, le=16, json_schema_extra=unit("characters"), description="Characters in an n-gram."
    )
    size: int = Field(
        default=256, ge=16, le=1024, json_schema_extra=unit("hashes"), description="Hashes kept of each text's n-grams."
    )
    numbers: int = Field(
        default=16, ge=4, le=64, json_schema_extra=unit("hashes"), description="Hashes kept of each text's numbers."
    )
    places: int = Field(
        default=8,
        ge=4,
        le=64,
        json_schema_extra=unit("hashes"),
        description="Hashes kept of the places that each text names.",
    )


class VerifySettings(Group):
    """When a candidate counts as a match."""

    near_jaccard: float = Field(
        default=0.33,
        ge=0.05,
        le=1,
        json_schema_extra=unit("share"),
        description="Minimum Jaccard similarity of a near copy.",
    )
    min_containment: float = Field(
        default=0.6,
        ge=0.05,
        le=1,
        json_schema_extra=unit("share"),
        description="Minimum containment of a cut copy or a round-up.",
    )
    cut_containment: float = Field(
        default=0.9,
        ge=0.5,
        le=1,
        json_schema_extra=unit("share"),
        description="Containment at or above which a copy that differs much in size is called `contained` or "
        "`contains` instead of `near`.",
    )
    cut_jaccard: float = Field(
        default=0.75,
        ge=0.05,
        le=1,
        json_schema_extra=unit("share"),
        description="Jaccard similarity below which a copy counts as differing much in size.",
    )
    min_grams: int = Field(
        default=10,
        ge=1,
        le=1000,
        json_schema_extra=unit("n-grams"),
        description="Texts with fewer n-grams are only compared as a whole.",
    )
    numbers_overlap: float = Field(
        default=0.5,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="A copy keeps at least this share of the numbers, and more than this share of the place names "
        "(with 1, all of both); otherwise the text is a different bulletin. With 0, neither is compared.",
    )
    numbers_min: int = Field(
        default=3,
        ge=1,
        le=1000,
        json_schema_extra=unit("numbers"),
        description="Numbers are compared only if both texts have at least this many. The same minimum applies to "
        "numbers and places taken together.",
    )
    places_min: int = Field(
        default=1,
        ge=1,
        le=1000,
        json_schema_extra=unit("places"),
        description="Places are compared only if both texts name at least this many.",
    )
    numbers_jaccard: float = Field(
        default=0.95,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="Jaccard similarity at or above which different numbers count as misprints.",
    )
    numbers_grams: int = Field(
        default=12,
        ge=1,
        le=100_000,
        json_schema_extra=unit("n-grams"),
        description="Changed n-grams that one differing number or place can explain. If more differ, the text was "
        "edited, including its numbers, and is still a copy.",
    )
    variant_jaccard: float = Field(
        default=0.6,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="A copy with a lower Jaccard similarity, and a containment below `cut_containment`, has drifted "
        "and is indexed as well.",
    )
    chain_jaccard: float = Field(
        default=0.4,
        ge=0,
        le=1,
        json_schema_extra=unit("share"),
        description="Minimum Jaccard similarity of a copy of a drifted copy, unless it is a cut one: along a chain of "
        "edits, less and less of the original is left.",
    )
    duplicates: list[Relation] = Field(
        default=[relation for relation in Relation if relation is not Relation.REVISION],
        description="Relations that make an article a duplicate; with any other it stays unique. A `revision` that is "
        "a duplicate belongs to the cluster of the article that it revises, and so do copies of its text.",
    )

    same_url: bool = Field(
        default=True,
        description="Whether a different text under a known URL is a revision, whatever its id, and never a copy of "
        "the earlier text. If false, URLs are not stored and cannot withdraw articles.",
    )

    _split_relations = field_validator("duplicates", mode="before")(split_commas)


class WindowSettings(Group):
    """How long articles are remembered, in stream time (the time of the newest article so far)."""

    days: float = Field(
        default=14.0,
        ge=0.001,
        le=36_500,
        json_schema_extra=unit("days"),
        description="Maximum age, by publication time, of the articles that a new one is compared with.",
    )
    late: Literal["judge", "dead"] = Field(
        default="judge",
        description="What happens to an article that is older than the window on arrival: it is judged and remembered "
        "from its arrival on, or it becomes a dead letter.",
    )


class ClusterSettings(Group):
    """Which article of a cluster is the canonical one."""

    canonical: Literal["first_seen", "first_published", "preferred_source", "longest"] = Field(
        default="first_seen", description="Which article of a cluster the links name; of equals, the first seen."
    )
    preferred_sources: list[str] = Field(
        default=[], description="Sources in order of preference, for `preferred_source`; all others rank after them."
    )
    variants: int = Field(
        default=8,
        ge=1,
        le=16,
        json_schema_extra=unit("entries"),
        description="Number of a cluster's entries in the index from which further drifted copies are no longer "
        "indexed.",
    )

    _split_sources = field_validator("preferred_sources", mode="before")(split_commas)

    @model_validator(mode="after")
    def _sources_named(self) -> Self:
        if self.canonical == "preferred_source" and not self.preferred_sources:
            raise ValueError("cluster.canonical = preferred_source requires cluster.preferred_sources")
        return self


class EngineSettings(Group):
    """The engine's settings; all others belong to the service."""

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
                    f"landmarks.keys = {self.landmarks.keys} is more than {name} = {most}, "
                    "the maximum number of landmarks"
                )
        return self
