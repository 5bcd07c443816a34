"""Character n-grams to bottom-k sketches, and Jaccard and containment from them.

Knows sets of n-grams by their hashes; knows nothing of words or of the index.
Bottom-k sketches: Broder 1997; Cohen and Kaplan 2007.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64, U32, U64, hash_span

PAD = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Sketches:
    """The sketches of n articles.

    Attributes:
        values: the k smallest n-gram hashes, their upper 32 bits, ascending, padded by `PAD`, shape (n, k).
        lengths: how many of the k are used, int64, shape (n,).
        sizes: how many distinct n-grams the article has, int64, shape (n,).
        landmarks: the smallest 64-bit hashes, ascending, padded by 0, shape (n, landmarks).
        content: hash of all word characters in order, uint64, shape (n,): equal for equal texts.
    """

    values: U32
    lengths: I64
    sizes: I64
    landmarks: U64
    content: U64

    def part(self, start: int, stop: int) -> "Sketches":
        """Return the sketches of the articles from `start` up to, not including, `stop`."""
        return Sketches(
            self.values[start:stop],
            self.lengths[start:stop],
            self.sizes[start:stop],
            self.landmarks[start:stop],
            self.content[start:stop],
        )


def sketch(points: U32, offsets: I64, gram: int, k: int, landmarks: int) -> Sketches:
    """Return the sketches of articles given by their word characters.

    Args:
        points: the word characters of all articles, one after the other.
        offsets: characters of article i at offsets[i]:offsets[i + 1], shape (n + 1,).
        gram: n of the n-grams; a shorter text is one n-gram.
        k: sketch size.
        landmarks: landmark keys an article.
    """
    articles = len(offsets) - 1
    values = np.full((articles, k), PAD, np.uint32)
    lengths = np.zeros(articles, np.int64)
    sizes = np.zeros(articles, np.int64)
    marks = np.zeros((articles, landmarks), np.uint64)
    content = np.zeros(articles, np.uint64)
    for i in range(articles):
        characters = points[offsets[i] : offsets[i + 1]]
        content[i] = hash_span(characters, 0, len(characters))
        distinct = gram_hashes(characters, gram)
        smallest = distinct[:k]
        values[i, : len(smallest)] = smallest >> np.uint64(32)
        lengths[i], sizes[i] = len(smallest), len(distinct)
        marks[i, : min(landmarks, len(distinct))] = distinct[:landmarks]
    return Sketches(values, lengths, sizes, marks, content)


def gram_hashes(characters: U32, gram: int) -> U64:
    """Return the distinct hashes of a text's n-grams, ascending, shape (size,); empty for an empty text."""
    hashes = _gram_hashes(characters, gram)
    hashes.sort()
    return _distinct(hashes)


@kernel
def _gram_hashes(points: U32, gram: int) -> U64:
    if len(points) == 0:
        return np.empty(0, np.uint64)
    count = max(1, len(points) - gram + 1)
    hashes = np.empty(count, np.uint64)
    for i in range(count):
        hashes[i] = hash_span(points, i, min(i + gram, len(points)))
    return hashes


@kernel
def _distinct(ascending: U64) -> U64:
    used = 0
    for i in range(len(ascending)):
        if i == 0 or ascending[i] != ascending[used - 1]:
            ascending[used] = ascending[i]
            used += 1
    return ascending[:used]


@kernel
def resemblance(a: U32, a_length: int, a_size: int, b: U32, b_length: int, b_size: int) -> tuple[float, float]:
    """Return the estimated Jaccard and containment of two sets from their bottom-k sketches.

    Jaccard is the shared part of the k smallest of the union (Broder 1997): exact where both sets fit into their
    sketches. Containment |A and B| / min(|A|, |B|) follows from it and the two sizes:
    J / (1 + J) x (|A| + |B|) / min(|A|, |B|), at most 1.
    An empty set has nothing in common with any.

    Args:
        a: sketch, ascending, shape (k,); `a_length` values of it are used; the set has `a_size` members.
        a_length: see `a`.
        a_size: see `a`.
        b: the other one, likewise.
        b_length: see `b`.
        b_size: see `b`.
    """
    limit = a_length + b_length
    if a_length < a_size:
        limit = a_length
    if b_length < b_size:
        limit = min(limit, b_length)
    i, j, union, shared = 0, 0, 0, 0
    while union < limit and (i < a_length or j < b_length):
        if j == b_length or (i < a_length and a[i] < b[j]):
            i += 1
        elif i == a_length or b[j] < a[i]:
            j += 1
        else:
            i, j, shared = i + 1, j + 1, shared + 1
        union += 1
    if shared == 0:
        return 0.0, 0.0
    jaccard = shared / union
    smaller = min(a_size, b_size)
    return jaccard, min(1.0, jaccard / (1.0 + jaccard) * (a_size + b_size) / smaller)


@kernel
def word_characters(points: U32, is_word: NDArray[np.bool_]) -> U32:
    """Return the code points that are part of words, in order."""
    kept = np.empty(len(points), np.uint32)
    used = 0
    for point in points:
        if is_word[point]:
            kept[used] = point
            used += 1
    return kept[:used]
