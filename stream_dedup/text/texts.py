"""Many texts as one array of code points: what compiled loops go through without Python looking at each.

Knows how texts are laid out; knows nothing of what is done with them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U32, code_points


@dataclass(frozen=True, slots=True)
class Texts:
    """The code points of n texts, m in total.

    Attributes:
        points: of all texts, one behind the other, shape (m,).
        offsets: those of text i at points[offsets[i]:offsets[i + 1]], shape (n + 1,).
    """

    points: U32
    offsets: I64

    @classmethod
    def of_strings(cls, texts: Sequence[str]) -> "Texts":
        """Return texts given as strings; lone surrogates pass."""
        return cls(code_points("".join(texts)).copy(), _offsets(map(len, texts), len(texts)))

    @classmethod
    def joined(cls, texts: Sequence[U32]) -> "Texts":
        """Return texts given by the code points of each."""
        points = np.concatenate([np.empty(0, np.uint32), *texts])
        return cls(points, _offsets(map(len, texts), len(texts)))

    @classmethod
    def of_batches(cls, batches: Sequence["Texts"]) -> "Texts":
        """Return the texts of several batches, at least one, as those of one."""
        lengths = np.concatenate([np.diff(batch.offsets) for batch in batches])
        return cls(np.concatenate([batch.points for batch in batches]), _offsets(lengths.tolist(), len(lengths)))

    @classmethod
    def none(cls, texts: int) -> "Texts":
        """Return so many empty texts."""
        return cls(np.empty(0, np.uint32), np.zeros(texts + 1, np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, text: int) -> U32:
        """Return the code points of one text."""
        return self.points[self.offsets[text] : self.offsets[text + 1]]

    def text(self, text: int) -> str:
        """Return one text as a string.

        Raises:
            UnicodeDecodeError: it holds a lone surrogate; no normal text does.
        """
        return self.of(text).tobytes().decode("utf-32-le")

    def strings(self) -> Iterator[str]:
        """Yield each text as a string; see `text`."""
        return map(self.text, range(len(self)))

    def part(self, start: int, stop: int) -> "Texts":
        """Return the texts from `start` up to, not including, `stop`."""
        first, last = self.offsets[start], self.offsets[stop]
        return Texts(self.points[first:last], self.offsets[start : stop + 1] - first)

    def only(self, wanted: NDArray[np.bool_]) -> "Texts":
        """Return as many texts, in the place of those that are not wanted an empty one.

        Args:
            wanted: shape (n,).
        """
        return self if wanted.all() else Texts(*_only(self.points, self.offsets, wanted))


def _offsets(lengths: Iterable[int], count: int) -> I64:
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, count), out=offsets[1:])
    return offsets


@kernel
def _only(points: U32, offsets: I64, wanted: NDArray[np.bool_]) -> tuple[U32, I64]:
    kept, stops = np.empty_like(points), np.zeros_like(offsets)
    used = 0
    for i in range(len(wanted)):
        if wanted[i]:
            length = offsets[i + 1] - offsets[i]
            kept[used : used + length] = points[offsets[i] : offsets[i + 1]]
            used += length
        stops[i + 1] = used
    return kept[:used], stops
