"""Normal texts to words, by the dictionary of jieba.

Knows the segmenters and what they make of the user's words; knows nothing of weights.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from stream_dedup.text.dictionary import jieba_dictionary
from stream_dedup.text.precise.segmenter import precise_segmenter
from stream_dedup.text.texts import Texts
from stream_dedup.text.user_words import UserWord
from stream_dedup.text.words import Words, words_of

SegmenterName = Literal["compiled", "rjieba", "jieba"]
Segmenter = Callable[[Texts], Words]


@lru_cache(maxsize=4)
def segmenter(name: SegmenterName, words: tuple[UserWord, ...], *, hmm: bool = True) -> Segmenter:
    """Return a function from normal texts to their words. Engines of the same settings share it: it takes time to load.

    Args:
        name: `compiled` (the words of `rjieba`, without making strings of them), `rjieba` (Rust, some 20 times faster
            than jieba; letters, digits and rare characters are cut in another way), or `jieba`.
        words: the user dictionary.
        hmm: find words that the dictionary lacks by jieba's hidden Markov model.

    Raises:
        ValueError: `compiled` cannot hold so many words of the user's; the message tells the limit.
    """
    return {"compiled": _compiled, "rjieba": _rjieba, "jieba": _jieba}[name](_counted(words), hmm=hmm)


def _counted(words: tuple[UserWord, ...]) -> tuple[UserWord, ...]:
    """Return words with frequencies: where none is named, as jieba does, the least by which it is no longer split.

    More would make all other words rarer, and cut texts in another way that hold none of the user's.
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
    # Loading it takes as long as all else that a start waits for.
    from stream_dedup.text.uncached import UncachedTokenizer  # noqa: PLC0415

    tokenizer = UncachedTokenizer()
    for entry in words:
        tokenizer.add_word(entry.word, entry.frequency, entry.tag)
    return lambda texts: words_of(tokenizer.lcut(text, HMM=hmm) for text in texts.strings())
