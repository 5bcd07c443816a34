"""Makes labelled reposts from any articles.

Knows which articles are copied, by which edit and when; knows nothing of what an edit does.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Annotated, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from stream_dedup.article import Article
from stream_dedup.counted import counted
from stream_dedup.evaluate.labelled import LabelledArticle, LabelledSet
from stream_dedup.evaluate.operators import OPERATORS, STRENGTHLESS, Operator, Text
from stream_dedup.evaluate.overlap import distinct, with_overlaps
from stream_dedup.scope import id_of
from stream_dedup.text.markup import strip_html
from stream_dedup.text.normal import Normaliser

POST_CHARS = 140  # an original up to this long is a post, as on Weibo before 2016, and so are its copies
_FIRST_MS = 1_767_225_600_000  # 2026-01-01: the time of the first article without one
_SPACING_MS = 60_000  # between articles without a time
_DONORS_TRIED = 8  # until one has as many sentences as an edit needs
_MINUTES_MS = 60_000
# No article has more copies than so many times the average, or so many if that is more.
_MOST, _LEAST_MOST = 5, 20
_SITES = 40  # that copies come from


@dataclass(frozen=True, slots=True)
class EditOf:
    """An edit operator with its strength; None if it has none."""

    operator: Operator
    strength: float | None

    def __call__(self, text: Text, rng: Random, donor: Text) -> Text | None:
        """Make a copy; see `Edit`."""
        return self.operator.edit(text, rng, donor, STRENGTHLESS if self.strength is None else self.strength)


def parse_edit(edit: str) -> list[EditOf]:
    """Return the edits that `name` (all default strengths) or `name:strength,...` asks for.

    Raises:
        ValueError: there is no such operator, or it does not allow the strength; the message says what is allowed.
    """
    name, colon, strengths = edit.partition(":")
    operator = OPERATORS.get(name)
    if operator is None:
        raise ValueError(f"{name!r} is not an edit operator; choose from {', '.join(OPERATORS)}")
    levels = [_number(each, operator) for each in strengths.split(",")] if colon else operator.levels or (None,)
    for level in levels:
        operator.check(level)
    return [EditOf(operator, level) for level in levels]


class RepostSettings(BaseModel):
    """How reposts are made.

    Attributes:
        seed: random seed; the same articles and settings give the same reposts.
        share: share of the articles that are reposted.
        copies: average number of copies of a reposted article; the number is geometrically distributed, at least 1.
        chain: chance that a copy is made from an earlier copy instead of the original: A -> B -> C.
        least_minutes, most_minutes: delay of a copy after the article it was made from; its logarithm is uniform.
        least_chars: minimum of letters, digits and Han characters in a copy, unless the text has fewer; five words of a
            post are not a copy of it.
        edits: operators, each `name` or `name:strength,...`; all strengths are used equally often, where they fit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = 0
    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    copies: Annotated[float, Field(ge=1, le=100)] = 1.5
    chain: Annotated[float, Field(ge=0, le=1)] = 0.15
    least_minutes: Annotated[float, Field(gt=0)] = 5.0
    most_minutes: Annotated[float, Field(gt=0)] = 3 * 24 * 60.0
    least_chars: Annotated[int, Field(ge=1)] = 24
    edits: Annotated[tuple[str, ...], Field(min_length=1)] = tuple(OPERATORS)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.least_minutes > self.most_minutes:
            raise ValueError(
                f"least_minutes = {self.least_minutes:g} is greater than most_minutes = {self.most_minutes:g}"
            )
        for edit in self.edits:
            parse_edit(edit)
        return self


def with_reposts(articles: Sequence[Article], settings: RepostSettings, name: str = "reposts") -> LabelledSet:
    """Return articles and their reposts in order of time.

    Articles that overlap an earlier one (`overlap.distinct`) are left out first: they would be copies without a label.
    Copies that nevertheless overlap an article of another cluster, such as a text with much of another one inserted,
    are listed as overlapping. Articles without a publication time are placed a minute apart.

    Args:
        articles: any articles; ids must be unique within a scope.
        settings: which articles are copied, how often, how and when.
        name: name of the set.

    Raises:
        ValueError: two articles have the same id, there are fewer than two to make copies of, or none can be changed.
    """
    twice = [each for each, count in Counter(article.name for article in articles).items() if count > 1]
    if twice:
        raise ValueError(f"the id {id_of(twice[0])!r} belongs to two articles; ids must be unique")
    originals = distinct(sorted(_timed(articles), key=_time))
    if len(originals) < 2:  # noqa: PLR2004  # a copy and a text to borrow from
        found = counted(len(originals), "article that does not overlap others", "articles that do not overlap")
        raise ValueError(f"{found}: reposts are made from two or more")
    reposts = _Maker(originals, settings).reposts()
    if not reposts:
        edits = ", ".join(settings.edits)
        raise ValueError(f"no repost can be made: none of the edits ({edits}) can change any of the chosen articles")
    everything = [LabelledArticle(article, article.id) for article in originals] + reposts
    everything.sort(key=lambda labelled: _time(labelled.article))
    return with_overlaps(LabelledSet(name, everything, np.empty((0, 2), np.int64)))


class _Maker:
    """Makes the reposts of some articles.

    Args:
        originals: in order of time, two or more.
        settings: which articles are copied, how often, how and when.
    """

    def __init__(self, originals: Sequence[Article], settings: RepostSettings) -> None:
        self._originals = originals
        self._times = [_time(article) for article in originals]
        self._settings = settings
        self._edits = [edit for each in settings.edits for edit in parse_edit(each)]
        self._used = dict.fromkeys(self._edits, 0)
        self._normalise = Normaliser()
        self._names = {article.name for article in originals}

    def reposts(self) -> list[LabelledArticle]:
        """Return the reposts, cluster by cluster."""
        rng = self._generator("who")
        chosen = rng.sample(self._originals, max(1, round(self._settings.share * len(self._originals))))
        return [copy for original in chosen for copy in self._copies(original)]

    def _copies(self, original: Article) -> list[LabelledArticle]:
        """Return the copies of an article, and of its copies."""
        made: list[LabelledArticle] = []
        rng = self._generator(original.name)
        for _ in range(self._how_many(rng)):
            parent = rng.choice(made).article if made and rng.random() < self._settings.chain else original
            copy = self._copy(parent, original, rng)
            if copy:
                made.append(copy)
        return made

    def _how_many(self, rng: Random) -> int:
        count, most = 1, max(_LEAST_MOST, round(_MOST * self._settings.copies))
        while count < most and rng.random() < 1 - 1 / self._settings.copies:
            count += 1
        return count

    def _copy(self, parent: Article, original: Article, rng: Random) -> LabelledArticle | None:
        """Return a copy by the least used edit among those that can change the text; None if none can."""
        # A copy of a copy is made from what a page shows, not from the tags that an edit left in it.
        text = Text(parent.title, parent.body if parent is original else strip_html(parent.body))
        for edit in sorted(self._edits, key=lambda edit: (self._used[edit], rng.random())):
            copy = self._edited(text, edit, original, rng)
            if copy is not None:
                self._used[edit] += 1
                return self._labelled(copy, edit, parent, original, rng)
        return None

    def _edited(self, text: Text, edit: EditOf, original: Article, rng: Random) -> Text | None:
        if len(original.body) <= POST_CHARS and not edit.operator.posts:
            return None
        tries = _DONORS_TRIED if edit.operator.borrows else 1
        copies = (edit(text, rng, self._donor(original, rng)) for _ in range(tries))
        return next((copy for copy in copies if copy is not None and self._has_enough_text(copy, text)), None)

    def _has_enough_text(self, copy: Text, text: Text) -> bool:
        """Return whether a copy has enough text: an edit may keep a page's remnants and drop its only sentence."""
        copied, own = (sum(map(str.isalnum, self._normalise(each.body))) for each in (copy, text))
        return copied >= max(1, min(own, self._settings.least_chars))

    def _donor(self, original: Article, rng: Random) -> Text:
        """Return another article, an earlier one if there is any: only what exists can be borrowed from."""
        place = bisect_left(self._times, _time(original))
        donor = self._originals[rng.randrange(place)] if place else rng.choice(self._originals)
        return self._donor(original, rng) if donor is original else Text(donor.title, donor.body)

    def _labelled(self, copy: Text, edit: EditOf, parent: Article, original: Article, rng: Random) -> LabelledArticle:
        shortest, longest = self._settings.least_minutes, self._settings.most_minutes
        minutes: float = shortest * (longest / shortest) ** rng.random()
        article = replace(
            original,
            id=self._new_id(original),
            title=copy.title,
            body=copy.body,
            url="",
            source=f"site-{rng.randrange(_SITES):02d}",
            published_ms=_time(parent) + round(minutes * _MINUTES_MS),
            origin=None,
        )
        return LabelledArticle(article, original.id, parent.id, edit.operator.name, edit.strength)

    def _new_id(self, original: Article) -> str:
        number = 1
        while (name := f"{original.name}~{number}") in self._names:
            number += 1
        self._names.add(name)
        return id_of(name)

    def _generator(self, part: str) -> Random:
        """Return a generator for one part, so that the choices for an article do not depend on those for others."""
        return Random(f"{self._settings.seed}/{part}")  # noqa: S311  # repeatable, not secret


def _number(text: str, operator: Operator) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{operator.name} cannot have the strength {text!r}: {operator.allowed()}") from None


def _time(article: Article) -> int:
    return article.published_ms or 0


def _timed(articles: Sequence[Article]) -> list[Article]:
    """Give a time to the articles that have none: a minute after the previous one."""
    timed: list[Article] = []
    last = _FIRST_MS - _SPACING_MS
    for article in articles:
        last = last + _SPACING_MS if article.published_ms is None else article.published_ms
        timed.append(replace(article, published_ms=last))
    return timed
