"""What an edit works on: a headline and a body, and the sentences of a body.

Knows where sentences end in Chinese and in English; knows no edit.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

# Marks that end a sentence, with the closing marks and blanks after them. An English full stop ends one only after two
# lower-case letters, digits or closing marks: not in "Mr. Reed", not in "U.S. Navy". A line break ends one too.
_END = re.compile(
    r"""(?: [。！？]+
          | …+ (?=\s|$)
          | [!?]+ (?=\s|$|["'”’)\u3400-\u9fff])
          | (?<=[a-z0-9%)"'”’]{2})\.+ (?=["'”’)]?(?:\s|$))
        ) ["'”’」』）)】]* \s*
        | \n\s*""",
    re.VERBOSE,
)
HAN = re.compile(r"[\u3400-\u9fff]")
_HAN_SHARE = 0.1  # of the characters, at least, in a text that gets Chinese phrases: "iPhone 16 发布" does


@dataclass(frozen=True, slots=True)
class Text:
    """What an edit changes.

    Attributes:
        title: headline; empty if there is none.
        body: sentences, and lines separated by newlines; not blank.
    """

    title: str
    body: str


def sentences(body: str) -> list[str]:
    """Return the sentences of a body, each with the marks and blanks after it: joined they give the body."""
    ends = [end.end() for end in _END.finditer(body)]
    cuts = [0, *ends] if ends and ends[-1] == len(body) else [0, *ends, len(body)]
    return [body[start:stop] for start, stop in pairwise(cuts) if start < stop]


def joined(pieces: list[str]) -> str:
    """Join reordered sentences, with a blank between two that would otherwise run together."""
    body = ""
    for piece in pieces:
        runs_on = body and body[-1].isascii() and not body[-1].isspace() and piece[:1].isascii()
        body += f" {piece}" if runs_on else piece
    return body.strip()


def is_chinese(text: Text) -> bool:
    """Return whether Chinese phrases fit a text: at least a tenth of its characters are Han."""
    return len(HAN.findall(text.body)) >= _HAN_SHARE * len(text.body)


def part(share: float, total: int) -> int:
    """Return a share of `total`, rounded to the nearest integer, halves up."""
    return int(share * total + 0.5)
