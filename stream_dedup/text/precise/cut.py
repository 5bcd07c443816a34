"""A path through the dictionary's words to the final words: the single characters that it leaves are joined.

Knows jieba's rules for runs of single characters; knows nothing of how the path was found.
"""

import numpy as np

from stream_dedup.arrays import I32, I64, U8, U16, U32
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.precise.alphabet import OUTSIDE
from stream_dedup.text.precise.model import Model, mark_ends
from stream_dedup.text.precise.route import BEHIND, BestPaths, Prefixes, find_best_paths, is_word, room_for

_HAN_FIRST, _HAN_LAST = 0x4E00, 0x9FD5  # what the model covers
_CARRIAGE_RETURN, _LINE_FEED, _PERCENT = ord("\r"), ord("\n"), ord("%")


@kernel
def cut_all(
    points: U32,
    offsets: I64,
    alphabet: U16,
    words: Prefixes,
    model: Model,
    has_model: bool,  # noqa: FBT001  # compiled code has no keyword-only arguments
) -> tuple[I64, I64, I32]:
    """Return where each word ends, where each text's words begin and the last ones end, and each word's number.

    Shapes (m,), (n + 1,) and (m,). The number is 0 for words that are not from the dictionary.

    Args:
        points: code points of n texts, concatenated.
        offsets: text i is points[offsets[i]:offsets[i + 1]], shape (n + 1,).
        alphabet: code of each code point.
        words: the dictionary.
        model: for what the dictionary lacks.
        has_model: whether to use it.
    """
    longest = 0
    for text in range(len(offsets) - 1):
        longest = max(longest, offsets[text + 1] - offsets[text])
    ways, ends = room_for(longest), np.empty(longest, np.uint8)
    bounds, (runs, spans) = np.empty(longest, np.int32), np.empty((2, longest // 2 + 2, 2), np.int32)
    stops, numbers = np.empty(len(points), np.int64), np.empty(len(points), np.int32)
    counts = np.zeros(len(offsets), np.int64)
    used, alone = 0, len(words.scores) - 2
    for text in range(len(offsets) - 1):
        own = points[offsets[text] : offsets[text + 1]]
        for i in range(len(own)):
            ways.codes[i], ends[i] = alphabet[own[i]], 1
        ways.codes[len(own) : len(own) + BEHIND] = OUTSIDE
        find_best_paths(len(own), words, ways)
        bounded, found = _follow(own, ways, has_model, bounds, runs)
        if has_model:
            found = _join(own, ways, runs[:found], words.cells, ends, spans)
            mark_ends(ways.codes, spans[:found], model, ends)
        else:
            for run in range(found):
                ends[runs[run, 0] : runs[run, 1] - 1] = 0
        used = _gather(bounds[:bounded], ends, ways, alone, offsets[text], stops, numbers, used)
        counts[text + 1] = used
    return stops[:used], counts, numbers[:used]


@kernel
def _follow(
    points: U32,
    ways: BestPaths,
    has_model: bool,  # noqa: FBT001  # compiled code has no keyword-only arguments
    bounds: I32,
    runs: I32,
) -> tuple[int, int]:
    """Write where the words end on the likeliest path, and the runs of two or more single characters within blocks.

    Returns:
        How many words there are, and how many runs.
    """
    lengths, codes, size, one = ways.lengths, ways.codes, np.uint64(len(points)), np.uint64(1)
    i = start = np.uint64(0)  # unsigned, so that numba need not check whether they count from the end
    bounded, found = 0, 0
    while i < size:
        length, inside = lengths[i], codes[i] != OUTSIDE
        is_single = (length == 1) & inside & (has_model | _is_letter(points[i]))
        if points[i] == _CARRIAGE_RETURN and i + one < size and points[i + one] == _LINE_FEED:
            length = np.int32(2)
        # Written whether it is a run or not: a branch could not be predicted.
        runs[found, 0], runs[found, 1] = start, i
        found += bool((not is_single) & (i - start > one))
        i += np.uint64(length)
        start = start if is_single else i
        bounds[bounded] = i
        bounded += 1
    runs[found, 0], runs[found, 1] = start, i
    return bounded, found + bool(i - start > one)


@kernel
def _join(points: U32, ways: BestPaths, runs: I32, cells: I64, ends: U8, spans: I32) -> int:
    """Mark where words end in runs of single characters, except among Han characters: these are left to the model.

    A run that is a word stays single characters. Otherwise letters are joined, and so are signs between them and Han.

    Args:
        points: of the text.
        ways: paths through it.
        runs: where each begins and ends, shape (r, 2).
        cells: of the dictionary.
        ends: 1 at each character; written.
        spans: written: where each sequence of two or more Han characters in the runs begins and ends.

    Returns:
        How many spans there are.
    """
    found = 0
    for run in range(len(runs)):
        start, stop = int(runs[run, 0]), int(runs[run, 1])
        if ways.pairs[start] != 0 and is_word(ways.codes, start, stop, cells):
            continue
        while start < stop:
            end = start + 1
            if _is_han(points[start]):
                while end < stop and _is_han(points[end]):
                    end += 1
                spans[found, 0], spans[found, 1] = start, end
                found += end - start > 1
            else:
                end = _letters_end(points, start, stop) if _is_letter(points[start]) else _signs_end(points, end, stop)
                ends[start : end - 1] = 0
            start = end
    return found


@kernel
def _gather(
    bounds: I32, ends: U8, ways: BestPaths, alone: int, offset: int, stops: I64, numbers: I32, used: int
) -> int:
    """Append the words of one text to the `used` ones that were written before; return the new count.

    Args:
        bounds: where the words on the likeliest path end.
        ends: whether a word ends with each character.
        ways: that path.
        alone: number of a character that is not a word; the next number is that of a character that ends a block.
        offset: where the text begins.
        stops: written: where each word ends.
        numbers: written: the number of each word, 0 if it is not in the dictionary.
        used: words written before.
    """
    start, at, one = np.uint64(0), np.uint64(used), np.uint64(1)
    for bound in bounds:
        stop, number = np.uint64(bound), ways.numbers[start]
        is_word = (np.uint64(ways.lengths[start]) == stop - start) & (number < alone)
        stops[at], numbers[at] = offset + bound, number * is_word
        ended = ends[stop - one]
        at += np.uint64(ended)
        start = stop if ended else start
    return np.int64(at)  # type: ignore[return-value]  # compiled code has no Python integers


@kernel
def _letters_end(points: U32, start: int, stop: int) -> int:
    """Return where letters and digits end, with single signs between them as in `covid-19` and a final %."""
    end = start
    while end < stop and (
        _is_letter(points[end]) or (_connects(points[end]) and end + 1 < stop and _is_letter(points[end + 1]))
    ):
        end += 1
    return end + 1 if end < stop and points[end] == _PERCENT else end


@kernel
def _signs_end(points: U32, end: int, stop: int) -> int:
    while end < stop and not _is_han(points[end]) and not _is_letter(points[end]):
        end += 1
    return end


@kernel
def _is_han(point: np.uint32) -> bool:
    return bool(_HAN_FIRST <= point <= _HAN_LAST)


@kernel
def _is_letter(point: np.uint32) -> bool:
    """Return whether it is an ASCII letter or digit."""
    return bool(48 <= point <= 57 or 97 <= point <= 122 or 65 <= point <= 90)  # noqa: PLR2004  # 0-9, a-z, A-Z


@kernel
def _connects(point: np.uint32) -> bool:
    return bool(point in (45, 46, 95))  # one of -._
