"""The hand-written texts, the bulletin templates and the phrases that reposting sites add.

Knows where they are stored and what their fields mean; nothing of edits, messages or time.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

_TEXTS = Path(__file__).parent / "texts"


class Form(StrEnum):
    """What a text looks like, which decides which sites carry it and which edits make sense for it."""

    NEWS = "news"  # Chinese, several paragraphs
    POST = "post"  # Chinese, one paragraph of a microblog, no title
    ENGLISH = "english"


@dataclass(frozen=True, slots=True)
class BaseText:
    """One text that somebody wrote first.

    Attributes:
        id: unique name.
        form: what it looks like.
        title: headline; empty for posts.
        body: paragraphs, separated by newlines.
        event: name of the event that this text shares with another reporter's; empty if it shares none.
        omit: fields that its message lacks.
    """

    id: str
    form: Form
    title: str
    body: str
    event: str = ""
    omit: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Template:
    """A bulletin with placeholders.

    Attributes:
        id: what the bulletin is about.
        form: what it looks like.
        copies: how many bulletins are made from it.
        title: `str.format` pattern.
        body: `str.format` pattern.
        fields: how each placeholder is filled, by its name: `pick` (names, none used twice, so at least `copies`
            of them), `choose` (names), `range` (lowest, highest; times `scale`), `decimal` (lowest, highest,
            digits), `draw` (balls, highest number), `sum` (names of other placeholders).
    """

    id: str
    form: Form
    copies: int
    title: str
    body: str
    fields: dict[str, dict[str, list[Any]]]


@dataclass(frozen=True, slots=True)
class Site:
    """An invented publisher.

    Attributes:
        name: as the message names it.
        domain: host of its URLs; ends in the reserved domain .example.
        escaped: whether its JSON writes every character beyond ASCII as an escape.
    """

    name: str
    domain: str
    escaped: bool


def base_texts() -> list[BaseText]:
    """Return all hand-written texts, in the order of their files."""
    files = (
        ("news", Form.NEWS),
        ("event_pairs", Form.NEWS),
        ("mixed", Form.NEWS),
        ("posts", Form.POST),
        ("english", Form.ENGLISH),
    )
    return [_base_text(row, form) for name, form in files for row in _rows(name)]


def templates() -> list[Template]:
    """Return the bulletin templates, in the order of their file."""
    return [Template(**{**row, "form": Form(row["form"])}) for row in _rows("bulletins")]


def sites(form: Form) -> list[Site]:
    """Return the sites that publish texts of a form."""
    rows = phrases()["sites"]
    return [Site(row["name"], row["domain"], row["escaped"]) for row in rows if form in row["forms"]]


@cache
def phrases() -> dict[str, Any]:
    """Return the phrase book; callers must not change it."""
    book: dict[str, Any] = json.loads((_TEXTS / "phrases.json").read_text(encoding="utf-8"))
    return book


def _base_text(row: dict[str, Any], form: Form) -> BaseText:
    return BaseText(
        id=row["id"],
        form=form,
        title=row["title"],
        body=row["body"],
        event=row.get("event", ""),
        omit=tuple(row.get("omit", ())),
    )


def _rows(name: str) -> list[dict[str, Any]]:
    lines = (_TEXTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
