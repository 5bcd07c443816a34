"""Edited copies of articles that share a stated part of their text.

Knows sentences; knows nothing of words or fingerprints.
"""

import random
import re
from collections.abc import Sequence

_SENTENCE = re.compile(r"[^。！？!?…\n]*[。！？!?…\n]+[”’」』]*|[^。！？!?…\n]+")
# A sentence is the least that is left out or added: a copy may miss the stated share by this much.
_TOLERANCE = 0.03


def cut_copy(text: str, similarity: float, chance: random.Random) -> str | None:
    """Return the text with sentences left out anywhere, so that a share of its characters is kept.

    Args:
        text: of an article.
        similarity: the share.
        chance: chooses the sentences.

    Returns:
        The copy, or None where the sentences are too long to come near the share.
    """
    sentences = _SENTENCE.findall(text)
    left, total = len(text), len(text)
    dropped = set()
    for place in chance.sample(range(len(sentences)), len(sentences)):
        if left - len(sentences[place]) >= (similarity - _TOLERANCE) * total:
            dropped.add(place)
            left -= len(sentences[place])
    if abs(left - similarity * total) > _TOLERANCE * total:
        return None
    return "".join(sentence for place, sentence in enumerate(sentences) if place not in dropped)


def padded_copy(text: str, similarity: float, others: Sequence[str], chance: random.Random) -> str | None:
    """Return the text with sentences of other articles anywhere, so that a share of the characters is its own.

    Args:
        text: of an article.
        similarity: the share.
        others: texts of other articles.
        chance: chooses sentences and places.

    Returns:
        The copy, or None where the sentences are too long to come near the share.
    """
    room = len(text) / similarity - len(text)
    allowed = _TOLERANCE * len(text) / similarity
    sentences = _SENTENCE.findall(text)
    added = 0
    for other in others:
        for sentence in _SENTENCE.findall(other):
            if added + len(sentence) <= room + allowed:
                sentences.insert(chance.randrange(len(sentences) + 1), sentence)
                added += len(sentence)
    return "".join(sentences) if abs(added - room) <= allowed else None
