"""Keeps deploy/metrics.md in step with the catalogue of metrics.

Knows the page; run as a module it updates it.
"""

from pathlib import Path

from stream_dedup.observe.reference import metrics_markdown
from tests.pages import with_part

PAGE = Path(__file__).parent.parent / "deploy" / "metrics.md"


def renewed(page: str) -> str:
    """Return the page with the current tables."""
    return with_part(page, "metrics", metrics_markdown())


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
