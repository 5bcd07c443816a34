"""Keeps the tables of settings in config/README.md and README.md in step with the settings.

Knows the pages, and which settings matter first; run as a module it updates them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from stream_dedup.settings.reference import chosen_markdown, settings_markdown
from tests.pages import marks, with_part

_ROOT = Path(__file__).parent.parent
PAGE = _ROOT / "config" / "README.md"
BEGIN, _ = marks("settings")
# Settings to look at before a first start.
CHOSEN = (
    "kafka",
    "input.topics",
    "input.group",
    "input.format",
    "input.fields.body",
    "input.scope_header",
    "output.unique",
    "output.duplicates",
    "output.dead",
    "output.clusters",
    "window.days",
    "verify.near_jaccard",
    "verify.min_containment",
    "verify.duplicates",
    "cluster.canonical",
    "simhash.tables",
    "simhash.prefix_bits",
    "commit.guarantee",
    "commit.interval_ms",
    "state.directory",
    "state.cache_bytes",
    "http.host",
    "api.enabled",
    "log.format",
)
PAGES: Mapping[Path, Callable[[], str]] = {
    PAGE: settings_markdown,
    _ROOT / "README.md": lambda: chosen_markdown(CHOSEN),
}


def renewed(page: str, table: str) -> str:
    """Return a page with the current table."""
    return with_part(page, "settings", table)


if __name__ == "__main__":
    for path, table in PAGES.items():
        path.write_text(renewed(path.read_text(encoding="utf-8"), table()), encoding="utf-8")
