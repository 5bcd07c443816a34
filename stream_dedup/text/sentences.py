"""Where the sentences of a normal text end.

Knows marks and line breaks; knows nothing of what a sentence says.
"""

from functools import cache

import numpy as np

from stream_dedup.arrays import U8, U32
from stream_dedup.compiled.hashing import CODE_POINTS, code_points
from stream_dedup.compiled.kernel import kernel

ENDS = np.uint8(1)  # flag of a character: it may end a sentence
# End a sentence wherever they are: after marks, all that Unicode counts as the end of a line (Unicode 16, table 5-2).
_MARKS = "。！？!?\n\v\f\r\x85\u2028\u2029"
_STOP, _BLANK = np.uint32(ord(".")), np.uint32(ord(" "))  # a full stop ends one only before a blank


@cache
def sentence_marks() -> U8:
    """Return `ENDS` for each code point that may end a sentence, 0 for the others, shape (0x110000,)."""
    marks = np.zeros(CODE_POINTS, np.uint8)
    marks[code_points(_MARKS)] = ENDS
    marks[_STOP] = ENDS
    return marks


@kernel
def ends_sentence(points: U32, i: int, marks: U8) -> bool:
    """Return whether a sentence ends at character i: at the last of several marks, or at the end of the text.

    Args:
        points: the text.
        i: index of a character.
        marks: see `sentence_marks`; may have more flags.
    """
    if i + 1 == len(points):
        return True
    if not marks[points[i]] & ENDS:
        return False
    following = points[i + 1]
    if marks[following] & ENDS:
        return False
    return bool(points[i] != _STOP or following <= _BLANK)
