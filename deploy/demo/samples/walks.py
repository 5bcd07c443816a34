"""Endless texts, drawn from the words of the samples: each word comes after one that it follows there.

Knows the samples' words; knows nothing of messages or of what the texts are used for.
"""

import json
import random
from collections import defaultdict
from itertools import pairwise

import rjieba

from deploy.demo.samples.stream import sample_stream

_LEAPS = 0.3
_LONGEST = 1 << 20


class Walks:
    """Makes texts without meaning, whose words, lengths and n-grams are as varied as those of news.

    Args:
        leaps: share of the words chosen at random: the more, the fewer phrases two texts have in common.
        longest: characters of the longest words.
    """

    def __init__(self, leaps: float = _LEAPS, longest: int = _LONGEST) -> None:
        self._leaps = leaps
        self._follows = _word_pairs(longest)
        self._firsts = sorted(self._follows)

    def text(self, words: int, source: random.Random) -> str:
        """Return a text of some words; a source in the same state gives the same text."""
        word = source.choice(self._firsts)
        text = [word]
        while len(text) < words:
            # Now and then a leap, or the walk would retell whole sentences.
            leap = source.random() < self._leaps or word not in self._follows
            word = source.choice(self._firsts if leap else self._follows[word])
            text.append(word)
        return "".join(text)


def _word_pairs(longest: int) -> dict[str, list[str]]:
    follows: dict[str, list[str]] = defaultdict(list)
    for sample in sample_stream():
        if sample.value and sample.dead_reason is None and sample.repost_of is None:
            for first, second in pairwise(rjieba.cut(json.loads(sample.value)["body"])):
                if max(len(first), len(second)) <= longest:
                    follows[first].append(second)
    return follows
