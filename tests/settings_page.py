"""Keeps the table of settings in config/README.md the one that the settings themselves print.

Knows the two marks between which the table stands; run as a module it renews the table.
"""

from pathlib import Path

from stream_dedup.settings.reference import settings_markdown

PAGE = Path(__file__).parent.parent / "config" / "README.md"
BEGIN, END = "<!-- settings: begin -->\n", "<!-- settings: end -->\n"


def renewed(page: str) -> str:
    """Return the page with the table of now."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + settings_markdown() + END + tail


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
