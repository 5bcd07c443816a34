"""Finds the numbers in a text: they distinguish two bulletins written from the same template.

Knows digits and Chinese numerals; knows nothing of what they count.
"""

from functools import cache

import numpy as np

from stream_dedup.arrays import U8, U32
from stream_dedup.compiled.hashing import HASH_OF_NONE, hash_end, hash_span, hash_step, upper_half
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.normal import word_table

_DIGIT, _NUMERAL, _LETTER = np.uint8(1), np.uint8(2), np.uint8(4)  # bit flags of a character
_ZERO, _NINE = np.uint32(ord("0")), np.uint32(ord("9"))
_COMMA, _THOUSANDS = np.uint32(ord(",")), 3  # digits between separators of thousands
_INNER = (np.uint32(ord(".")), _COMMA, np.uint32(ord(":")))
_ORDINAL = np.uint32(ord("第"))
_ONE = np.uint32(ord("一"))
# Numerals also occur in ordinary words (一些, 十分, 万一): they are a number only after 第 or before one of these.
_COUNTED = np.array([ord(character) for character in "年月日号时届次期轮场"], np.uint32)
_NUMERALS = np.array([ord(character) for character in "〇零一二三四五六七八九两十百千万亿"], np.uint32)
_VALUES = np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 10, 100, 1000, 10**4, 10**8], np.int64)
_LONGEST_NUMERAL = 15
_SLASH, _PAGE_DIGITS = np.uint32(ord("/")), 2
_TEN, _MYRIAD = 10, 10_000
_LARGEST = 10**10  # times 亿 still fits in 64 bits
_DIGITS = 20  # digits of the largest number that fits


@cache
def number_kinds() -> U8:
    """Return bit flags for each code point: digit, numeral, part of words; shape (0x110000,)."""
    kinds = np.where(word_table(), _LETTER, np.uint8(0))
    kinds[_ZERO : _NINE + 1] |= _DIGIT
    kinds[_NUMERALS] |= _NUMERAL
    return kinds


@kernel
def number_hashes(points: U32, kinds: U8) -> U32:
    """Return the 32-bit hashes of the numbers in a normalised text, in order, repetitions included.

    A number is a run of digits, with single `.`, `,` or `:` inside, or an ordinal, date or count in Chinese numerals,
    together with the letter after it, if any: 6月 and 6日 differ; 六月 and 6月 do not, nor do 12,500 and 12500. Page
    and picture marks such as 3/12 come from the site and are not numbers of the text.

    Args:
        points: code points of the text, without blanks.
        kinds: table from `number_kinds`.
    """
    hashes = np.empty(len(points), np.uint32)
    buffer = np.empty(_DIGITS + 1, np.uint32)
    used, i, n = 0, 0, len(points)
    while i < n:
        kind = kinds[points[i]]
        if not kind & (_DIGIT | _NUMERAL):
            i += 1
            continue
        if kind & _DIGIT:
            stop = _end_of_digits(points, i)
            page = _end_of_page_mark(points, i, stop)
            if page > i:
                i = page
                continue
            stop = stop + 1 if stop < n and kinds[points[stop]] & _LETTER else stop
            hashes[used] = upper_half(_hash_of_digits(points, i, stop))
            used, i = used + 1, stop
            continue
        stop = _end_of_numeral(points, i, kinds)
        if _counts(points, i, stop):
            length = _decimal(_value(points, i, stop), buffer)
            if stop < n and kinds[points[stop]] & _LETTER:
                buffer[length] = points[stop]
                length += 1
            hashes[used] = upper_half(hash_span(buffer, 0, length))
            used += 1
        i = stop
    return hashes[:used]


@kernel
def is_digit(point: np.uint32) -> bool:
    """Tell whether a character is a digit."""
    return bool(_ZERO <= point <= _NINE)


@kernel
def is_inner(point: np.uint32) -> bool:
    """Tell whether a character between two digits is part of their number."""
    return bool(point == _INNER[0] or point == _INNER[1] or point == _INNER[2])


@kernel
def _end_of_digits(points: U32, i: int) -> int:
    while i < len(points) and (is_digit(points[i]) or _joins(points, i)):
        i += 1
    return i


@kernel
def _hash_of_digits(points: U32, start: int, stop: int) -> np.uint64:
    """Return the hash of a number in digits, as `hash_span` computes it, without separators of thousands."""
    value = HASH_OF_NONE
    for place in range(start, stop):
        if not _separates_thousands(points, place):
            value = hash_step(value, points[place])
    return hash_end(value)


@kernel
def _separates_thousands(points: U32, place: int) -> bool:
    """Tell whether a character of a number is a comma before exactly three digits."""
    if points[place] != _COMMA:
        return False
    stop = place + 1
    while stop < len(points) and is_digit(points[stop]):
        stop += 1
    return stop - place - 1 == _THOUSANDS


@kernel
def _end_of_page_mark(points: U32, i: int, slash: int) -> int:
    """Return where a page mark such as 3/12 that begins at i ends, or i if there is none; both parts are below 100."""
    if slash - i > _PAGE_DIGITS or slash >= len(points) or points[slash] != _SLASH:
        return i
    stop = _end_of_digits(points, slash + 1)
    lengths = slash - i, stop - slash - 1
    inner = (i > 0 and points[i - 1] == _SLASH) or (stop < len(points) and points[stop] == _SLASH)
    if inner or not 0 < lengths[1] <= _PAGE_DIGITS or lengths[0] > lengths[1]:
        return i
    return stop if 0 < _read(points, i, slash) <= _read(points, slash + 1, stop) else i


@kernel
def _read(points: U32, start: int, stop: int) -> int:
    """Return the value of a run of digits."""
    number = 0
    for place in range(start, stop):
        number = 10 * number + int(points[place] - _ZERO)
    return number


@kernel
def _joins(points: U32, i: int) -> bool:
    return is_inner(points[i]) and i + 1 < len(points) and is_digit(points[i + 1])


@kernel
def _place_in(some: U32, point: np.uint32) -> int:
    for place in range(len(some)):
        if some[place] == point:
            return place
    return -1


@kernel
def _end_of_numeral(points: U32, i: int, kinds: U8) -> int:
    while i < len(points) and kinds[points[i]] & _NUMERAL:
        i += 1
    return i


@kernel
def _counts(points: U32, start: int, stop: int) -> bool:
    """Tell whether a numeral is a number: an ordinal, or one before a counted unit; a lone 一, as in 一次, is not."""
    if stop - start > _LONGEST_NUMERAL:
        return False
    if start > 0 and points[start - 1] == _ORDINAL:
        return True
    alone = stop - start == 1 and points[start] == _ONE
    return not alone and stop < len(points) and _place_in(_COUNTED, points[stop]) >= 0


@kernel
def _value(points: U32, start: int, stop: int) -> int:
    """Return the value of a numeral: 二〇二六 is read digit by digit, 三十一 and 两万五千 by their units."""
    total, section, digit, places = 0, 0, 0, True
    for i in range(start, stop):
        places = places and _VALUES[_place_in(_NUMERALS, points[i])] < _TEN
    for i in range(start, stop):
        value = _VALUES[_place_in(_NUMERALS, points[i])]
        if value < _TEN:
            digit = digit * 10 + value if places else value
        elif value < _MYRIAD:
            section, digit = section + max(digit, 1) * value, 0
        elif value == _MYRIAD:
            total, section, digit = total + max(section + digit, 1) * value, 0, 0
        else:
            total, section, digit = max(total + section + digit, 1) % _LARGEST * value, 0, 0
    return total + section + digit


@kernel
def _decimal(value: int, buffer: U32) -> int:
    """Write a number's digits into a buffer and return how many there are."""
    length = 1
    while value >= _TEN**length:
        length += 1
    for place in range(length - 1, -1, -1):
        buffer[place] = _ZERO + np.uint32(value % _TEN)
        value //= _TEN
    return length
