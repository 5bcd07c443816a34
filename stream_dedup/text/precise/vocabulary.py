"""The words of a dictionary as a vocabulary.

Knows what each word hashes to; knows nothing of texts.
"""

import numpy as np

from stream_dedup.arrays import I32, I64, U32, Bool
from stream_dedup.compiled.hashing import EMPTY, hash_prefixes
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.normal import word_table
from stream_dedup.text.precise.alphabet import Alphabet
from stream_dedup.text.precise.nodes import Nodes
from stream_dedup.text.words import Vocabulary


def vocabulary_of(nodes: Nodes, numbers: I64, alphabet: Alphabet) -> Vocabulary:
    """Return the vocabulary of a trie.

    Args:
        nodes: of the trie.
        numbers: each node's number as a word, 0 if it is not one.
        alphabet: the one that the nodes' codes are from.
    """
    known = np.flatnonzero(alphabet.inner).astype(np.uint32)
    points_of = np.zeros(alphabet.size, np.uint32)
    points_of[alphabet.inner[known]] = known
    points = points_of[nodes.codes]
    points[: alphabet.size] = points_of  # the first nodes are the codes themselves
    hashes = np.full(int(numbers.max()) + 1, EMPTY)
    words = np.flatnonzero(_with_word_characters(points, nodes.parents, word_table()) & (numbers > 0))
    hashes[numbers[words]] = hash_prefixes(points, nodes.parents, alphabet.size)[words]
    return Vocabulary(hashes)


@kernel
def _with_word_characters(points: U32, parents: I32, is_word: Bool) -> Bool:
    """Return which prefixes contain a word character, shape of `parents`."""
    having = np.zeros(len(parents), np.bool_)
    for i in range(len(parents)):
        having[i] = is_word[points[i]] or having[parents[i]]
    return having
