"""Commands that tests run in their own process, and what they give them to read.

Knows texts, files of them and how output is wrapped; knows nothing of what a command does.
"""

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

BODY = "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开，附近的居民和游客都来捧场。"
Invoke = Callable[..., Result]


def write_articles(directory: Path) -> Path:
    """Write a file of three records: an article, its copy, and a broken one."""
    path = directory / "articles.jsonl"
    rows = [{"id": "a", "body": BODY}, {"id": "b", "body": BODY.replace("，", " ")}, {"id": "c"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_texts(directory: Path) -> tuple[Path, Path]:
    """Write two texts, the second the beginning of the first."""
    first, second = directory / "a.txt", directory / "b.txt"
    first.write_text(BODY, encoding="utf-8")
    second.write_text(BODY[:20], encoding="utf-8")
    return first, second


def one_line(text: str) -> str:
    """Return what was printed as if it had not been wrapped."""
    return " ".join(text.split())
