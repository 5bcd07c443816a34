"""What an edit works on: a headline and a body, and the sentences of a body.

Knows where sentences end in Chinese and in English; knows no edit.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

# Marks that end a sentence, with what closes behind them and the blanks. A full stop of the English kind ends one only
# behind two small letters, digits or closing marks: not in "Mr. Reed", not in "U.S. Navy". A line ends one too.
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
_HAN_SHARE = 0.1  # of the characters, from which on a text takes Chinese phrases: "iPhone 16 发布" does


@dataclass(frozen=True, slots=True)
class Text:
    """What an edit changes.

    Attributes:
        title: headline; empty where there is none.
        body: sentences, and lines separated by newlines; not blank.
    """

    title: str
    body: str


def sentences(body: str) -> list[str]:
    """Return the sentences of a body, each with the marks and blanks behind it: joined they are the body."""
    ends = [end.end() for end in _END.finditer(body)]
    cuts = [0, *ends] if ends and ends[-1] == len(body) else [0, *ends, len(body)]
    return [body[start:stop] for start, stop in pairwise(cuts) if start < stop]


def joined(pieces: list[str]) -> str:
    """Join sentences in another order than they had, with a blank between two that would run into one word."""
    body = ""
    for piece in pieces:
        runs_on = body and body[-1].isascii() and not body[-1].isspace() and piece[:1].isascii()
        body += f" {piece}" if runs_on else piece
    return body.strip()


def is_chinese(text: Text) -> bool:
    """Tell whether Chinese phrases fit a text: a tenth of its characters are Han."""
    return len(HAN.findall(text.body)) >= _HAN_SHARE * len(text.body)


def part(share: float, total: int) -> int:
    """Return how many of `total` a share is, to the nearest, halves up."""
    return int(share * total + 0.5)
