"""What Unicode and OpenCC make of each character: the tables for normal text.

Knows single characters and which of them join with others; knows nothing of texts.
"""

import unicodedata
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np
from opencc import OpenCC

from stream_dedup.arrays import I64, U32, Bool
from stream_dedup.compiled.hashing import CODE_POINTS, code_points

# Values in the tables of code points that do not map to a single other one.
DELETE = np.uint32(0xFFFFFFFF)
COMPOSE = np.uint32(0xFFFFFFFE)  # it expands, or may join with the one before it
MARKUP = np.uint32(0xFFFFFFFD)  # a tag or an entity of HTML may begin with it; otherwise it stays as it is
_MARKUP = "<&"
SEPARATOR = "\uffff"  # a noncharacter: no normal text contains it, so it can separate words
_LONGEST_EXPANSION = 8  # characters that one expands to; units of measurement, such as ㌖, have up to 6
# Everything that NFKC, lower case or deletion changes is in these blocks: Han, Hangul and private use stay as they are.
_TOUCHED = (
    range(0x3400),
    range(0xA000, 0xAC00),
    range(0xF900, 0x20000),
    range(0x2F800, 0x2FA20),
    range(0xE0000, 0xE1000),
)
# Unicode's Default_Ignorable_Code_Point, which no font shows, except for those in category Cf.
_IGNORABLE = frozenset(
    chain(
        [0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0],
        range(0x180B, 0x1810),
        range(0xFE00, 0xFE10),
        range(0xFFF0, 0xFFF9),
        range(0xE0000, 0xE1000),
    )
)
_HAN = (range(0x3400, 0xA000), range(0x20000, 0x323B0))
_BETWEEN = "\ue000"  # for private use: Unicode maps it to nothing else


@dataclass(frozen=True, slots=True)
class _Forms:
    """What Unicode makes of some characters.

    Attributes:
        sources: the characters' code points, shape (n,).
        points: their forms in NFKC and lower case, concatenated.
        starts: where each form begins in `points`, shape (n,).
        lengths: of each form, in code points, shape (n,).
    """

    sources: U32
    points: U32
    starts: I64
    lengths: I64

    def single(self) -> tuple[U32, U32]:
        """Return the characters whose form is a single character, and these forms."""
        one = self.lengths == 1
        return self.sources[one], self.points[self.starts[one]]


@cache
def _forms() -> _Forms:
    sources = np.concatenate([np.arange(block.start, block.stop, dtype=np.uint32) for block in _TOUCHED])
    # All at once, for speed. The character between them is not the form of any other, and none composes with it.
    between = np.full(2 * len(sources), ord(_BETWEEN), np.uint32)
    between[::2] = sources
    text = between.tobytes().decode("utf-32-le")
    return _Forms(sources, *_divided(unicodedata.normalize("NFKC", text).lower(), _BETWEEN))


def _divided(text: str, between: str) -> tuple[U32, I64, I64]:
    """Return the code points of a text whose parts end with `between`, where each part begins, and its length."""
    points = code_points(text)
    ends = np.flatnonzero(points == ord(between))
    starts = np.concatenate([[0], ends[:-1] + 1])
    return points, starts, ends - starts


@cache
def expands_to_phrase() -> Bool:
    """Return which code points NFKC expands to whole phrases: a text of them would grow eighteenfold."""
    table = np.zeros(CODE_POINTS, np.bool_)
    forms = _forms()
    table[forms.sources[forms.lengths > _LONGEST_EXPANSION]] = True
    return table


@cache
def forms_of(*, simplify: bool) -> tuple[U32, U32]:
    """Return what each code point becomes in a raw text, and in one that is already in NFKC and lower case.

    Both tables have shape (0x110000,) and contain `DELETE`; the first also has `COMPOSE` and `MARKUP`.
    """
    settled = np.arange(CODE_POINTS, dtype=np.uint32)
    settled[0xD800:0xE000] = DELETE  # a lone surrogate is half of a truncated emoji, not text
    settled[ord("ς")] = ord("σ")  # the only lower case that depends on the position in the word
    forms = _forms()
    fast = settled.copy()
    fast[forms.sources] = COMPOSE
    sources, becomes = forms.single()
    alone = ~np.isin(becomes, _joining())
    fast[sources[alone]] = settled[becomes[alone]]
    characters = [chr(point) for point in forms.sources.tolist()]
    combining = forms.sources[[_combines(character) for character in characters]]
    fast[combining], settled[combining] = COMPOSE, DELETE
    invisible = forms.sources[[_invisible(character) for character in characters]]
    fast[invisible] = settled[invisible] = DELETE
    # NFKC turns an ellipsis into three full stops. Either way it is punctuation, and it makes up nine tenths of
    # all expansions, so it stays one character and the text keeps the fast path.
    fast[ord("…")] = ord("…")
    fast[code_points(_MARKUP)] = MARKUP
    return (_simplified(fast), _simplified(settled)) if simplify else (fast, settled)


def _combines(character: str) -> bool:
    # A few characters combine with none themselves, but consist of such as do.
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0


def _invisible(character: str) -> bool:
    return unicodedata.category(character) == "Cf" or ord(character) in _IGNORABLE or character == SEPARATOR


def _joining() -> U32:
    """Return the characters that may compose with the one before them."""
    jamo = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]  # of Hangul
    parts = (unicodedata.decomposition(chr(point)).split() for block in _TOUCHED for point in block)
    seconds = [int(pair[1], 16) for pair in parts if len(pair) == 2 and not pair[0].startswith("<")]  # noqa: PLR2004  # a canonical pair
    return np.unique(np.array(jamo + seconds, np.uint32))


def _simplified(table: U32) -> U32:
    """Apply the map from traditional to simplified characters to a table, in place."""
    ordinary = table < MARKUP
    table[ordinary] = _to_simple()[table[ordinary]]
    return table


@cache
def _to_simple() -> U32:
    """Return OpenCC's map of single characters from traditional to simplified, shape (0x110000,)."""
    han = "".join(chr(point) for block in _HAN for point in block)
    # One per line: within a line OpenCC would convert phrases instead of characters.
    points, starts, lengths = _divided(OpenCC("t2s").convert("\n".join(han) + "\n"), "\n")
    single = lengths == 1
    table = np.arange(CODE_POINTS, dtype=np.uint32)
    table[code_points(han)[single]] = points[starts[single]]
    return table
