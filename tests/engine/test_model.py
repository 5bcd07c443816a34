"""The engine compared with a model of it in plain Python: exact sets of 5-grams, every pair compared.

Knows the documented thresholds; knows nothing of sketches, tables or landmarks.
"""

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import pytest
from opencc import OpenCC

from stream_dedup import Decision, Deduplicator
from stream_dedup.settings.engine import VerifySettings
from tests.engine.samples import articles, settings

_GRAM = 5
_MARGIN = 0.1
_LIMITS = VerifySettings()
_TAG = re.compile(r"<[^<>]+>")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*(?:.|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Text:
    """A text as the model sees it.

    Attributes:
        grams: its distinct 5-grams of letters, digits and Han characters; a shorter text is one gram.
        numbers: its distinct numbers, each with the character after it.
    """

    grams: frozenset[str]
    numbers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Nearest:
    """How an article compares with the indexed articles before it.

    Attributes:
        jaccard: the largest.
        containment: the largest.
        bulletin: whether the number guard may apply to any that is over a threshold.
        guarded: whether some are over a threshold and the guard clearly applies to all of them.
    """

    jaccard: float
    containment: float
    bulletin: bool
    guarded: bool


@cache
def _simplifier() -> OpenCC:
    return OpenCC("t2s")


@cache
def _text(body: str) -> Text:
    plain = unicodedata.normalize("NFKC", _TAG.sub("", html.unescape(body))).lower()
    plain = _simplifier().convert("".join(c for c in plain if unicodedata.category(c) != "Cf"))
    spoken = "".join(character for character in plain if character.isalnum())
    grams = frozenset(spoken[at : at + _GRAM] for at in range(max(1, len(spoken) - _GRAM + 1)))
    return Text(grams, frozenset(_NUMBER.findall(plain)))


def _jaccard(one: Text, other: Text) -> float:
    shared = len(one.grams & other.grams)
    return shared / (len(one.grams) + len(other.grams) - shared)


def _containment(one: Text, other: Text) -> float:
    return len(one.grams & other.grams) / min(len(one.grams), len(other.grams))


def _other_numbers(one: Text, other: Text, margin: float) -> bool:
    """Return whether two texts are bulletins of one template: alike, but with other numbers."""
    fewer = min(len(one.numbers), len(other.numbers))
    if fewer < _LIMITS.numbers_min or _jaccard(one, other) >= _LIMITS.numbers_jaccard + margin:
        return False
    overlap = len(one.numbers & other.numbers) / fewer
    changed = 2 * (1 - _containment(one, other) - margin) * min(len(one.grams), len(other.grams))
    explained = 2 * (1 - overlap + margin) * fewer * _LIMITS.numbers_grams
    return overlap < _LIMITS.numbers_overlap + margin and changed <= explained


def _nearest(text: Text, earlier: Sequence[Text]) -> Nearest:
    over = [one for one in earlier if _is_over(_jaccard(text, one), _containment(text, one), -_MARGIN)]
    return Nearest(
        max((_jaccard(text, one) for one in earlier), default=0.0),
        max((_containment(text, one) for one in earlier), default=0.0),
        any(_other_numbers(text, one, _MARGIN) for one in over),
        bool(over) and all(_other_numbers(text, one, -_MARGIN) for one in over),
    )


def _is_over(jaccard: float, containment: float, margin: float) -> bool:
    return jaccard >= _LIMITS.near_jaccard + margin or containment >= _LIMITS.min_containment + margin


@cache
def _decisions(seed: int) -> tuple[Decision, ...]:
    # The model compares whole bodies; which parts count as content is tested elsewhere.
    whole = settings(idf={"epoch_articles": 150}, text={"strip_boilerplate": False})
    with Deduplicator(settings=whole) as engine:
        return tuple(engine.add_batch(articles(seed)))


@cache
def _compared(seed: int) -> tuple[tuple[Decision, Nearest], ...]:
    """Return each decision on a new id with what the model says about the articles indexed before it."""
    earlier: list[Text] = []
    compared = []
    seen: set[str] = set()
    for decision in _decisions(seed):
        text = _text(decision.article.body)
        if decision.article.id not in seen and len(text.grams) >= _LIMITS.min_grams:
            compared.append((decision, _nearest(text, earlier)))
        seen.add(decision.article.id)
        if decision.indexed and len(text.grams) >= _LIMITS.min_grams:
            earlier.append(text)
    return tuple(compared)


_SEEDS = pytest.mark.parametrize("seed", [20, 21])


@_SEEDS
def test_clear_copies_are_duplicates(seed: int) -> None:
    """If an earlier article is over a threshold by 0.1, the engine calls the article a duplicate."""
    clear = [
        (decision, near)
        for decision, near in _compared(seed)
        if _is_over(near.jaccard, near.containment, _MARGIN) and not near.bulletin
    ]
    assert len(clear) > 200
    assert [(d.article.id, near) for d, near in clear if d.unique] == []


@_SEEDS
def test_clear_originals_are_unique(seed: int) -> None:
    """If all earlier articles are below both thresholds by 0.1, the engine calls the article unique."""
    clear = [
        (decision, near) for decision, near in _compared(seed) if not _is_over(near.jaccard, near.containment, -_MARGIN)
    ]
    assert len(clear) > 150
    assert [(d.article.id, d.link, near) for d, near in clear if not d.unique] == []


@_SEEDS
def test_few_articles_are_left_to_chance(seed: int) -> None:
    """The tests above leave out only pairs near a threshold or under the number guard."""
    left_out = [
        decision.article.id
        for decision, near in _compared(seed)
        if not near.bulletin
        and _is_over(near.jaccard, near.containment, -_MARGIN)
        and not _is_over(near.jaccard, near.containment, _MARGIN)
    ]
    assert len(left_out) < len(_compared(seed)) / 20


@_SEEDS
def test_bulletins_of_a_template_are_unique_for_their_numbers(seed: int) -> None:
    """If every article over a threshold clearly differs in half of its numbers, the article is unique."""
    guarded = [decision for decision, near in _compared(seed) if near.guarded]
    over = [one for _, one in _compared(seed) if one.guarded and _is_over(one.jaccard, one.containment, _MARGIN)]
    assert len(guarded) > 20
    assert len(over) >= 5
    assert [(decision.article.id, decision.link) for decision in guarded if not decision.unique] == []


@_SEEDS
def test_estimates_are_near_the_exact_values(seed: int) -> None:
    """The Jaccard of links is within 0.15 of the exact one, and the median error is below 0.05."""
    bodies = {article.id: article.body for article in articles(seed)}
    errors = []
    for decision in _decisions(seed):
        link = decision.link
        if link is not None and link.jaccard is not None:
            pair = _text(decision.article.body), _text(bodies[link.matched])
            errors.append(abs(link.jaccard - _jaccard(*pair)))
    assert max(errors) < 0.15
    assert sorted(errors)[len(errors) // 2] < 0.05


def test_model_sees_what_it_should() -> None:
    """The model itself is right on texts that can be counted by hand."""
    one, other = _text("一二三四五六七"), _text("<p>一二三，四五六八。</p>")
    assert one.grams == {"一二三四五", "二三四五六", "三四五六七"}
    assert _jaccard(one, other) == 2 / 4
    assert _containment(one, other) == 2 / 3
    assert _text("3月1.5万元").numbers == {"3月", "1.5万"}
