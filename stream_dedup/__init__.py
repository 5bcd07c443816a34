"""Near-duplicate detection for streams of articles, Chinese ones first of all.

The names below are the embedded API; the service and the command line are built on the same engine.
"""

from stream_dedup.article import Article, Decision, Link, Origin, Relation, Source
from stream_dedup.dedup import Deduplicator
from stream_dedup.settings import EngineSettings, Settings, load_settings
from stream_dedup.version import __version__

__all__ = [
    "Article",
    "Decision",
    "Deduplicator",
    "EngineSettings",
    "Link",
    "Origin",
    "Relation",
    "Settings",
    "Source",
    "__version__",
    "load_settings",
]
