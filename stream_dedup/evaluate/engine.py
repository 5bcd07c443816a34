"""The engine itself in several configurations, judging the articles of a stream one after another.

Knows configurations and what the engine answers; knows nothing of other algorithms or of reports.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from stream_dedup.arrays import I64
from stream_dedup.article import Article, Decision
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.evaluate.clusters import score_of_clusters
from stream_dedup.evaluate.components import components
from stream_dedup.evaluate.labelled import Edit, LabelledSet, in_order
from stream_dedup.evaluate.quality import KindRecall, ScoresAtThreshold
from stream_dedup.evaluate.results import ENGINE, AlgorithmInfo, AlgorithmResult, Seconds
from stream_dedup.scope import name_of
from stream_dedup.settings import EngineSettings
from stream_dedup.settings.engine import WeightSettings
from stream_dedup.settings.kinds import as_property, flattened

BATCH = 512  # articles, as many as in one commit of the service
# The engine is measured on what it recognises, not on how long it remembers.
_FOR_EVER = {"window": {"days": 36_500}}
_PAPER = WeightSettings(profile="paper2020").model_dump()  # and no factor that is set otherwise
_FEATURE_STAGES = frozenset({"features", "simhash"})
_SOURCE = "this package"
SHIPPED = EngineSettings()
_GROUPS = set(EngineSettings.model_fields)
_Values = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Configuration:
    """Named settings of the engine.

    Attributes:
        named: its name and what a report says about it.
        about: how it differs from the user's settings.
        groups: the settings that it sets itself, by group and name.
        base: the user's settings, which it has otherwise.
    """

    named: AlgorithmInfo
    about: str
    groups: _Values
    base: EngineSettings

    @property
    def settings(self) -> EngineSettings:
        """The complete settings."""
        return _overlaid(_overlaid(self.base, _FOR_EVER), self.groups)

    @property
    def taken(self) -> list[str]:
        """The user's changes to the defaults that it has, as `group.name=value`."""
        own = changes(self.settings)
        return [change for change in changes(self.base) if change in own]


def configurations(base: EngineSettings = SHIPPED) -> dict[str, Configuration]:
    """Return the configurations by name.

    Args:
        base: the user's settings; of a service's whole `Settings`, only the engine's count.
    """
    tables = {"simhash": {"enabled": True}, "landmarks": {"enabled": False}}
    named: dict[str, tuple[str, _Values]] = {
        "default": ("none: as shipped, unless you set something else", {}),
        "landmarks": (
            "candidates from the landmarks only",
            {"simhash": {"enabled": False}, "landmarks": {"enabled": True}},
        ),
        "simhash": ("candidates from the SimHash tables only", tables),
        "paper2020": ("weights of the 2020 paper", {"weights": _PAPER}),
        "paper2020-simhash": (
            "the same, with candidates from the SimHash tables only",
            {"weights": _PAPER, **tables},
        ),
        "jieba": ("jieba instead of the compiled segmenter", {"text": {"segmenter": "jieba"}}),
        **{f"threshold-{share}": _at_threshold(share) for share in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)},
    }
    return {f"{ENGINE}/{name}": _configuration(name, about, groups, base) for name, (about, groups) in named.items()}


def changes(settings: EngineSettings) -> list[str]:
    """Return the engine's settings that differ from the defaults, as `group.name=value`."""
    own, shipped = (dict(flattened(one.model_dump(mode="json", include=_GROUPS))) for one in (settings, SHIPPED))
    return [f"{name}={as_property(value)}" for name, value in own.items() if value != shipped[name]]


def _configuration(name: str, about: str, groups: _Values, base: EngineSettings) -> Configuration:
    settings = _overlaid(base, groups)
    segmenter, weights = settings.text.segmenter, settings.weights.profile
    named = AlgorithmInfo(f"{ENGINE}/{name}", ENGINE, segmenter, weights, _SOURCE)
    return Configuration(named, about, groups, _overlaid(base, {}))


def _at_threshold(share: float) -> tuple[str, _Values]:
    thresholds = {"near_jaccard": share, "min_containment": share}
    return f"copies have a Jaccard or containment of {share} or more", {"verify": thresholds}


def _overlaid(base: EngineSettings, groups: _Values) -> EngineSettings:
    """Return the engine's settings with some others, by group and name, in their place."""
    plain = base.model_dump(include=_GROUPS)
    return EngineSettings.model_validate({name: {**group, **groups.get(name, {})} for name, group in plain.items()})


@dataclass(frozen=True, slots=True)
class Linked:
    """What an engine answered for n articles.

    Attributes:
        links: indices of each copy and of its cluster's canonical article, shape (m, 2).
        matched: indices of each copy and of the article that it matched, shape (m, 2).
        candidates: total number of candidates that it compared articles with.
        seconds: the time it took.
    """

    links: I64
    matched: I64
    candidates: int
    seconds: Seconds


def measure_engine(configuration: Configuration, labelled: LabelledSet) -> AlgorithmResult:
    """Return how well a configuration of the engine clusters a labelled set.

    Precision and recall are those of the pairs in its clusters, as joined by links after the last article.
    """
    settings = configuration.settings
    articles = [one.article for one in labelled.articles]
    linked, true = ask(settings, articles), labelled.clusters()
    found = components(len(articles), linked.links)
    score = score_of_clusters(found, true, labelled.overlapping, settings.verify.near_jaccard)
    return AlgorithmResult(
        configuration.named,
        ScoresAtThreshold(score, float(adjusted_rand_score(true, found)), _by_kind(found, labelled)),
        None,
        _right_links(linked.matched, true, labelled.overlapping),
        linked.candidates / max(1, len(articles)),
        linked.seconds,
    )


def ask(settings: EngineSettings, articles: Sequence[Article]) -> Linked:
    """Return what an in-memory engine answers for articles, given to it in order."""
    places = {article.name: place for place, article in enumerate(articles)}
    decisions: list[Decision] = []
    candidates, stages = 0, Counter[str]()
    with Deduplicator(settings=settings) as engine:
        engine.warm_up()
        begin = time.process_time()
        for start in range(0, len(articles), BATCH):
            judged = engine.process(articles[start : start + BATCH])
            decisions += judged.decisions
            candidates += int(judged.tally.candidates.sum())
            stages.update(judged.seconds)
        spent = time.process_time() - begin
    return Linked(*_links(decisions, places), candidates, _seconds(stages, spent))


def _links(decisions: Sequence[Decision], places: Mapping[str, int]) -> tuple[I64, I64]:
    copies = [
        tuple(
            places[name_of(decision.article.scope, each)]
            for each in (decision.article.id, decision.link.duplicate_of, decision.link.matched)
        )
        for decision in decisions
        if decision.link is not None and not decision.unique
    ]
    table = np.array(copies, np.int64).reshape(-1, 3)
    return table[:, [0, 1]], table[:, [0, 2]]


def _seconds(stages: Mapping[str, float], spent: float) -> Seconds:
    """Split the processor time in proportion to the engine's stage timings, which are in wall-clock time only."""
    features = sum(seconds for stage, seconds in stages.items() if stage in _FEATURE_STAGES)
    share = features / (sum(stages.values()) or 1.0)
    return Seconds(None, share * spent, (1 - share) * spent)


def _right_links(matched: I64, true: I64, overlapping: I64) -> float | None:
    """Return the share of links that join copies; links between overlapping articles do not count."""
    skipped = {frozenset(pair) for pair in overlapping.tolist()}
    counted = [pair for pair in matched.tolist() if frozenset(pair) not in skipped]
    if not counted:
        return None
    return sum(bool(true[first] == true[second]) for first, second in counted) / len(counted)


def _by_kind(found: I64, labelled: LabelledSet) -> tuple[KindRecall, ...]:
    """Return the recall by edit: a copy is found if it is in the cluster of the article it was made from."""
    places = {one.article.name: place for place, one in enumerate(labelled.articles)}
    made, hits = Counter[Edit](), Counter[Edit]()
    for place, one in enumerate(labelled.articles):
        if one.original is not None and one.edit is not None:
            made[one.edit] += 1
            hits[one.edit] += bool(found[place] == found[places[name_of(one.article.scope, one.original)]])
    edits = sorted(made, key=in_order)
    return tuple(KindRecall(*edit, made[edit], hits[edit], hits[edit] / made[edit]) for edit in edits)
