"""TextRank over the words of each text.

Knows which words are near each other; knows nothing of other texts.
"""

import numpy as np
from scipy.sparse import coo_array, csr_array

from stream_dedup.arrays import F64, I64
from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.evaluate.features.feature import Texts
from stream_dedup.evaluate.features.sequences import Sequences

DAMPING = 0.85
WINDOW = 5  # words, as in jieba's own TextRank; the studies give none
TOLERANCE = 1e-4  # as in Mihalcea and Tarau
_MOST_ROUNDS = 200
_TEXTS_AT_ONCE = 256  # bounds the memory that the edges take


def text_rank(texts: Texts) -> Bags:
    """Weigh a word by its TextRank in its text: WS(v) = (1 - d) + d x sum of WS(u) / degree(u) over its neighbours u.

    Mihalcea and Tarau 2004, equation 1, undirected and unweighted: two words are neighbours if they occur within a
    window of 5 anywhere in the text. d = 0.85; all ranks start at 1.
    """
    sequences = texts.sequences()
    words = sequences.counted()
    n = words.matrix.shape[0]
    parts = [_ranks(sequences, words, first, min(first + _TEXTS_AT_ONCE, n)) for first in range(0, n, _TEXTS_AT_ONCE)]
    return words.weighing(np.concatenate([np.empty(0), *parts]))


def _ranks(sequences: Sequences, words: Bags, first: int, last: int) -> F64:
    """Return the ranks of the words of texts first:last, in the order of the bags' members."""
    at = slice(sequences.offsets[first], sequences.offsets[last])
    text = np.repeat(np.arange(first, last), np.diff(sequences.offsets[first : last + 1]))
    start, stop = words.offsets()[[first, last]]
    nodes = _node(words, text, np.searchsorted(words.keys, sequences.items[at])) - start
    return _stationary(_neighbours(nodes, text, int(stop - start)))


def _node(words: Bags, text: I64, column: I64) -> I64:
    """Return the position of each (text, column) among the bags' members, which are sorted by both."""
    width = len(words.keys)
    members = words.text_of() * width + words.matrix.indices
    return np.searchsorted(members, text * width + column)


def _neighbours(nodes: I64, text: I64, size: int) -> csr_array:
    """Return the graph: 1 where two different words of a text occur within a window, shape (size, size)."""
    pairs = [_apart(nodes, text, distance) for distance in range(1, WINDOW)]
    one, other = np.concatenate(pairs, axis=1)
    both = np.concatenate([one, other]), np.concatenate([other, one])
    graph = coo_array((np.ones(len(both[0])), both), shape=(size, size)).tocsr()
    graph.data[:] = 1.0
    return graph


def _apart(nodes: I64, text: I64, distance: int) -> I64:
    """Return the pairs of different words of one text that occur `distance` words apart, shape (2, pairs)."""
    one, other = nodes[:-distance], nodes[distance:]
    near = (text[:-distance] == text[distance:]) & (one != other)
    return np.stack([one[near], other[near]])


def _stationary(graph: csr_array) -> F64:
    degrees = np.maximum(np.asarray(graph.sum(axis=1)), 1.0)
    ranks = np.ones(graph.shape[0])
    for _ in range(_MOST_ROUNDS):
        before, ranks = ranks, (1.0 - DAMPING) + DAMPING * (graph @ (ranks / degrees))
        if np.abs(ranks - before).max(initial=0.0) < TOLERANCE:
            break
    return np.asarray(ranks, np.float64)
