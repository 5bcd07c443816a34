"""Edits that leave something out.

Knows sentences and lengths; adds nothing but a mark where a text was cut.
"""

from dataclasses import replace
from random import Random

from stream_dedup.evaluate.operators.operator import Operator
from stream_dedup.evaluate.operators.phrases import book
from stream_dedup.evaluate.operators.text import Text, part, sentences


def drop(text: Text, rng: Random, _donor: Text, share: float) -> Text | None:
    """Drop sentences at random."""
    all_of_them = sentences(text.body)
    count = part(share, len(all_of_them))
    if not 0 < count < len(all_of_them):
        return None
    dropped = set(rng.sample(range(len(all_of_them)), count))
    kept = (sentence for place, sentence in enumerate(all_of_them) if place not in dropped)
    return _body(text, "".join(kept).strip())


def truncate(text: Text, _rng: Random, _donor: Text, share: float) -> Text | None:
    """Keep only the beginning of the body, cut at any character."""
    return _body(text, text.body[: part(share, len(text.body))])


def teaser(text: Text, rng: Random, donor: Text, share: float) -> Text | None:
    """Keep only the beginning of the body, followed by an invitation to read on."""
    beginning = truncate(text, rng, donor, share)
    return beginning and replace(beginning, body=beginning.body + rng.choice(book(text).teasers))


def excerpt(text: Text, rng: Random, _donor: Text, share: float) -> Text | None:
    """Keep only consecutive sentences, from anywhere in the body."""
    all_of_them = sentences(text.body)
    count = part(share, len(all_of_them))
    if not 0 < count < len(all_of_them):
        return None
    start = rng.randint(0, len(all_of_them) - count)
    return _body(text, "".join(all_of_them[start : start + count]).strip())


def _body(text: Text, body: str) -> Text | None:
    """Return a text with another body; None if that is blank or the same."""
    return replace(text, body=body) if body.strip() and body != text.body else None


OPERATORS = (
    Operator("drop", drop, "share of the sentences dropped", (0.1, 0.2, 0.3, 0.5), most=0.9),
    Operator("truncate", truncate, "share of the characters kept", (0.7, 0.5, 0.3), posts=False),
    Operator("teaser", teaser, "share of the characters kept", (0.7, 0.5, 0.3), posts=False),
    Operator("excerpt", excerpt, "share of the sentences kept", (0.7, 0.5, 0.3), posts=False),
)
