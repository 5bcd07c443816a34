"""Edits that users of microblogs make: comments and names before a post, tags and emoji in it.

Knows how Weibo writes them; the words of the post stay as they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from stream_dedup.evaluate.operators.operator import Operator
from stream_dedup.evaluate.operators.phrases import book, phrases
from stream_dedup.evaluate.operators.text import Text, part, sentences


def mentions(text: Text, rng: Random, _donor: Text, count: float) -> Text:
    """Mention users (@user) before, between and after the sentences."""
    return _sprinkled(text, rng.sample(book(text).users, round(count)), lambda user: f"@{user} ", rng)


def chain(text: Text, rng: Random, _donor: Text, depth: float) -> Text:
    """Add comments and their authors before the text, the latest first (comment//@user:comment//@user:text)."""
    own = book(text)
    users = rng.sample(own.users, round(depth))
    links = (f"{rng.choice(own.comments)}//@{user}:" for user in users)
    return replace(text, body="".join(links) + text.body)


def hashtags(text: Text, rng: Random, _donor: Text, count: float) -> Text:
    """Add hashtags (#tag#) before and after the text."""
    tags = rng.sample(book(text).hashtags, round(count))
    head = rng.randint(0, len(tags))
    return replace(text, body=" ".join([*tags[:head], text.body, *tags[head:]]))


def emoji(text: Text, rng: Random, _donor: Text, share: float) -> Text | None:
    """Add emoji after sentences."""
    pieces = sentences(text.body)
    places = rng.sample(range(len(pieces)), part(share, len(pieces)))
    for place in places:
        pieces[place] += rng.choice(phrases().emoji) * rng.randint(1, 3)
    return replace(text, body="".join(pieces)) if places else None


def _sprinkled(text: Text, things: Sequence[str], form: Callable[[str], str], rng: Random) -> Text:
    pieces = sentences(text.body)
    for thing in things:
        pieces.insert(rng.randint(0, len(pieces)), form(thing))
    return replace(text, body="".join(pieces).strip())


_MOST_NAMES = 10.0

OPERATORS = (
    Operator("mentions", mentions, "names", (1, 3, 6), most=_MOST_NAMES, whole=True),
    Operator("chain", chain, "reposts before this one", (1, 3, 6), most=_MOST_NAMES, whole=True),
    Operator("hashtags", hashtags, "tags", (1, 3, 6), most=_MOST_NAMES, whole=True),
    Operator("emoji", emoji, "share of the sentences followed by emoji", (0.3, 1.0)),
)
