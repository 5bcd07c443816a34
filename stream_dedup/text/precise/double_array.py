"""A trie as a double array: one look-up per character (Aoe 1989).

Knows where each prefix is stored; knows nothing of texts.

A node at index s with base b has its child for code c at index b + c, and the cell there names s as its parent: IEEE
Transactions on Software Engineering 15 (9), "An efficient digital search algorithm by using a double-array structure".
"""

import numpy as np

from stream_dedup.arrays import I32, I64, U64
from stream_dedup.compiled.kernel import kernel
from stream_dedup.text.precise.nodes import Nodes

# A cell, from its lowest bit: the word's number (0 for no word), the base (0 for no child), the parent.
NUMBER_BITS, BASE_BITS = 21, 21
PARENT_SHIFT = NUMBER_BITS + BASE_BITS
_NUMBER_LIMIT = (1 << NUMBER_BITS) - 2  # two more are for characters that are not words
_NO_PARENT = (1 << BASE_BITS) - 1  # of single characters: not an index, so that they are no node's children
_ALL, _NONE, _ONE, _WORD = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0), np.uint64(1), np.uint64(64)
_NEAR = 16  # words of 64 places: if a node fits only farther on than this, the next one starts farther on too
_SMALL = 30  # children: nodes with at most this many are also tried in the gaps that larger ones left


def double_array(nodes: Nodes, alphabet: int, numbers: I64) -> I64:
    """Return the cells of a trie; single characters are at the indices that are their codes.

    Args:
        nodes: of the trie.
        alphabet: how many codes there are.
        numbers: each prefix's number as a word, 0 if it is not one, shape of `nodes.codes`.

    Raises:
        ValueError: the dictionaries have too many words for the bits of a cell.
    """
    several = np.flatnonzero(nodes.children > 1)
    several = several[np.argsort(-nodes.children[several], kind="stable")]
    bases, places = _placed(nodes, alphabet, several, np.flatnonzero(nodes.children == 1))
    length = int(places.max()) + alphabet
    words = int(numbers.max())
    if length > _NO_PARENT or words >= _NUMBER_LIMIT:
        raise ValueError(
            f"the dictionaries have too many words: {words:,}, whose {len(numbers):,} prefixes take {length:,} cells; "
            f"at most {_NUMBER_LIMIT - 1:,} words and {_NO_PARENT:,} cells are allowed. Shorten text.user_dictionary"
        )
    cells = np.zeros(length, np.int64)
    parents = places[nodes.parents].astype(np.int64)
    parents[:alphabet] = _NO_PARENT
    cells[places] = (parents << PARENT_SHIFT) | (bases.astype(np.int64) << NUMBER_BITS) | numbers
    return cells


@kernel
def _placed(nodes: Nodes, alphabet: int, several: I64, single: I64) -> tuple[I32, I32]:
    """Return each node's base and index. Those with the most children choose first; single children fill the gaps.

    Args:
        nodes: of the trie.
        alphabet: how many codes there are.
        several: the nodes with more than one child, those with the most first.
        single: the nodes with one child.
    """
    first, codes, child = _by_parent(nodes, alphabet)
    bases, places = np.zeros(len(nodes.codes), np.int32), np.arange(len(nodes.codes)).astype(np.int32)
    free = np.full((alphabet + len(places)) // 64 + 2, _ALL)
    for place in range(alphabet):
        _take(free, place)
    start, before = 0, np.int32(0)
    for node in several:
        if nodes.children[node] != before and nodes.children[node] <= _SMALL:
            start = 0
        before = nodes.children[node]
        while free[start] == _NONE:
            start += 1
        own = codes[first[node] : first[node + 1]]
        free, word, fitting = _fit(free, start, own, alphabet)
        if word - start > _NEAR:
            start += (word - start) // 2
        bases[node] = 64 * word + _lowest_bit(fitting)
        for k in range(len(own)):
            places[child[first[node] + k]] = bases[node] + own[k]
            _take(free, bases[node] + own[k])
    _fill_gaps(free, single, nodes, child, first, bases, places, alphabet)
    return bases, places


@kernel
def _by_parent(nodes: Nodes, alphabet: int) -> tuple[I64, I64, I32]:
    """Return where each node's children begin, the children's codes, and their node numbers."""
    first = np.zeros(len(nodes.codes) + 1, np.int64)
    for node in range(len(nodes.codes)):
        first[node + 1] = first[node] + nodes.children[node]
    codes, child = np.empty(first[-1], np.int64), np.empty(first[-1], np.int32)
    following = first.copy()
    for node in range(alphabet, len(nodes.codes)):
        at = following[nodes.parents[node]]
        codes[at], child[at] = nodes.codes[node], node
        following[nodes.parents[node]] += 1
    return first, codes, child


@kernel
def _fit(free: U64, word: int, codes: I64, alphabet: int) -> tuple[U64, int, np.uint64]:
    """Return `free`, grown if needed, the first word of 64 bases with one where all codes are free, and those bases."""
    while True:
        if 64 * (len(free) - 2 - word) <= alphabet + 64:
            grown = np.full(2 * len(free) + (1 << 10), _ALL)
            for i in range(len(free)):
                grown[i] = free[i]
            free = grown
        fitting = _ALL if word > 0 else _ALL - _ONE  # 0 is not a base
        for code in codes:
            at, shift = word + code // 64, np.uint64(code % 64)
            bits = free[at] >> shift
            if shift != _NONE:
                bits |= free[at + 1] << (_WORD - shift)
            fitting &= bits
            if fitting == _NONE:
                break
        if fitting != _NONE:
            return free, word, fitting
        word += 1


@kernel
def _fill_gaps(
    free: U64, single: I64, nodes: Nodes, child: I32, first: I64, bases: I32, places: I32, place: int
) -> None:
    """Put single children wherever there is room, from `place` on: any place will do."""
    for node in single:
        while place // 64 < len(free) and not free[place // 64] >> np.uint64(place % 64) & _ONE:
            place += 1
        only = child[first[node]]
        bases[node], places[only] = place - nodes.codes[only], place
        place += 1


@kernel
def _take(free: U64, place: int) -> None:
    free[place // 64] &= ~(_ONE << np.uint64(place % 64))


@kernel
def _lowest_bit(bits: np.uint64) -> int:
    number = 0
    while not bits >> np.uint64(number) & _ONE:
        number += 1
    return number
