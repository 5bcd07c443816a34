"""Edits that leave a page's markup in a text.

Knows tags and entities; the words that a browser would show stay as they are.
"""

import html
from dataclasses import replace
from random import Random

from stream_dedup.evaluate.operators.operator import Operator
from stream_dedup.evaluate.operators.phrases import phrases
from stream_dedup.evaluate.operators.text import Text, part

_ENTITIES = {"“": "&ldquo;", "”": "&rdquo;", "—": "&mdash;", "·": "&middot;", "…": "&hellip;", " ": "&nbsp;"}


def markup(text: Text, rng: Random, _donor: Text, _strength: float) -> Text:
    """Leave tags around the paragraphs, entities in them, and other remnants of a page."""
    wrapper = rng.choice(phrases().wrappers)
    lines = [wrapper.format(text=_escaped(line)) for line in text.body.split("\n")]
    lines.insert(rng.randint(0, len(lines)), rng.choice(phrases().debris))
    return replace(text, body="\n".join(lines))


def references(text: Text, rng: Random, _donor: Text, share: float) -> Text | None:
    """Write characters as numeric entities (&#20013;), as badly encoded pages do."""
    places = set(rng.sample(range(len(text.body)), part(share, len(text.body))))
    if not places:
        return None
    characters = (
        f"&#{ord(character)};" if place in places and not character.isspace() else _escaped(character)
        for place, character in enumerate(text.body)
    )
    return replace(text, body="".join(characters))


def _escaped(line: str) -> str:
    return "".join(_ENTITIES.get(character, character) for character in html.escape(line))


OPERATORS = (
    Operator("markup", markup),
    Operator("references", references, "share of the characters", (0.05, 1.0)),
)
