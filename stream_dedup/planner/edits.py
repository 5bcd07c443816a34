"""Makes edited copies of articles that share a given part of their text.

Knows sentences; knows nothing of words or fingerprints.
"""

import random
import re
from collections.abc import Sequence

_SENTENCE = re.compile(r"[^。！？!?…\n]*[。！？!?…\n]+[”’」』]*|[^。！？!?…\n]+")
# Only whole sentences are removed or added, so a copy may miss the given share by this much.
_TOLERANCE = 0.03


def cut_copy(text: str, similarity: float, chance: random.Random) -> str | None:
    """Return the text with random sentences removed, so that a given share of its characters is kept.

    Args:
        text: text of an article.
        similarity: share of its characters to keep.
        chance: random generator that chooses the sentences.

    Returns:
        The copy, or None if the sentences are too long to get close to the share.
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
    """Return the text with sentences of other articles inserted, so that a given share of the characters is its own.

    Args:
        text: text of an article.
        similarity: share of the copy's characters that come from it.
        others: texts of other articles.
        chance: random generator that chooses where to insert.

    Returns:
        The copy, or None if the sentences are too long to get close to the share.
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
