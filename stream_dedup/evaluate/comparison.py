"""An algorithm of the literature: a segmenter, a feature and a measure under one name.

Knows how the parts fit together; knows none of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stream_dedup.arrays import F32, Bool
from stream_dedup.article import Article
from stream_dedup.evaluate.features.feature import Feature, Kind, Texts
from stream_dedup.evaluate.similarity.measure import Measure


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What a comparison keeps of n texts.

    Attributes:
        data: the measure's prepared form of their bags.
        empty: whether a text has nothing to compare, shape (n,).
    """

    data: Any
    empty: Bool


@dataclass(slots=True)
class Comparison:
    """An `Algorithm` made of parts; see `Algorithm` for the other attributes.

    Attributes:
        extract: turns texts into bags.
        measure: turns bags into similarities.
    """

    name: str
    family: str
    segmenter: str
    feature: str
    source: str
    threshold: float
    extract: Feature
    measure: Measure

    def features(self, articles: Sequence[Article], words: Sequence[Sequence[str]]) -> _Prepared:
        """Return the features of articles; see `Algorithm`."""
        bags = self.extract.extract(Texts(articles, words))
        return _Prepared(self.measure.prepare(bags), bags.sizes() == 0)

    def similarities(self, features: _Prepared, rows: slice) -> F32:
        """Return the similarities of some texts to all; those of a text with nothing to compare are 0."""
        block = self.measure.compare(features.data, rows)
        block[features.empty[rows]] = 0.0
        block[:, features.empty] = 0.0
        return block


def comparison(segmenter: str, feature: Feature, measure: Measure) -> Comparison:
    """Return the algorithm of a segmenter (empty if the feature works on characters), a feature and a measure."""
    return Comparison(
        name=f"{segmenter or 'chars'}/{feature.name}/{measure.name}",
        family="shingling" if feature.kind is Kind.SHINGLES else measure.family,
        segmenter=segmenter,
        feature=feature.name,
        source="; ".join(dict.fromkeys([feature.source, measure.source])),
        threshold=measure.threshold,
        extract=feature,
        measure=measure,
    )
