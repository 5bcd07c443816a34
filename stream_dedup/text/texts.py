"""Many texts as one array of code points, so that compiled loops need no Python step per text.

Knows how texts are laid out; knows nothing of what is done with them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import I64, U32, Bool
from stream_dedup.compiled.kernel import kernel


@dataclass(frozen=True, slots=True)
class Texts:
    """The code points of n texts, m in total.

    Attributes:
        points: of all texts, concatenated, shape (m,).
        offsets: text i is points[offsets[i]:offsets[i + 1]], shape (n + 1,).
    """

    points: U32
    offsets: I64

    @classmethod
    def of_strings(cls, texts: Sequence[str]) -> "Texts":
        """Return texts given as strings; lone surrogates are allowed."""
        # One by one, so that each is still in the processor's cache when it is copied.
        encoded = bytearray().join([text.encode("utf-32-le", "surrogatepass") for text in texts])
        return cls(np.frombuffer(encoded, np.uint32), offsets_of([len(text) for text in texts]))

    @classmethod
    def of_batches(cls, batches: Sequence["Texts"]) -> "Texts":
        """Return the texts of one or more batches as a single batch."""
        lengths = np.concatenate([batch.lengths() for batch in batches])
        return cls(np.concatenate([batch.points for batch in batches]), offsets_of(lengths))

    @classmethod
    def none(cls, texts: int) -> "Texts":
        """Return the given number of empty texts."""
        return cls(np.empty(0, np.uint32), np.zeros(texts + 1, np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, text: int) -> U32:
        """Return the code points of one text."""
        return self.points[self.offsets[text] : self.offsets[text + 1]]

    def lengths(self) -> I64:
        """Return how many code points each text has, shape (n,)."""
        return np.diff(self.offsets)

    def text(self, text: int) -> str:
        """Return one text as a string.

        Raises:
            UnicodeDecodeError: it contains a lone surrogate; no normal text does.
        """
        return self.of(text).tobytes().decode("utf-32-le")

    def strings(self) -> Iterator[str]:
        """Yield each text as a string; see `text`."""
        return map(self.text, range(len(self)))

    def part(self, start: int, stop: int) -> "Texts":
        """Return the texts from `start` up to, not including, `stop`."""
        first, last = self.offsets[start], self.offsets[stop]
        return Texts(self.points[first:last], self.offsets[start : stop + 1] - first)

    def only(self, wanted: Bool) -> "Texts":
        """Return the texts with those that are not wanted replaced by empty ones.

        Args:
            wanted: shape (n,).
        """
        nothing = Texts.none(int(np.count_nonzero(~wanted)))
        return self.replaced(~wanted, nothing)

    def with_any(self, marked: Bool) -> Bool:
        """Return which texts contain a marked character, shape (n,).

        Args:
            marked: whether each code point is marked, shape (0x110000,).
        """
        return _with_any(self.points, self.offsets, marked)

    def kept(self, marked: Bool) -> "Texts":
        """Return the texts with only their marked characters; see `with_any`."""
        return Texts(*_kept(self.points, self.offsets, marked))

    def replaced(self, which: Bool, others: "Texts") -> "Texts":
        """Return these texts with some of them replaced.

        Args:
            which: the texts to replace, shape (n,).
            others: their replacements, in order.
        """
        return Texts(*_replaced(self.points, self.offsets, which, others.points, others.offsets)) if others else self


def offsets_of(lengths: I64 | Bool | Sequence[int]) -> I64:
    """Return where each of n concatenated parts of these lengths begins, and where the last ends: shape (n + 1,)."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


@kernel
def followed(points: U32, used: int, more: U32) -> int:
    """Append code points to the first `used` ones of an array; return the new count."""
    points[used : used + len(more)] = more
    return used + len(more)


@kernel
def _replaced(points: U32, offsets: I64, which: Bool, others: U32, other_offsets: I64) -> tuple[U32, I64]:
    joined, stops = np.empty(len(points) + len(others), np.uint32), np.zeros(len(offsets), np.int64)
    used = other = 0
    for text in range(len(which)):
        if which[text]:
            used = followed(joined, used, others[other_offsets[other] : other_offsets[other + 1]])
            other += 1
        else:
            used = followed(joined, used, points[offsets[text] : offsets[text + 1]])
        stops[text + 1] = used
    return joined[:used], stops


@kernel
def _with_any(points: U32, offsets: I64, marked: Bool) -> Bool:
    any_of = np.zeros(len(offsets) - 1, np.bool_)
    for text in range(len(any_of)):
        i = offsets[text]
        while i < offsets[text + 1] and not any_of[text]:
            any_of[text] = marked[points[i]]
            i += 1
    return any_of


@kernel
def _kept(points: U32, offsets: I64, marked: Bool) -> tuple[U32, I64]:
    kept, stops = np.empty(len(points), np.uint32), np.zeros(len(offsets), np.int64)
    used = 0
    for text in range(len(offsets) - 1):
        for i in range(offsets[text], offsets[text + 1]):
            # Always written: cheaper than a branch, even one predicted correctly nine times out of ten.
            kept[used] = points[i]
            used += marked[points[i]]
        stops[text + 1] = used
    return kept[:used], stops
