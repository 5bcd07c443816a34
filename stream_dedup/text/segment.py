"""Normal texts to words, by jieba's dictionary.

Knows the segmenters and how they treat the user's words; knows nothing of weights.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from stream_dedup.settings.engine import SegmenterName
from stream_dedup.text.dictionary import jieba_dictionary
from stream_dedup.text.precise.segmenter import precise_segmenter
from stream_dedup.text.texts import Texts
from stream_dedup.text.user_words import UserWord
from stream_dedup.text.words import Words, words_of

Segmenter = Callable[[Texts], Words]


@lru_cache(maxsize=4)
def segmenter(name: SegmenterName, words: tuple[UserWord, ...], *, hmm: bool = True) -> Segmenter:
    """Return a function from normal texts to words. Engines with the same settings share it: it takes time to load.

    Args:
        name: `compiled` (the same words as `rjieba`, without creating strings), `rjieba` (Rust, some 20 times faster
            than jieba; splits letters, digits and rare characters differently), or `jieba`.
        words: the user dictionary.
        hmm: find words that the dictionary lacks, using jieba's hidden Markov model.

    Raises:
        ValueError: `compiled` cannot hold that many user words or different characters.
    """
    return {"compiled": _compiled, "rjieba": _rjieba, "jieba": _jieba}[name](_counted(words), hmm=hmm)


def _counted(words: tuple[UserWord, ...]) -> tuple[UserWord, ...]:
    """Return words with frequencies: if none is given, as in jieba, the lowest at which the word is no longer split.

    A higher one would make all other words rarer, and so change how texts without any of the user's words are split.
    """
    if all(entry.frequency for entry in words):
        return words
    # Importing it reads the dictionary.
    import rjieba  # noqa: PLC0415

    tokenizer = rjieba.Jieba()
    return tuple(
        replace(entry, frequency=tokenizer.add_word(entry.word, entry.frequency or None, entry.tag)) for entry in words
    )


def _compiled(words: tuple[UserWord, ...], *, hmm: bool) -> Segmenter:
    dictionary = jieba_dictionary()
    stops_of = precise_segmenter(dictionary.extended(words), len(dictionary.stops), hmm=hmm)

    return lambda texts: Words(texts.points, *stops_of(texts.points, texts.offsets))


def _rjieba(words: tuple[UserWord, ...], *, hmm: bool) -> Segmenter:
    # Importing it reads the dictionary.
    import rjieba  # noqa: PLC0415

    tokenizer = rjieba.Jieba()
    for entry in words:
        tokenizer.add_word(entry.word, entry.frequency, entry.tag)
    return lambda texts: words_of(tokenizer.cut(text, hmm) for text in texts.strings())


def _jieba(words: tuple[UserWord, ...], *, hmm: bool) -> Segmenter:
    # Importing it takes as long as everything else at start-up.
    from stream_dedup.text.uncached import UncachedTokenizer  # noqa: PLC0415

    tokenizer = UncachedTokenizer()
    for entry in words:
        tokenizer.add_word(entry.word, entry.frequency, entry.tag)
    return lambda texts: words_of(tokenizer.lcut(text, HMM=hmm) for text in texts.strings())
