"""Character n-grams: the segmenter that needs no dictionary.

Knows what a character of a word is; knows no words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stream_dedup.evaluate.studies import KGRAMS


@dataclass(slots=True)
class GramSegmenter:
    """The n-grams of a text's letters, digits and Han characters; a shorter text is one n-gram.

    They run across word boundaries, as in the 2017 K-gram study: blanks, punctuation and symbols are removed first.

    Attributes:
        name: as in `--segmenters` and in reports.
        n: number of characters in each.
        source: the paper it comes from.
        slow: whether it takes about a minute or more on 3,000 articles.
    """

    name: str
    n: int
    source: str = f"Broder 1997, shingles; K-grams of characters: {KGRAMS}"
    slow: bool = False

    def missing(self) -> str | None:
        """Return None: there is nothing to install."""
        return None

    def versions(self) -> list[str]:
        """Return an empty list: there is no library."""
        return []

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the n-grams of each text, in order."""
        return [self._grams("".join(filter(str.isalnum, text))) for text in texts]

    def _grams(self, characters: str) -> list[str]:
        if len(characters) <= self.n:
            return [characters] if characters else []
        return [characters[i : i + self.n] for i in range(len(characters) - self.n + 1)]
