"""Near-duplicate detection for streams of articles, especially Chinese ones.

The names below are the embedded API; the service and the command line are built on the same engine.
"""

from typing import TYPE_CHECKING, Any

from stream_dedup.article import Article, Decision, Link, Origin, Relation, Source
from stream_dedup.settings import EngineSettings, Settings, load_settings
from stream_dedup.version import __version__

if TYPE_CHECKING:
    from stream_dedup.engine.dedup import Deduplicator

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


def __getattr__(name: str) -> Any:  # noqa: ANN401  # the signature of PEP 562
    """Load the engine and its compiled loops on first use: settings and the command line do without them."""
    if name != "Deduplicator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stream_dedup.engine.dedup import Deduplicator  # noqa: PLC0415  # see above

    return Deduplicator


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
