"""The segmenter: takes a dictionary and a model, returns a function from texts to the ends of their words.

Knows how the tables are made and which belong together; knows nothing of how they are used.
"""

import math
from collections.abc import Callable

import numpy as np

from stream_dedup.arrays import F64, I32, I64, U32
from stream_dedup.compiled.hashing import code_points
from stream_dedup.text.dictionary import Dictionary
from stream_dedup.text.precise.alphabet import alphabet_of
from stream_dedup.text.precise.cut import cut_all
from stream_dedup.text.precise.double_array import double_array
from stream_dedup.text.precise.model import jieba_emissions, model_of
from stream_dedup.text.precise.nodes import prefixes
from stream_dedup.text.precise.route import prefixes_of
from stream_dedup.text.precise.vocabulary import vocabulary_of
from stream_dedup.text.words import Vocabulary

Stops = Callable[[U32, I64], tuple[I64, I64, I32, Vocabulary]]


def precise_segmenter(dictionary: Dictionary, own: int, *, hmm: bool) -> Stops:
    """Return a function that splits texts like jieba's precise mode as implemented in jieba-rs 0.11.

    It takes the code points of n texts, concatenated, and where each begins and the last one ends, shape (n + 1,). It
    returns where each word ends, where each text's words begin and the last ones end, shape (n + 1,), each word's
    number in a vocabulary, and that vocabulary.

    Args:
        dictionary: jieba's, with the user's words at its end.
        own: index of the first of the user's words.
        hmm: find words that the dictionary lacks, using jieba's hidden Markov model.

    Raises:
        ValueError: the dictionary has too many words or characters.
    """
    emissions = jieba_emissions()
    alphabet = alphabet_of(dictionary, code_points("".join(set().union(*emissions.values()))))
    nodes, total = prefixes(
        dictionary.points, dictionary.stops, dictionary.frequencies, own, alphabet.inner, alphabet.size
    )
    numbers = _numbers(nodes.frequencies)
    cells = double_array(nodes, alphabet.size, numbers)
    words = prefixes_of(cells, alphabet.size, _scores(nodes.frequencies, numbers, total))
    model = model_of(alphabet, emissions)
    vocabulary = vocabulary_of(nodes, numbers, alphabet)
    return lambda points, offsets: (*cut_all(points, offsets, alphabet.codes, words, model, hmm), vocabulary)


def _numbers(frequencies: I64) -> I64:
    """Number the words from 1 on, the most frequent first, so that their data is stored together; 0 for non-words."""
    words = np.flatnonzero(frequencies)
    numbers = np.zeros(len(frequencies), np.int64)
    numbers[words[np.argsort(-frequencies[words], kind="stable")]] = np.arange(1, len(words) + 1)
    return numbers


def _scores(frequencies: I64, numbers: I64, total: int) -> F64:
    """Return logarithms of probabilities by number, from the same library as jieba's so that they round identically."""
    distinct, which = np.unique(frequencies, return_inverse=True)
    logarithms = np.array([math.log(frequency or 1) - math.log(total) for frequency in distinct.tolist()])
    scores = np.full(int(numbers.max()) + 1, math.log(1) - math.log(total))
    scores[numbers] = logarithms[which]
    return scores
