"""Changes at random positions of a string.

Knows positions and strings; knows nothing of languages.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random

from stream_dedup.evaluate.operators.text import part


def insert_after_random(body: str, intruder: Callable[[], str], share: float, rng: Random) -> str:
    """Insert something after a share of the characters, an exact number of them, chosen at random."""
    places = set(rng.sample(range(len(body)), part(share, len(body))))
    return "".join(character + intruder() if place in places else character for place, character in enumerate(body))


def replace_at(body: str, places: Sequence[int], other: Callable[[str], str]) -> str:
    """Replace the characters at some positions."""
    characters = list(body)
    for place in places:
        characters[place] = other(characters[place])
    return "".join(characters)


def replace_all(body: str, wanted: Sequence[str], substitutes: Mapping[str, str]) -> str:
    """Replace all occurrences of some strings in one pass, so that what was put in is not replaced again."""
    pattern = re.compile("|".join(map(re.escape, wanted)))
    return pattern.sub(lambda found: substitutes[found.group()], body)
