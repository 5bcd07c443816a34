"""The segmenter: a dictionary and a model in, a function from texts to the ends of their words out.

Knows how the tables are made and which belong together; knows nothing of how they are used.
"""

import math
from collections.abc import Callable

import numpy as np

from stream_dedup.hashing import I64, U32, code_points
from stream_dedup.text.dictionary import Dictionary
from stream_dedup.text.precise.alphabet import alphabet_of
from stream_dedup.text.precise.cut import cut_all
from stream_dedup.text.precise.double_array import double_array
from stream_dedup.text.precise.model import jieba_emissions, model_of
from stream_dedup.text.precise.nodes import prefixes
from stream_dedup.text.precise.route import Prefixes

Stops = Callable[[U32, I64], tuple[I64, I64]]


def precise_segmenter(dictionary: Dictionary, own: int, *, hmm: bool) -> Stops:
    """Return a function that cuts texts as jieba's precise mode does, in the form of jieba-rs 0.11.

    It takes the code points of n texts, one behind the other, and where each begins and the last one ends, shape
    (n + 1,). It returns where each word ends, and how many words there are up to each text, shape (n + 1,).

    Args:
        dictionary: of jieba, with the user's words at its end.
        own: the first of the user's words.
        hmm: find words that the dictionary lacks by jieba's hidden Markov model.

    Raises:
        ValueError: the dictionary has too many words or characters.
    """
    emissions = jieba_emissions()
    alphabet = alphabet_of(dictionary, code_points("".join(set().union(*emissions.values()))))
    nodes, total = prefixes(
        dictionary.points, dictionary.stops, dictionary.frequencies, own, alphabet.inner, alphabet.size
    )
    frequencies = np.union1d(dictionary.frequencies, [0])
    cells = double_array(nodes, alphabet.size, np.searchsorted(frequencies, nodes.frequencies))
    words, model = Prefixes(cells, _scores(frequencies, total)), model_of(alphabet, emissions)
    return lambda points, offsets: cut_all(points, offsets, alphabet.codes, words, model, hmm)


def _scores(frequencies: I64, total: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return logarithms of probabilities; of the library that jieba uses as well, so that they round alike."""
    return np.array([math.log(frequency or 1) - math.log(total) for frequency in frequencies.tolist()])
