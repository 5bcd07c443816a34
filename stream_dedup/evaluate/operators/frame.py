"""Edits that put something around a text: lines of a site, a dateline, another headline.

Knows what sites add; the sentences of the text stay as they are.
"""

from dataclasses import replace
from random import Random

from stream_dedup.evaluate.operators.operator import Operator
from stream_dedup.evaluate.operators.phrases import book, filled
from stream_dedup.evaluate.operators.text import Text, sentences

_LEAD_CHARS = 40  # of a headline made from the first sentence
_CLAUSE_MARKS = "，,；;：:"
_LOOSE = " \n\t，。；：、,.;:!！?？"


def verbatim(text: Text, _rng: Random, _donor: Text, _strength: float) -> Text:
    """Copy the headline and the body unchanged."""
    return text


def boiler(text: Text, rng: Random, _donor: Text, lines: float) -> Text:
    """Add lines with sources and navigation before the body, and disclaimers and promotion after it."""
    own = book(text)
    before = round(lines) // 3
    head = [filled(line, rng, text) for line in rng.sample(own.before, before)]
    tail = [filled(line, rng, text) for line in rng.sample(own.after, round(lines) - before)]
    return replace(text, body="\n".join([*head, text.body, *tail]))


def editor(text: Text, rng: Random, _donor: Text, _strength: float) -> Text:
    """Add an editor's name after the body."""
    line = filled(rng.choice(book(text).editors), rng, text)
    return replace(text, body=text.body + rng.choice(("\n", "", " ")) + line)


def dateline(text: Text, rng: Random, _donor: Text, _strength: float) -> Text:
    """Add place, date and reporter before the first sentence."""
    return replace(text, body=filled(rng.choice(book(text).datelines), rng, text) + text.body)


def retitle(text: Text, rng: Random, _donor: Text, _strength: float) -> Text | None:
    """Replace the headline; leave the body unchanged."""
    title = filled(rng.choice(book(text).headlines), rng, text, lead=lead(text.body))
    return replace(text, title=title) if title != text.title else None


def original_title(text: Text, rng: Random, donor: Text, strength: float) -> Text | None:
    """Replace the headline, and add a line with the old one (原标题) before or after the body."""
    line = filled(rng.choice(book(text).original_titles), rng, text)
    body = f"{line}\n{text.body}" if rng.random() < 0.5 else f"{text.body}\n{line}"  # noqa: PLR2004  # either as likely
    other = retitle(text, rng, donor, strength)
    return replace(other, body=body) if other and text.title else None


def lead(body: str) -> str:
    """Return the first clauses of a body, as many as fit in a headline."""
    sentence = sentences(body)[0].strip()
    if len(sentence) > _LEAD_CHARS:
        clauses = max(sentence.rfind(mark, 0, _LEAD_CHARS) for mark in _CLAUSE_MARKS)
        sentence = sentence[: clauses if clauses > 0 else _LEAD_CHARS]
    return sentence.strip(_LOOSE)


OPERATORS = (
    Operator("verbatim", verbatim),
    Operator("boiler", boiler, "lines around the body", (2, 4, 8), most=12, whole=True, posts=False),
    Operator("editor", editor, posts=False),
    Operator("dateline", dateline, posts=False),
    Operator("retitle", retitle, posts=False),
    Operator("original-title", original_title, posts=False),
)
