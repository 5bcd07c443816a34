"""The plain weights of words: none, term frequency, TF-IDF. They keep all words, including stop words.

Knows occurrences and document frequencies; knows nothing of parts of speech.
"""

import numpy as np

from stream_dedup.arrays import F64
from stream_dedup.evaluate.features.bags import Bags
from stream_dedup.evaluate.features.feature import Texts


def unweighted(texts: Texts) -> Bags:
    """Weigh every distinct word of a text by 1."""
    words = texts.sequences().counted()
    return words.weighing(np.ones(words.matrix.nnz))


def frequency(texts: Texts) -> Bags:
    """Weigh a word by tf: its occurrences in the text / all words of the text."""
    words = texts.sequences().counted()
    return words.weighing(_tf(words))


def tf_idf(texts: Texts) -> Bags:
    """Weigh a word by tf x log(N / (df + 1)), natural logarithm: df of the N texts contain the word.

    By this formula, a word that occurs in all texts has a slightly negative weight.
    """
    words = texts.sequences().counted()
    idf = np.log(words.matrix.shape[0] / (words.document_frequencies() + 1.0))
    return words.weighing(_tf(words) * idf[words.matrix.indices])


def _tf(counts: Bags) -> F64:
    lengths = np.asarray(counts.matrix.sum(axis=1), np.float64)
    return np.asarray(counts.matrix.data / lengths[counts.text_of()], np.float64)
