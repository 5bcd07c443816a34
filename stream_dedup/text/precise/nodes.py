"""The prefixes of a dictionary's words as a trie.

Knows which character extends which prefix; knows nothing of how the trie is stored for look-ups.
"""

from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I32, I64, U16, U32
from stream_dedup.compiled.hashing import table_size
from stream_dedup.compiled.kernel import kernel

_SPREAD = 40503  # odd, near 2^16 over the golden ratio


class Nodes(NamedTuple):
    """n prefixes. The first are the single characters by code, whether or not a word begins with them.

    Attributes:
        parents: the prefix without its last character, shape (n,); 0 for single characters.
        codes: its last character, shape (n,).
        frequencies: of the prefix as a word, 0 if it is not one, shape (n,).
        children: how many prefixes are one character longer, shape (n,).
    """

    parents: I32
    codes: U16
    frequencies: I64
    children: I32


@kernel
def prefixes(points: U32, stops: I64, frequencies: I64, own: int, inner: U16, size: int) -> tuple[Nodes, int]:
    """Return the prefixes of all words, and the sum of the words' frequencies. Of two equal words the later one counts.

    Args:
        points: of the dictionary.
        stops: likewise.
        frequencies: likewise.
        own: index of the first of the user's words. One that jieba has as well replaces jieba's in the sum.
        inner: of the alphabet.
        size: likewise.
    """
    most = size + len(points)
    nodes = Nodes(
        np.zeros(most, np.int32), np.zeros(most, np.uint16), np.zeros(most, np.int64), np.zeros(most, np.int32)
    )
    places = np.zeros(table_size(len(points)), np.int32)
    used, total, start = size, 0, 0
    for word in range(len(stops)):
        if start == stops[word]:
            continue
        node = np.int64(inner[points[start]])
        for i in range(start + 1, stops[word]):
            code = inner[points[i]]
            place = _find(places, nodes, node, code)
            if places[place] == 0:
                places[place], nodes.parents[used], nodes.codes[used] = used, node, code
                nodes.children[node] += 1
                used += 1
            node = np.int64(places[place])
        total += frequencies[word] - (nodes.frequencies[node] if word >= own else 0)
        nodes.frequencies[node] = frequencies[word]
        start = stops[word]
    return Nodes(nodes.parents[:used], nodes.codes[:used], nodes.frequencies[:used], nodes.children[:used]), total


@kernel
def _find(places: I32, nodes: Nodes, parent: np.int64, code: np.uint16) -> np.int64:
    """Return where a child is in the open-addressing table of node numbers, or the free place for it."""
    mask = np.int64(len(places) - 1)
    # Neighbours in the dictionary get neighbouring places: it is read in order, so these are in the cache.
    place: np.int64 = (2 * parent + code * _SPREAD) & mask
    while places[place] != 0 and (nodes.parents[places[place]] != parent or nodes.codes[places[place]] != code):
        place = (place + 1) & mask
    return place
