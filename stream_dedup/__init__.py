"""Near-duplicate detection for streams of articles, especially Chinese ones.

The names below are the embedded API; the service and the command line are built on the same engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stream_dedup.version import __version__

if TYPE_CHECKING:
    from stream_dedup.article import Article, Decision, Link, Origin, Relation, Source
    from stream_dedup.engine.dedup import Deduplicator
    from stream_dedup.settings import EngineSettings, Settings, load_settings

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

_MODULES = frozenset({"article", "settings"})  # that the names below come from, and that hold what else callers need
_HOMES = {
    **dict.fromkeys(("Article", "Decision", "Link", "Origin", "Relation", "Source"), "stream_dedup.article"),
    **dict.fromkeys(("EngineSettings", "Settings", "load_settings"), "stream_dedup.settings"),
    "Deduplicator": "stream_dedup.engine.dedup",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  # the signature of PEP 562
    """Load what is used when it is first used.

    Settings and the command line do without the engine and its compiled loops, and Ctrl-C cannot be handled before this
    module has been loaded.
    """
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
