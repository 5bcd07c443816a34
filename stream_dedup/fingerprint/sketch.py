"""Computes bottom-k sketches of character n-grams, and estimates Jaccard and containment from them.

Knows sets of n-grams by their hashes; knows nothing of words or of the index.
Bottom-k sketches: Broder 1997; Cohen and Kaplan 2007. Estimation by maximum likelihood: Ertl 2021.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_dedup.arrays import I64, U32, U64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.fingerprint.grams import gram_count, hash_grams, room_for, smallest_grams

PAD = np.uint32(0xFFFFFFFF)
# With 24 bits, one n-gram in 800 of a 20,000-character text collides with another.
VALUE_BITS = 24
_DROPPED_BITS = np.uint64(64 - VALUE_BITS)
# Of the landmarks of ten million texts, one in a hundred collides with another by chance; verification catches it.
LANDMARK_BITS = 40
_LANDMARK_DROPPED = np.uint64(64 - LANDMARK_BITS)
_BISECTIONS = 24


class LandmarkRule(NamedTuple):
    """How many landmarks a text has: one for each `spacing` n-grams, at least `least` and at most `most`.

    A short text contained in a long one therefore shares landmarks with it: about s / spacing for s shared n-grams.
    """

    least: int
    spacing: int
    most: int


@kernel
def landmark_count(size: int, rule: LandmarkRule) -> int:
    """Return how many landmarks a text of `size` distinct n-grams has, at most `size`."""
    return min(max(size // rule.spacing, rule.least), rule.most, size)


class Sketches(NamedTuple):
    """The sketches of n articles.

    Attributes:
        values: upper `VALUE_BITS` bits of the k smallest n-gram hashes, ascending, padded with `PAD`, shape (n, k).
        lengths: how many of the k are used, int64, shape (n,).
        sizes: how many distinct n-grams the article has, int64, shape (n,).
        landmarks: upper `LANDMARK_BITS` bits of the smallest n-gram hashes, ascending, padded with 0, shape
            (n, rule.most).
        content: hash of the whole text, uint64, shape (n,): equal for equal texts.
    """

    values: U32
    lengths: I64
    sizes: I64
    landmarks: U64
    content: U64

    def part(self, start: int, stop: int) -> "Sketches":
        """Return the sketches of the articles from `start` up to, but not including, `stop`."""
        return Sketches(
            self.values[start:stop],
            self.lengths[start:stop],
            self.sizes[start:stop],
            self.landmarks[start:stop],
            self.content[start:stop],
        )


def sketch(points: U32, offsets: I64, gram: int, k: int, rule: LandmarkRule, content: U64) -> Sketches:
    """Return the sketches of articles, given their word characters.

    Args:
        points: the word characters of all articles, concatenated.
        offsets: characters of article i at offsets[i]:offsets[i + 1], shape (n + 1,).
        gram: n of the n-grams; a shorter text is one n-gram.
        k: sketch size.
        rule: how many landmarks an article has.
        content: hashes of the whole texts, shape (n,).
    """
    articles = len(offsets) - 1
    values = np.full((articles, k), PAD, np.uint32)
    marks = np.zeros((articles, rule.most), np.uint64)
    lengths, sizes = np.zeros((2, articles), np.int64)
    sketches = Sketches(values, lengths, sizes, marks, content)
    _sketch_all(points, offsets, gram, rule, sketches)
    return sketches


@kernel
def _sketch_all(points: U32, offsets: I64, gram: int, rule: LandmarkRule, sketches: Sketches) -> None:
    """Fill the sketches of articles; see `sketch`."""
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, int(offsets[i + 1] - offsets[i]))
    room = room_for(longest)
    k, first = sketches.values.shape[1], 0
    for i in range(len(offsets) - 1):
        characters = points[offsets[i] : offsets[i + 1]]
        size, used = smallest_grams(characters, gram, max(k, rule.most), first, room)
        sketches.sizes[i], sketches.lengths[i] = size, min(k, used)
        for place in range(min(k, used)):
            sketches.values[i, place] = room.small[place] >> _DROPPED_BITS
        for place in range(landmark_count(size, rule)):
            sketches.landmarks[i, place] = room.small[place] >> _LANDMARK_DROPPED
        first += size


def gram_hashes(characters: U32, gram: int) -> U64:
    """Return the distinct hashes of a text's n-grams, ascending, shape (size,); empty for an empty text."""
    return distinct(_gram_hashes(characters, gram))


@kernel
def _gram_hashes(points: U32, gram: int) -> U64:
    hashes = np.empty(gram_count(len(points), gram), np.uint64)
    hash_grams(points, gram, hashes)
    return hashes


@kernel
def distinct(hashes: NDArray[Any]) -> NDArray[Any]:
    """Return hashes of any width once each, ascending: a view of the given array, which is sorted in place."""
    hashes.sort()
    ascending, used = hashes, 0
    for i in range(len(ascending)):
        if i == 0 or ascending[i] != ascending[used - 1]:
            ascending[used] = ascending[i]
            used += 1
    return ascending[:used]


class Resemblance(NamedTuple):
    """How two sets compare.

    Attributes:
        jaccard: |A and B| / |A or B|.
        containment: |A and B| / min(|A|, |B|).
        error: standard error of the containment, 0 if it is exact.
    """

    jaccard: float
    containment: float
    error: float


@kernel
def resemblance(
    a: U32, a_length: int, a_size: int, b: U32, b_length: int, b_size: int, bits: int = VALUE_BITS
) -> Resemblance:
    """Return the estimated Jaccard and containment of two sets from their bottom-k sketches.

    Let v be the smaller of the two sketches' largest values; both sketches are complete below it. The x values in
    both, the y in the first alone and the z in the second alone are what remains of the sets when each member is kept
    with probability t = v / 2^bits. As the sizes are known, the estimate of I = |A and B| is the one that makes x, y
    and z most likely: x / I - y / (|A| - I) - z / (|B| - I) + t = 0, with variance (1 - t) / (t (1/I + 1/(|A| - I) +
    1/(|B| - I))) (maximum likelihood for Poisson counts, in the manner of Ertl 2021, "SetSketch", on joint estimation
    with known sizes; the factor 1 - t is that of binomial counts, which vary less the more of the sets is kept). If
    both sets fit into their sketches, the result is exact. An empty set has nothing in common with any set.

    Args:
        a: sketch of the first set, ascending, shape (k,); `a_length` of its values are used; the set has `a_size`
            members.
        a_length: see `a`.
        a_size: see `a`.
        b: sketch of the second set, likewise.
        b_length: see `b`.
        b_size: see `b`.
        bits: bits of a value.
    """
    end = np.int64(1) << bits
    if a_length < a_size:
        end = np.int64(a[a_length - 1])
    if b_length < b_size:
        end = min(end, np.int64(b[b_length - 1]))
    shared, a_alone, b_alone = _counts(a[:a_length], b[:b_length], end)
    smaller = min(a_size, b_size)
    if smaller == 0:
        return Resemblance(0.0, 0.0, 0.0)
    both, error = float(shared), 0.0
    if a_length < a_size or b_length < b_size:
        kept = end / 2.0**bits
        if shared > 0:
            both = _likeliest(shared, a_alone, b_alone, a_size, b_size, kept)
        # Adding half a member keeps the information finite if nothing is shared, or one set contains the other.
        information = 1.0 / (both + 0.5) + 1.0 / (a_size - both + 0.5) + 1.0 / (b_size - both + 0.5)
        error = np.sqrt((1.0 - kept) / (kept * information))
    return Resemblance(both / (a_size + b_size - both), both / smaller, error / smaller)


@kernel
def _counts(a: U32, b: U32, end: np.int64) -> tuple[int, int, int]:
    """Return how many values below `end` are in both of two ascending arrays, and in each of them alone."""
    below_a, below_b = int(np.searchsorted(a, end)), int(np.searchsorted(b, end))
    i, j, shared = 0, 0, 0
    # Branch-free: which of two values is the smaller is unpredictable.
    while i < below_a and j < below_b:
        one, other = a[i], b[j]
        i += one <= other
        j += other <= one
        shared += one == other
    return shared, below_a - shared, below_b - shared


@kernel
def _likeliest(shared: int, a_alone: int, b_alone: int, a_size: int, b_size: int, kept: float) -> float:
    """Return the size of the intersection that makes the counts most likely; see `resemblance`."""
    low, high = 0.0, float(min(a_size, b_size))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        slope = shared / middle - a_alone / (a_size - middle) - b_alone / (b_size - middle) + kept
        if slope > 0.0:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0
