"""Normal text to words, by the dictionary of jieba.

Knows the segmenters and their user dictionaries; knows nothing of weights.
"""

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import jieba
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


def segmenter(name: SegmenterName, words: list[UserWord], *, hmm: bool = True) -> Cut:
    """Return a function from normal text to its words.

    Args:
        name: `rjieba` (Rust, the same dictionary, some 20 times faster) or `jieba`.
        words: the user dictionary.
        hmm: find words that the dictionary lacks by jieba's hidden Markov model.
    """
    return (_rjieba if name == "rjieba" else _jieba)(words, hmm=hmm)


def _rjieba(words: list[UserWord], *, hmm: bool) -> Cut:
    tokenizer = rjieba.Jieba()
    for entry in words:
        tokenizer.add_word(entry.word, entry.frequency or _USER_FREQUENCY, entry.tag)
    return lambda text: tokenizer.cut(text, hmm)


def _jieba(words: list[UserWord], *, hmm: bool) -> Cut:
    jieba.setLogLevel(logging.WARNING)
    tokenizer = _UncachedTokenizer()
    for entry in words:
        tokenizer.add_word(entry.word, entry.frequency or _USER_FREQUENCY, entry.tag)
    return lambda text: tokenizer.lcut(text, HMM=hmm)


class _UncachedTokenizer(jieba.Tokenizer):  # type: ignore[misc]  # jieba has no types
    """jieba without its marshalled cache in the shared temporary directory, which anyone could have written."""

    loaded = False

    def initialize(self, dictionary: str | None = None) -> None:  # noqa: ARG002  # jieba's own signature
        """Read the dictionary itself."""
        with self.lock:
            if not self.loaded:
                self.FREQ, self.total = self.gen_pfdict(self.get_dict_file())
                self.initialized = self.loaded = True
