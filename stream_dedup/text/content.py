"""What of a normal text is content: not links, nor the lines that sites put around articles.

Knows phrases by which such lines are told; knows nothing of words or of other articles.
"""

import re
from dataclasses import dataclass

from stream_dedup.hashing import code_points
from stream_dedup.text.normal import Normaliser, NormalText

_LONGEST_LINE = 160  # characters: what is longer has something to say besides
_SENTENCE = re.compile(r"(?:[^。！？!?\n.]|\.(?!\s|$))*(?:[。！？!?\n.]+|$)")
_LINK = re.compile(r"(?:https?://|www\.)[!-~]+")


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a text.

    Attributes:
        text: what is left of it.
        bare: whether nothing is left but there were lines of a site: an article of which only the shell came.
    """

    text: NormalText
    bare: bool


class ContentFilter:
    """Takes links and the sites' own lines out of normal texts.

    Args:
        phrases: a sentence of up to 160 characters with one of these is a site's line; in any form.
        normal: brings them into the form of the texts.
    """

    def __init__(self, phrases: tuple[str, ...], normal: Normaliser) -> None:
        self._phrases = tuple(sorted({normal(phrase).text for phrase in phrases}))

    def __call__(self, text: NormalText) -> Content:
        """Return the content of a normal text."""
        kept = text.text
        if "://" in kept or "www." in kept:
            kept = _LINK.sub(" ", kept)
        lines = any(phrase in kept for phrase in self._phrases)
        if lines:
            kept = "".join(sentence for sentence in _SENTENCE.findall(kept) if not self._is_line(sentence))
        if kept == text.text:
            return Content(text, bare=False)
        bare = lines and not any(map(str.isalnum, kept))
        return Content(NormalText(kept, code_points(kept)), bare)

    def _is_line(self, sentence: str) -> bool:
        return len(sentence) <= _LONGEST_LINE and any(phrase in sentence for phrase in self._phrases)
