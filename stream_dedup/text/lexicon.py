"""What is known about a word before any article is read: frequency, part of speech, stop word, marker word.

Knows the dictionary of jieba, the user's dictionary and the word lists; knows nothing of the stream.
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import F64, I32, I64, U8, U32, U64, Bool
from stream_dedup.compiled.hashing import (
    CODE_POINTS,
    EMPTY,
    HASH_OF_NONE,
    empty_table,
    find_slot,
    hash_end,
    hash_spans,
    hash_step,
    hash_words,
    place_all,
)
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.dictionary import jieba_dictionary
from stream_dedup.text.normal import Normaliser
from stream_dedup.text.user_words import UserWord
from stream_dedup.text.utf8 import utf8_lines

NOUN, VERB, OTHER = np.uint8(3), np.uint8(2), np.uint8(1)
STOP, MARKER = np.uint8(1), np.uint8(2)
_TYPICAL_WORDS = 300  # words per article: turns a word's share of a corpus into a share of documents
_RARE = 0.3  # assumed frequency in the dictionary's corpus of a word that the dictionary lacks


class Markers(NamedTuple):
    """The marker words.

    Attributes:
        hashes: of the words, as an open-addressing table.
        begin: which code points they begin with, shape (0x110000,): only a few, and most words contain none of these.
        longest: length of the longest, in characters.
    """

    hashes: U64
    begin: Bool
    longest: int


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """n words by hash, as an open-addressing table; the data of the most frequent ones is stored together.

    Attributes:
        keys: hashes, shape (m,), m a power of two, `EMPTY` where free.
        entries: index of the word among the n, the most frequent first, shape (m,).
        prior: expected share of documents that contain the word, in (0, 1], shape (n,).
        part_of_speech: 3 noun, 2 verb, 1 other (the 2020 paper's values), shape (n,).
        flags: bits `STOP` and `MARKER`, shape (n,).
        unknown_prior: the prior of a word that is not in the table.
        markers: the marker words; a word that contains one counts as a marker word.
    """

    keys: U64
    entries: I32
    prior: F64
    part_of_speech: U8
    flags: U8
    unknown_prior: float
    markers: Markers


def read_words(path: Path) -> tuple[str, ...]:
    """Read a word list: one word per line, UTF-8; blank lines and lines that begin with `#` are skipped.

    Raises:
        ValueError: it is not valid UTF-8; the message names the file.
    """
    lines = map(str.strip, utf8_lines(path))
    return tuple(line for line in lines if line and not line.startswith("#"))


def shipped_list(name: str) -> Path:
    """Return the path of a list that comes with the package: stop words, marker words or boilerplate, as NAME.txt."""
    package = Path(str(files("stream_dedup")))
    installed = package / "config" / name
    return installed if installed.exists() else package.parent / "config" / name


@lru_cache(maxsize=4)
def build_lexicon(
    user_words: tuple[UserWord, ...],
    stop_words: tuple[str, ...],
    marker_words: tuple[str, ...],
    *,
    simplify: bool = True,
) -> Lexicon:
    """Build the lexicon from jieba's dictionary, the user's dictionary and the two lists.

    Engines with the same settings share it, and none writes to it.

    Args:
        user_words: of the user's dictionary, in normal form.
        stop_words: as in the list; they are normalised in the same way as articles.
        marker_words: likewise.
        simplify: whether articles are simplified.
    """
    normal = Normaliser(simplify=simplify, strip_html=False)
    stops = [normal(word) for word in stop_words]
    markers = sorted({text for word in marker_words if (text := normal(word))})
    dictionary = jieba_dictionary().extended(user_words)
    frequencies, total = dictionary.frequencies, int(dictionary.frequencies.sum())
    keys = empty_table(len(frequencies) + len(stops) + len(markers))
    slots = place_all(keys, hash_spans(dictionary.lower(), dictionary.stops))
    unknown_prior = float(_documents_share(_RARE, total))
    prior = np.full(len(keys), unknown_prior)
    # A user's word without a frequency keeps the one of jieba's dictionary, if it is in there.
    named = slots[frequencies > 0]
    prior[named] = _documents_share(np.maximum(frequencies[frequencies > 0], _RARE), total)
    part_of_speech = np.full(len(keys), OTHER)
    part_of_speech[slots] = np.array([_part_of_speech(tag) for tag in dictionary.tags])[dictionary.tag_of]
    flags = np.zeros(len(keys), np.uint8)
    flags[place_all(keys, hash_words(stops))] |= STOP
    flags[place_all(keys, hash_words(markers))] |= MARKER
    known = _markers(markers)
    _mark_containing(dictionary.lower(), dictionary.stops, slots, flags, known)
    order = np.flatnonzero(keys != EMPTY)
    order = order[np.argsort(-prior[order], kind="stable")]
    entries = np.zeros(len(keys), np.int32)
    entries[order] = np.arange(len(order))
    return Lexicon(keys, entries, prior[order], part_of_speech[order], flags[order], unknown_prior, known)


def _markers(words: list[str]) -> Markers:
    hashes, begin = empty_table(len(words)), np.zeros(CODE_POINTS, np.bool_)
    place_all(hashes, hash_words(words))
    begin[[ord(word[0]) for word in words]] = True
    return Markers(hashes, begin, max(map(len, words), default=0))


@kernel
def contains_marker(points: U32, start: int, stop: int, markers: Markers) -> bool:
    """Return whether the word points[start:stop] is, or contains, a marker word.

    Args:
        points: code points.
        start: of the word.
        stop: end of the word, exclusive.
        markers: the marker words.
    """
    for first in range(start, stop):
        if not markers.begin[points[first]]:
            continue
        value = HASH_OF_NONE
        for last in range(first, min(stop, first + markers.longest)):
            value = hash_step(value, points[last])
            # A marker of one character (但, 却) counts only as a word of its own: inside words it means something else.
            if last == first and stop - start > 1:
                continue
            hashed = hash_end(value)
            if markers.hashes[find_slot(markers.hashes, hashed)] == hashed:
                return True
    return False


@kernel
def _mark_containing(points: U32, stops: I64, slots: I64, flags: U8, markers: Markers) -> None:
    """Flag the words that contain a marker word; word i ends at stops[i] and has the slot slots[i]."""
    start = 0
    for i in range(len(stops)):
        if contains_marker(points, start, stops[i], markers):
            flags[slots[i]] |= MARKER
        start = stops[i]


def _documents_share(frequency: F64 | float, total: int) -> F64:
    """Return the share of documents with a word, if each word drawn is that one with probability frequency / total."""
    share = -np.expm1(_TYPICAL_WORDS * np.log1p(-np.asarray(frequency) / (total + 1)))
    return np.asarray(share, np.float64)


def _part_of_speech(tag: str) -> np.uint8:
    if tag.startswith("n") or tag == "eng":
        return NOUN
    return VERB if tag.startswith("v") else OTHER
