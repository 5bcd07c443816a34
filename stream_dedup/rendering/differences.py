"""Where two texts differ: sentence by sentence and, within edited sentences, character by character.

Knows texts, and what of them counts; knows nothing of how differences are shown.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from enum import Enum
from itertools import chain, groupby, pairwise
from typing import NamedTuple

from stream_dedup.text.forms import SEPARATOR
from stream_dedup.text.normal import Normaliser

_ENDS = frozenset("。！？；!?;\n")
_MOST_SENTENCES = 2_000  # compared one by one; the rest of a longer text counts as one sentence
# Times that a sentence may be in both texts and be looked for: the time grows with their third power.
_MOST_REPEATED = 20
_MOST_CHARACTERS = 1_500  # of a passage in both texts that is compared character by character
_LEAST_SHARED = 0.3  # share of such a passage; with less, one is not an edit of the other
_SHORTEST_SHARED = 2  # characters; a single one between two differences is a coincidence
_UNIT = re.compile(r"[0-9]+(?:[.,:][0-9]+)*|.", re.DOTALL)  # numbers as in fingerprint.numbers


class Side(Enum):
    """Which of the texts a piece is in."""

    BOTH = "both"
    FIRST = "first"
    SECOND = "second"


class Piece(NamedTuple):
    """A piece of text."""

    side: Side
    text: str


class _Unit(NamedTuple):
    """A character or a whole number, with the blanks and the invisible and combining characters after it.

    Attributes:
        raw: as it is in the text.
        form: what counts of it: its normal form, without blanks.
    """

    raw: str
    form: str


_Units = Sequence[_Unit]


def differences(first: str, second: str, normal: Normaliser) -> list[Piece]:
    """Return two texts as pieces, in order: those in both and those in one only, the first's before the second's.

    Characters are the same if their normal forms are, and blanks do not count. What is in both is as the first has it.

    Args:
        first: text.
        second: text.
        normal: makes the normal forms of characters.
    """
    a, b = _sentences(_units(first, normal)), _sentences(_units(second, normal))
    own, others = list(map(_form, a)), list(map(_form, b))
    # Such sentences are still the same beside others that are, and where both texts begin.
    repeated = {form for form, count in (Counter(own) & Counter(others)).items() if count > _MOST_REPEATED}
    matcher = SequenceMatcher(repeated.__contains__, own, others, autojunk=False)
    pieces: list[Piece] = []
    for kind, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        one, other = list(chain(*a[a_from:a_to])), list(chain(*b[b_from:b_to]))
        pieces += [Piece(Side.BOTH, _raw(one))] if kind == "equal" else _within(one, other)
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


def _units(text: str, normal: Normaliser) -> list[_Unit]:
    alone = sorted(set(text))
    forms = zip(alone, normal.all(alone).strings(), strict=True)
    uncounted = "".join(re.escape(character) for character, form in forms if not form.strip())
    parts = re.findall(rf"(?:\A[{uncounted}]+)?[^{uncounted}][{uncounted}]*", text) if uncounted else list(text)
    if not parts:
        return [_Unit(text, "")] if text else []
    distinct = sorted(set(parts))
    counted = {part: "".join(form.split()) for part, form in zip(distinct, normal.all(distinct).strings(), strict=True)}
    own = [counted[part] for part in parts]
    # One character for each part, so that a number's place in it is its place among the parts.
    line = "".join(form if len(form) == 1 else SEPARATOR for form in own)
    spans = [found.span() for found in _UNIT.finditer(line)]
    return [_Unit("".join(parts[start:stop]), "".join(own[start:stop])) for start, stop in spans]


def _sentences(units: _Units) -> list[_Units]:
    ends = [not _ENDS.isdisjoint(unit.raw + unit.form) for unit in units]
    # A sentence ends with the last of its marks.
    stops = [at + 1 for at, (here, after) in enumerate(pairwise([*ends, False])) if here and not after]
    stops = [*stops[:_MOST_SENTENCES], len(units)]
    return [units[start:stop] for start, stop in pairwise([0, *stops]) if start < stop]


def _raw(units: _Units) -> str:
    return "".join(unit.raw for unit in units)


def _form(units: _Units) -> str:
    return "".join(unit.form for unit in units)


def _within(one: _Units, other: _Units) -> list[Piece]:
    whole = [Piece(Side.FIRST, _raw(one)), Piece(Side.SECOND, _raw(other))]
    if not one or not other or len(one) + len(other) > _MOST_CHARACTERS:
        return whole
    matcher = SequenceMatcher(None, [unit.form for unit in one], [unit.form for unit in other], autojunk=False)
    ends = {(0, 0), (len(one), len(other))}
    blocks = [
        (a, b, size)
        for a, b, size in matcher.get_matching_blocks()
        if len(_form(one[a : a + size])) >= _SHORTEST_SHARED or not ends.isdisjoint({(a, b), (a + size, b + size)})
    ]
    if sum(size for _, _, size in blocks) < _LEAST_SHARED * min(len(one), len(other)):
        return whole
    return list(_between(one, other, blocks))


def _between(one: _Units, other: _Units, blocks: Sequence[tuple[int, int, int]]) -> Iterator[Piece]:
    a = b = 0
    for a_from, b_from, size in [*blocks, (len(one), len(other), 0)]:
        yield Piece(Side.FIRST, _raw(one[a:a_from]))
        yield Piece(Side.SECOND, _raw(other[b:b_from]))
        yield Piece(Side.BOTH, _raw(one[a_from : a_from + size]))
        a, b = a_from + size, b_from + size


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield the pieces that are not empty, with neighbours of the same side joined."""
    for shared, group in groupby((piece for piece in pieces if piece.text), lambda piece: piece.side is Side.BOTH):
        stretch = list(group)
        for side in (Side.BOTH,) if shared else (Side.FIRST, Side.SECOND):
            text = "".join(piece.text for piece in stretch if piece.side is side)
            if text:
                yield Piece(side, text)
