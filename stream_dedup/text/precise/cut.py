"""A way through the dictionary's words to words: what it leaves as single characters is joined.

Knows jieba's rules for runs of single characters; knows nothing of how the way was found.
"""

import numpy as np

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U32
from stream_dedup.text.precise.alphabet import OUTSIDE, U16
from stream_dedup.text.precise.model import U8, Model, mark_ends
from stream_dedup.text.precise.nodes import I32
from stream_dedup.text.precise.route import Prefixes, find_route, is_word

_HAN_FIRST, _HAN_LAST = 0x4E00, 0x9FD5  # what the model was made for
_CARRIAGE_RETURN, _LINE_FEED, _PERCENT = ord("\r"), ord("\n"), ord("%")


@kernel
def cut_all(
    points: U32,
    offsets: I64,
    alphabet: U16,
    words: Prefixes,
    model: Model,
    has_model: bool,  # noqa: FBT001  # compiled code has no keyword-only arguments
) -> tuple[I64, I64]:
    """Return where each word ends, and how many words there are up to each text, shape of `offsets`.

    Args:
        points: code points of n texts, one behind the other.
        offsets: text i at points[offsets[i]:offsets[i + 1]], shape (n + 1,).
        alphabet: code of each code point.
        words: the dictionary.
        model: for what the dictionary lacks.
        has_model: whether to use it.
    """
    longest = 0
    for text in range(len(offsets) - 1):
        longest = max(longest, offsets[text + 1] - offsets[text])
    codes, route = np.empty(longest + 1, np.uint16), np.empty(longest + 1, np.int32)
    scores, ends = np.empty(longest + 1, np.float64), np.empty(longest + 1, np.uint8)
    stops = np.empty(len(points), np.int64)
    counts = np.zeros(len(offsets), np.int64)
    used = 0
    for text in range(len(offsets) - 1):
        own = points[offsets[text] : offsets[text + 1]]
        for i in range(len(own)):
            codes[i] = alphabet[own[i]]
        codes[len(own)] = OUTSIDE
        find_route(codes, len(own), words, scores, route)
        before = used
        used = _cut(own, codes, route, words, model, has_model, ends, stops, used)
        for word in range(before, used):
            stops[word] += offsets[text]
        counts[text + 1] = used
    return stops[:used], counts


@kernel
def _cut(
    points: U32,
    codes: U16,
    route: I32,
    words: Prefixes,
    model: Model,
    has_model: bool,  # noqa: FBT001  # compiled code has no keyword-only arguments
    ends: U8,
    stops: I64,
    used: int,
) -> int:
    """Write where the words of one text end behind the `used` stops there are, and return how many there are then."""
    i, run = 0, 0
    while run < len(points):
        while i < len(points) and route[i] == i + 1 and codes[i] != OUTSIDE and (has_model or _is_letter(points[i])):
            i += 1
        if i - run > 1 and has_model:
            used = _join(points, codes, run, i, words, model, ends, stops, used)
        elif i > run:
            stops[used] = i
            used += 1
        if i < len(points):
            line_ends = points[i] == _CARRIAGE_RETURN and i + 1 < len(points) and points[i + 1] == _LINE_FEED
            i += 2 if line_ends else route[i] - i
            stops[used] = i
            used += 1
        run = i
    return used


@kernel
def _join(
    points: U32,
    codes: U16,
    start: int,
    stop: int,
    words: Prefixes,
    model: Model,
    ends: U8,
    stops: I64,
    used: int,
) -> int:
    """Write where the words of a run of single characters end. A run that is a word stays in single characters."""
    if is_word(codes, start, stop, words.cells):
        for i in range(start, stop):
            ends[i] = 1
    else:
        _mark_run(points, codes, start, stop, model, ends)
    for i in range(start, stop):
        stops[used] = i + 1
        used += ends[i]
    return used


@kernel
def _mark_run(points: U32, codes: U16, start: int, stop: int, model: Model, ends: U8) -> None:
    """Mark the last characters of words: of Han characters by the model, of letters, and of what is between these."""
    while start < stop:
        end = start + 1
        if _is_han(points[start]):
            while end < stop and _is_han(points[end]):
                end += 1
            mark_ends(codes, start, end, model, ends)
        else:
            if _is_letter(points[start]):
                end = _letters_end(points, start, stop)
            else:
                while end < stop and not _is_han(points[end]) and not _is_letter(points[end]):
                    end += 1
            for i in range(start, end):
                ends[i] = i == end - 1
        start = end


@kernel
def _letters_end(points: U32, start: int, stop: int) -> int:
    """Return where letters and digits end that single signs such as those of `covid-19` connect; a last % counts."""
    end = start
    while end < stop and (
        _is_letter(points[end]) or (_connects(points[end]) and end + 1 < stop and _is_letter(points[end + 1]))
    ):
        end += 1
    return end + 1 if end < stop and points[end] == _PERCENT else end


@kernel
def _is_han(point: np.uint32) -> bool:
    return bool(_HAN_FIRST <= point <= _HAN_LAST)


@kernel
def _is_letter(point: np.uint32) -> bool:
    """Tell whether it is a letter or a digit of ASCII."""
    return bool(48 <= point <= 57 or 97 <= point <= 122 or 65 <= point <= 90)  # noqa: PLR2004  # 0-9, a-z, A-Z


@kernel
def _connects(point: np.uint32) -> bool:
    return bool(point in (45, 46, 95))  # one of -._
