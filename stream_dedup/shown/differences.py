"""Where two texts differ: sentence by sentence, and within sentences that were edited, character by character.

Knows texts; knows nothing of how differences are shown.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from enum import Enum
from itertools import groupby
from typing import NamedTuple

_SENTENCE = re.compile(r"[^。！？；!?;\n]*[。！？；!?;\n]+|[^。！？；!?;\n]+")
_MOST_SENTENCES = 2_000  # compared; the rest of a longer text counts as one
_MOST_CHARACTERS = 1_500  # of a stretch that is compared character by character
_LEAST_SHARED = 0.3  # of such a stretch: below, the one was not made of the other
_SHORTEST_SHARED = 2  # characters: between two differences a single one is a coincidence


class Side(Enum):
    """Whose a piece is."""

    BOTH = "both"
    FIRST = "first"
    SECOND = "second"


class Piece(NamedTuple):
    """A piece of text."""

    side: Side
    text: str


def differences(first: str, second: str) -> list[Piece]:
    """Return two texts as pieces that both have and pieces that one has, in order; the first's before the second's."""
    a, b = _sentences(first), _sentences(second)
    pieces: list[Piece] = []
    for kind, a_from, a_to, b_from, b_to in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        one, other = "".join(a[a_from:a_to]), "".join(b[b_from:b_to])
        pieces += [Piece(Side.BOTH, one)] if kind == "equal" else _within(one, other)
    return list(_joined(pieces))


def shortened(pieces: Sequence[Piece], around: int) -> list[Piece]:
    """Return pieces without the middles of what both texts have.

    Args:
        pieces: of two texts.
        around: characters that stay on either side of a difference.
    """
    last = len(pieces) - 1
    return [
        Piece(piece.side, _cut(piece.text, around if at > 0 else 0, around if at < last else 0))
        if piece.side is Side.BOTH and last > 0
        else piece
        for at, piece in enumerate(pieces)
    ]


def _cut(text: str, before: int, after: int) -> str:
    left_out = len(text) - before - after
    if left_out <= before + after:
        return text
    return f"{text[:before]} ⋯ {text[len(text) - after :]}"


def _sentences(text: str) -> list[str]:
    sentences = _SENTENCE.findall(text)
    return [*sentences[:_MOST_SENTENCES], *filter(None, ["".join(sentences[_MOST_SENTENCES:])])]


def _within(one: str, other: str) -> list[Piece]:
    whole = [Piece(Side.FIRST, one), Piece(Side.SECOND, other)]
    if not one or not other or len(one) + len(other) > _MOST_CHARACTERS:
        return whole
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    ends = {(0, 0), (len(one), len(other))}
    blocks = [
        (a, b, size)
        for a, b, size in matcher.get_matching_blocks()
        if size >= _SHORTEST_SHARED or not ends.isdisjoint({(a, b), (a + size, b + size)})
    ]
    if sum(size for _, _, size in blocks) < _LEAST_SHARED * min(len(one), len(other)):
        return whole
    return list(_between(one, other, blocks))


def _between(one: str, other: str, blocks: Sequence[tuple[int, int, int]]) -> Iterator[Piece]:
    a = b = 0
    for a_from, b_from, size in [*blocks, (len(one), len(other), 0)]:
        yield Piece(Side.FIRST, one[a:a_from])
        yield Piece(Side.SECOND, other[b:b_from])
        yield Piece(Side.BOTH, one[a_from : a_from + size])
        a, b = a_from + size, b_from + size


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield pieces without empty ones; neighbours of one side are one piece."""
    for shared, group in groupby((piece for piece in pieces if piece.text), lambda piece: piece.side is Side.BOTH):
        stretch = list(group)
        for side in (Side.BOTH,) if shared else (Side.FIRST, Side.SECOND):
            text = "".join(piece.text for piece in stretch if piece.side is side)
            if text:
                yield Piece(side, text)
