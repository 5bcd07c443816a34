"""jieba's dictionary as arrays, read once.

Knows its file and where jieba is installed; knows nothing of what the words are for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from stream_dedup.arrays import I64, U8, U32
from stream_dedup.compiled.hashing import code_points
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.user_words import UserWord

_BLANK, _LINE_END, _ZERO = ord(" "), ord("\n"), ord("0")


@dataclass(frozen=True, slots=True)
class Dictionary:
    """A dictionary of n words.

    Attributes:
        points: code points of all words, concatenated.
        stops: where each word ends in `points`; it begins where the one before it ends, shape (n,).
        frequencies: how often each word occurs in jieba's corpus, shape (n,).
        tags: the distinct parts of speech.
        tag_of: each word's part of speech as an index in `tags`, shape (n,).
    """

    points: U32
    stops: I64
    frequencies: I64
    tags: tuple[str, ...]
    tag_of: U8

    def lower(self) -> U32:
        """Return `points` with ASCII letters in lower case: normal texts have no others."""
        capital = (self.points >= ord("A")) & (self.points <= ord("Z"))
        return np.where(capital, self.points + np.uint32(ord("a") - ord("A")), self.points)

    def extended(self, words: Sequence[UserWord]) -> "Dictionary":
        """Return this dictionary with words appended; those without a frequency get 0."""
        if not words:
            return self
        tags = (*self.tags, *sorted({entry.tag for entry in words} - set(self.tags)))
        return Dictionary(
            np.concatenate([self.points, code_points("".join(entry.word for entry in words))]),
            np.concatenate([self.stops, len(self.points) + np.cumsum([len(entry.word) for entry in words])]),
            np.concatenate([self.frequencies, [entry.frequency or 0 for entry in words]]),
            tags,
            np.concatenate([self.tag_of, [tags.index(entry.tag) for entry in words]]),
        )


@lru_cache(maxsize=1)
def jieba_dictionary() -> Dictionary:
    """Return jieba's dictionary; all callers share it."""
    return parse(jieba_folder().joinpath("dict.txt").read_bytes().decode())


def parse(text: str) -> Dictionary:
    """Return the dictionary in the text of a file in jieba's format: `word frequency tag` per line."""
    points, stops, frequencies, tags = _fields(code_points(text), text.count("\n"))
    distinct = np.unique(tags)
    names = tuple(_letters(int(tag)) for tag in distinct)
    return Dictionary(points, stops, frequencies, names, np.searchsorted(distinct, tags).astype(np.uint8))


def jieba_folder() -> Path:
    """Return jieba's folder without importing jieba: that takes as long as everything else at start-up."""
    package = find_spec("jieba")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("the package jieba is not installed")
    return Path(package.submodule_search_locations[0])


@kernel
def _fields(file: U32, lines: int) -> tuple[U32, I64, I64, I64]:
    """Return the words' points, where each word ends, its frequency, and its tag as a number: its letters' bytes."""
    points, used = np.empty(len(file), np.uint32), 0
    stops, frequencies, tags = np.empty(lines, np.int64), np.zeros(lines, np.int64), np.zeros(lines, np.int64)
    i = 0
    for line in range(lines):
        while file[i] > _BLANK:
            points[used] = file[i]
            i, used = i + 1, used + 1
        stops[line] = used
        i += file[i] == _BLANK
        while file[i] > _BLANK:
            frequencies[line] = frequencies[line] * 10 + (np.int64(file[i]) - _ZERO)
            i += 1
        while file[i] != _LINE_END:
            if file[i] > _BLANK:
                tags[line] = tags[line] << 8 | np.int64(file[i])
            i += 1
        i += 1
    return points[:used].copy(), stops, frequencies, tags


def _letters(tag: int) -> str:
    return tag.to_bytes(8, "big").lstrip(b"\0").decode("ascii")
