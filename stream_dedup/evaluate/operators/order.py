"""Edits that reorder the sentences.

Knows sentences; neither adds nor drops any.
"""

from dataclasses import replace
from itertools import pairwise
from random import Random

from stream_dedup.evaluate.operators.operator import Operator
from stream_dedup.evaluate.operators.text import Text, joined, sentences

_FEWEST_BLOCKS = 1.0  # one block has no other order
_MOST_BLOCKS = 100.0


def shuffle(text: Text, rng: Random, _donor: Text, _strength: float) -> Text | None:
    """Put all sentences in a random order."""
    return _reordered(text, [[sentence] for sentence in sentences(text.body)], rng)


def blocks(text: Text, rng: Random, _donor: Text, count: float) -> Text | None:
    """Cut the body into blocks of sentences, and put these in a random order."""
    pieces = sentences(text.body)
    if len(pieces) < count:
        return None
    cuts = [0, *sorted(rng.sample(range(1, len(pieces)), round(count) - 1)), len(pieces)]
    return _reordered(text, [pieces[start:stop] for start, stop in pairwise(cuts)], rng)


def _reordered(text: Text, parts: list[list[str]], rng: Random) -> Text | None:
    order = rng.sample(range(len(parts)), len(parts))
    if order == sorted(order):
        order = [*order[1:], *order[:1]]
    body = joined([sentence for place in order for sentence in parts[place]])
    return replace(text, body=body) if len(parts) > 1 and body != text.body else None


OPERATORS = (
    Operator("shuffle", shuffle),
    Operator("blocks", blocks, "blocks", (3, 6, 12), least=_FEWEST_BLOCKS, most=_MOST_BLOCKS, whole=True, posts=False),
)
