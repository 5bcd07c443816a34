"""Edits in several steps.

Knows which edits are mild, and the order in which a site makes them.
"""

from random import Random

from stream_dedup.evaluate.operators import cut, frame, page, social, words, writing
from stream_dedup.evaluate.operators.operator import STRENGTHLESS, Edit, Operator
from stream_dedup.evaluate.operators.text import Text

# In the order in which a site makes them: to the text itself, to how it is written, to what is put around it.
_MILD: tuple[tuple[Edit, float], ...] = (
    (cut.drop, 0.1),
    (words.misprint, 0.02),
    (words.places, 1),
    (writing.punct, STRENGTHLESS),
    (writing.traditional, STRENGTHLESS),
    (writing.width, STRENGTHLESS),
    (writing.zero_width, 0.05),
    (social.emoji, 0.3),
    (frame.dateline, STRENGTHLESS),
    (frame.original_title, STRENGTHLESS),
    (frame.retitle, STRENGTHLESS),
    (frame.boiler, 2),
    (frame.editor, STRENGTHLESS),
    (page.markup, STRENGTHLESS),
)


def mixture(text: Text, rng: Random, donor: Text, count: float) -> Text | None:
    """Make several mild edits, one after another."""
    copy: Text | None = text
    for step in sorted(rng.sample(range(len(_MILD)), round(count))):
        edit, strength = _MILD[step]
        copy = copy and edit(copy, rng, donor, strength)
    return copy


OPERATORS = (Operator("mixture", mixture, "mild edits", (3, 5), most=float(len(_MILD)), whole=True, posts=False),)
