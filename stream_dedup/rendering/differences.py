"""Where two texts differ: sentence by sentence and, within edited sentences, character by character.

Knows texts; knows nothing of how differences are shown.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from enum import Enum
from itertools import groupby
from typing import NamedTuple

_SENTENCE = re.compile(r"[^。！？；!?;\n]*[。！？；!?;\n]+|[^。！？；!?;\n]+")
_MOST_SENTENCES = 2_000  # compared one by one; the rest of a longer text counts as one sentence
_MOST_CHARACTERS = 1_500  # of a passage in both texts that is compared character by character
_LEAST_SHARED = 0.3  # share of such a passage; with less, one is not an edit of the other
_SHORTEST_SHARED = 2  # characters; a single one between two differences is a coincidence


class Side(Enum):
    """Which of the texts a piece is in."""

    BOTH = "both"
    FIRST = "first"
    SECOND = "second"


class Piece(NamedTuple):
    """A piece of text."""

    side: Side
    text: str


def differences(first: str, second: str) -> list[Piece]:
    """Return two texts as pieces, in order: those in both and those in one only, the first's before the second's."""
    a, b = _sentences(first), _sentences(second)
    pieces: list[Piece] = []
    for kind, a_from, a_to, b_from, b_to in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        one, other = "".join(a[a_from:a_to]), "".join(b[b_from:b_to])
        pieces += [Piece(Side.BOTH, one)] if kind == "equal" else _within(one, other)
    return list(_joined(pieces))


def shortened(pieces: Sequence[Piece], around: int) -> list[Piece]:
    """Return pieces, with those that are in both texts shortened in the middle.

    Args:
        pieces: of two texts.
        around: number of characters kept on either side of a difference.
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
    """Yield the pieces that are not empty, with neighbours of the same side joined."""
    for shared, group in groupby((piece for piece in pieces if piece.text), lambda piece: piece.side is Side.BOTH):
        stretch = list(group)
        for side in (Side.BOTH,) if shared else (Side.FIRST, Side.SECOND):
            text = "".join(piece.text for piece in stretch if piece.side is side)
            if text:
                yield Piece(side, text)
