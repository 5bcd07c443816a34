"""What the engine decides by: text, weights, fingerprints, thresholds, and how long articles are remembered.

Knows names and bounds of these settings; knows nothing of where values come from or who uses them.
"""

from math import inf
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from stream_dedup.article import Relation
from stream_dedup.settings.kinds import Group, SettingPath, split_commas, unit


class TextSettings(Group):
    """From raw text to words."""

    segmenter: Literal["compiled", "rjieba", "jieba"] = Field(
        "compiled",
        description="Which segmenter cuts the words. `compiled` gives those of `rjieba`, several times faster.",
    )
    segment: Literal["all", "unproved"] = Field(
        "all",
        description="Which articles are cut into words. `unproved`: not those that their content or their landmarks "
        "prove to be copies, unless later articles shall find these; their links have no Hamming distance and no "
        "fingerprint. That saves CPU, most with a slow segmenter.",
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


IDF_FLOOR, IDF_CEILING = 0.5, 9.0  # nats; of the profile `default`, the paper's has none


class WeightSettings(Group):
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
        floor, ceiling = (IDF_FLOOR, IDF_CEILING) if self.profile == "default" else (-inf, inf)
        floor = floor if self.idf_floor is None else self.idf_floor
        ceiling = ceiling if self.idf_ceiling is None else self.idf_ceiling
        if floor >= ceiling:
            raise ValueError(f"weights.idf_floor = {floor} is not below idf_ceiling = {ceiling}")
        return self


_MOST_DOUBLINGS = 40  # of the first epoch: beyond any number of articles


class IdfSettings(Group):
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


class SimhashSettings(Group):
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


class LandmarkSettings(Group):
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


class SketchSettings(Group):
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


class VerifySettings(Group):
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
        "before it. Without it no URL is kept, and none withdraws.",
    )

    _split_relations = field_validator("duplicates", mode="before")(split_commas)


class WindowSettings(Group):
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


class ClusterSettings(Group):
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

    _split_sources = field_validator("preferred_sources", mode="before")(split_commas)

    @model_validator(mode="after")
    def _sources_named(self) -> Self:
        if self.canonical == "preferred_source" and not self.preferred_sources:
            raise ValueError("cluster.canonical = preferred_source wants cluster.preferred_sources")
        return self


class EngineSettings(Group):
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
