"""The parts that an engine judges with, made once from its settings.

Knows which parts there are; knows nothing of the order in which they are used.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stream_dedup.arrays import U64, Bool
from stream_dedup.article import Article
from stream_dedup.engine.clusters import Policy, policy_of
from stream_dedup.engine.compare import Limits, duplicates_of, limits_of
from stream_dedup.engine.copy_predictor import CopyPredictor
from stream_dedup.engine.prepared import Prepared
from stream_dedup.engine.window import Window
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.settings import EngineSettings
from stream_dedup.text.idf import Epoch


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine judges with; none of it changes.

    Attributes:
        settings: all settings.
        fingerprinter: turns articles into features and fingerprints.
        window: how long articles are remembered.
        policy: which article of a cluster is canonical.
        limits: thresholds.
        duplicates: which of the relations make an article a duplicate, shape (5,).
    """

    settings: EngineSettings
    fingerprinter: Fingerprinter
    window: Window
    policy: Policy
    limits: Limits
    duplicates: Bool

    def prepared(self, articles: Sequence[Article], learnt: U64, copy_predictor: CopyPredictor) -> Prepared:
        """Return what can be computed from articles before anything is looked up.

        If copies need not be segmented, neither are articles that will probably turn out to be copies.
        """
        features = self.features(articles, learnt)
        if self.settings.text.segment == "unproved":
            features = self.fingerprinter.segmented(features, ~copy_predictor.copies(features.sketches.landmarks))
        return Prepared(articles, features, learnt)

    def fingerprinted(self, prepared: Prepared, epoch: Epoch) -> Prepared:
        """Return the same with the fingerprints of the articles that are segmented.

        Args:
            prepared: the prepared articles.
            epoch: the epoch in force.
        """
        return replace(prepared, features=self.fingerprinter.fingerprinted(prepared.features, epoch))

    def features(self, articles: Sequence[Article], learnt: U64) -> Features:
        """Return those features of articles that are computed before anything is looked up."""
        every = self.settings.text.segment == "all"
        return (self.fingerprinter.features if every else self.fingerprinter.unsegmented)(articles, learnt)


def parts_of(settings: EngineSettings, fingerprinter: Fingerprinter | None) -> Parts:
    """Return the parts of an engine.

    Args:
        settings: settings of the engine.
        fingerprinter: that of an engine with comparable settings, to share its dictionaries; None for one of its own.
    """
    return Parts(
        settings,
        fingerprinter or Fingerprinter(settings),
        Window(settings.window),
        policy_of(settings.cluster),
        limits_of(settings),
        duplicates_of(settings),
    )
