"""Edits that add sentences from another article.

Knows two texts; drops nothing from the first.
"""

from dataclasses import replace
from itertools import accumulate, takewhile
from random import Random

from stream_dedup.evaluate.operators.operator import Operator
from stream_dedup.evaluate.operators.phrases import book
from stream_dedup.evaluate.operators.text import Text, is_chinese, joined, part, sentences


def insert(text: Text, rng: Random, donor: Text, share: float) -> Text | None:
    """Insert sentences from another article at random places in the body."""
    own, foreign = sentences(text.body), sentences(donor.body)
    count = part(share, len(own))
    if not 0 < count <= len(foreign) or is_chinese(text) != is_chinese(donor):
        return None
    for sentence in rng.sample(foreign, count):
        own.insert(rng.randint(0, len(own)), sentence)
    return replace(text, body=joined(own))


def merge(text: Text, rng: Random, donor: Text, share: float) -> Text | None:
    """Make a round-up: add the beginning of another article before or after the body."""
    size = part(share, len(text.body))
    other = _whole_sentences(donor.body, size)
    if len(donor.body) < size or not other or is_chinese(text) != is_chinese(donor):
        return None
    bridge = rng.choice(book(text).bridges)
    body = f"{text.body}\n{bridge}{other}" if rng.random() < 0.5 else f"{other}\n{bridge}{text.body}"  # noqa: PLR2004  # either as likely
    return replace(text, body=body)


def _whole_sentences(body: str, size: int) -> str:
    """Return the whole sentences at the beginning of a body that fit in `size` characters."""
    ends = takewhile(lambda end: end <= size, accumulate(map(len, sentences(body))))
    return body[: max(ends, default=0)].strip()


_WHOLE_ARTICLES = 5.0

OPERATORS = (
    Operator(
        "insert",
        insert,
        "sentences from another article, as a share of the text's own",
        (0.1, 0.3, 0.6),
        most=_WHOLE_ARTICLES,
        posts=False,
        borrows=True,
    ),
    Operator(
        "merge",
        merge,
        "maximum characters from another article, as a share of the text's own",
        (0.3, 0.5, 0.8),
        most=_WHOLE_ARTICLES,
        posts=False,
        borrows=True,
    ),
)
