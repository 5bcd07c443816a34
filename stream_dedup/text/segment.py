"""Normal text to words, by the dictionary of jieba.

Knows the segmenters and their user dictionaries; knows nothing of weights.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import rjieba

SegmenterName = Literal["rjieba", "jieba"]
Cut = Callable[[str], list[str]]

_USER_LINE = re.compile(r"(\S+)(?:\s+([0-9]{1,9}))?(?:\s+([a-zA-Z]+))?")
_USER_FREQUENCY = 1_000_000  # above any word of the dictionary's: a user's word is never split


@dataclass(frozen=True, slots=True)
class UserWord:
    """A line of a user dictionary: a word, how often it occurs in jieba's corpus if known, its part of speech."""

    word: str
    frequency: int | None
    tag: str


def read_user_dictionary(path: Path) -> list[UserWord]:
    """Read a user dictionary in jieba's format: `word [frequency] [tag]` a line, UTF-8, `#` comments.

    Raises:
        ValueError: it is no UTF-8, or a line is not of that form; the message names file and line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8: {error}") from None
    return list(_user_words(path, lines))


def _user_words(path: Path, lines: list[str]) -> Iterator[UserWord]:
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _USER_LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"{path}:{number}: {line!r} is not `word [frequency] [tag]`")
        word, frequency, tag = match.groups()
        yield UserWord(word, int(frequency) if frequency else None, tag or "n")


@lru_cache(maxsize=4)
def segmenter(name: SegmenterName, words: tuple[UserWord, ...], *, hmm: bool = True) -> Cut:
    """Return a function from normal text to its words. Engines of the same settings share it: it takes time to load.

    Args:
        name: `rjieba` (Rust, the same dictionary, some 20 times faster) or `jieba`.
        words: the user dictionary.
        hmm: find words that the dictionary lacks by jieba's hidden Markov model.
    """
    return (_rjieba if name == "rjieba" else _jieba)(words, hmm=hmm)


def _rjieba(words: tuple[UserWord, ...], *, hmm: bool) -> Cut:
    tokenizer = rjieba.Jieba()
    for entry in words:
        tokenizer.add_word(entry.word, entry.frequency or _USER_FREQUENCY, entry.tag)
    return lambda text: tokenizer.cut(text, hmm)


def _jieba(words: tuple[UserWord, ...], *, hmm: bool) -> Cut:
    # Loading it takes as long as all else that a start waits for.
    from stream_dedup.text.uncached import UncachedTokenizer  # noqa: PLC0415

    tokenizer = UncachedTokenizer()
    for entry in words:
        tokenizer.add_word(entry.word, entry.frequency or _USER_FREQUENCY, entry.tag)
    return lambda text: tokenizer.lcut(text, HMM=hmm)
