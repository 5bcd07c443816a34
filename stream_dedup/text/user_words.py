"""The user's own words, in jieba's format.

Knows the lines of a user dictionary; knows nothing of segmenters.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stream_dedup.text.utf8 import utf8_lines

# Tags must be lower case, so that a phrase with a blank, which no segmenter finds, is not taken for a word and its tag.
_USER_LINE = re.compile(r"(\S+)(?:\s+([0-9]{1,9}))?(?:\s+([a-z]+))?")


@dataclass(frozen=True, slots=True)
class UserWord:
    """A line of a user dictionary: a word, its frequency in jieba's corpus if given, and its part of speech."""

    word: str
    frequency: int | None
    tag: str


def read_user_dictionary(path: Path) -> list[UserWord]:
    """Read a user dictionary in jieba's format: `word [frequency] [tag]` per line, UTF-8, with `#` comments.

    Raises:
        ValueError: it is not valid UTF-8, or a line is not of that form; the message names the file and the line.
    """
    return list(_user_words(path, utf8_lines(path)))


def _user_words(path: Path, lines: list[str]) -> Iterator[UserWord]:
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _USER_LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"{path}:{number}: {line!r} is not `word [frequency] [tag]` with the tag in lower case")
        word, frequency, tag = match.groups()
        yield UserWord(word, int(frequency) if frequency else None, tag or "n")
