"""How good similarities are: precision, recall and F1 at every threshold, ARI of the clusters, stability.

Knows labels and blocks of similarities; knows nothing of where similarities come from.
"""

from stream_dedup.evaluate.quality.scores import (
    KindRecall,
    Quality,
    Score,
    ScoresAtThreshold,
    Stability,
    ThresholdSweep,
    judge,
)
from stream_dedup.evaluate.quality.tally import Tally
from stream_dedup.evaluate.quality.truth import Truth

__all__ = [
    "KindRecall",
    "Quality",
    "Score",
    "ScoresAtThreshold",
    "Stability",
    "Tally",
    "ThresholdSweep",
    "Truth",
    "judge",
]
