"""Turns articles into features: everything about their texts that is used to find and verify candidates.

Knows how raw text becomes terms, sketches and fingerprints; knows nothing of other articles.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stream_dedup.arrays import I64, U64, Bool
from stream_dedup.article import Article
from stream_dedup.fingerprint.content_hashes import content_hashes
from stream_dedup.fingerprint.particulars import SmallSketches, particulars
from stream_dedup.fingerprint.simhash import simhash
from stream_dedup.fingerprint.sketch import LandmarkRule, Sketches, sketch
from stream_dedup.settings import EngineSettings
from stream_dedup.text.content import ContentFilter, Contents
from stream_dedup.text.idf import Epoch
from stream_dedup.text.lexicon import build_lexicon, read_words, shipped_list
from stream_dedup.text.lines import NOTHING_LEARNT, EndLines, remove_site_lines, site_number
from stream_dedup.text.normal import Normaliser, word_table
from stream_dedup.text.segment import segmenter
from stream_dedup.text.terms import Terms, extract_terms, joined_terms
from stream_dedup.text.texts import Texts
from stream_dedup.text.user_words import UserWord, read_user_dictionary
from stream_dedup.text.weights import Profile, profile_of, weigh


class Fingerprints(NamedTuple):
    """Fingerprints of the first k articles of a batch; those of articles that are not segmented are 0.

    Attributes:
        epoch: the epoch whose weights were used.
        values: the fingerprints, shape (k,).
        sums: bit sums, shape (k, 64).
    """

    epoch: Epoch
    values: U64
    sums: I64

    @classmethod
    def joined(cls, batches: Sequence["Features"]) -> "Fingerprints | None":
        """Return those of several batches as one, up to the first that is missing or has other weights; None if none.

        Args:
            batches: features of the batches.
        """
        known: list[Fingerprints] = []
        for batch in batches:
            own = batch.fingerprints
            if own is None or (known and own.epoch is not known[0].epoch):
                break
            known.append(own)
            if len(own.values) < len(batch.cut):
                break
        if not known:
            return None
        return cls(
            known[0].epoch,
            np.concatenate([part.values for part in known]),
            np.concatenate([part.sums for part in known]),
        )

    def part(self, start: int, stop: int) -> "Fingerprints":
        """Return those of the articles from `start` up to, but not including, `stop`."""
        return Fingerprints(self.epoch, self.values[start:stop], self.sums[start:stop])

    def mixed(self, kept: Bool, values: U64, sums: I64) -> "Fingerprints":
        """Return these for the articles in `kept`, shape (k,), and the other ones for the rest.

        Args:
            kept: for which articles these remain.
            values: shape (k,).
            sums: shape (k, 64).
        """
        return Fingerprints(
            self.epoch, np.where(kept, self.values, values), np.where(kept[:, np.newaxis], self.sums, sums)
        )


@dataclass(frozen=True, slots=True)
class Features:
    """Features of a batch of n articles.

    Attributes:
        cut: which articles are segmented into words, shape (n,).
        terms: terms of the bodies' content; an article that is not segmented has none.
        titles: terms of the titles, likewise; None if the profile has no title factor.
        sketches: sketches of the n-grams of the bodies' content; the content hash covers the whole body.
        numbers: sketches of the numbers in the content.
        places: sketches of the place names in the content.
        only_boilerplate: which bodies consist only of lines that sites put around articles, shape (n,).
        lines: lines at the ends of the bodies' content, including those that were removed.
        texts: content of the bodies, n of them.
        title_texts: the titles; None if the profile has no title factor.
        fingerprints: those of the first articles, as many as were computed in advance with the weights of some epoch.
    """

    cut: Bool
    terms: Terms
    titles: Terms | None
    sketches: Sketches
    numbers: SmallSketches
    places: SmallSketches
    only_boilerplate: Bool
    lines: EndLines
    texts: Texts
    title_texts: Texts | None
    fingerprints: Fingerprints | None = None

    @classmethod
    def joined(cls, parts: Sequence["Features"]) -> "Features":
        """Return the features of several batches, at least one, as one."""
        if len(parts) == 1:
            return parts[0]
        titled = parts[0].titles is not None
        return cls(
            np.concatenate([part.cut for part in parts]),
            joined_terms([part.terms for part in parts]),
            joined_terms([part.titles for part in parts if part.titles is not None]) if titled else None,
            Sketches(*map(np.concatenate, zip(*(part.sketches for part in parts), strict=True))),
            SmallSketches(*map(np.concatenate, zip(*(part.numbers for part in parts), strict=True))),
            SmallSketches(*map(np.concatenate, zip(*(part.places for part in parts), strict=True))),
            np.concatenate([part.only_boilerplate for part in parts]),
            EndLines.of_batches([part.lines for part in parts]),
            Texts.of_batches([part.texts for part in parts]),
            Texts.of_batches([part.title_texts for part in parts if part.title_texts is not None]) if titled else None,
            Fingerprints.joined(parts),
        )

    def part(self, start: int, stop: int) -> "Features":
        """Return the features of the articles from `start` up to, but not including, `stop`."""
        return Features(
            self.cut[start:stop],
            self.terms.part(start, stop),
            self.titles.part(start, stop) if self.titles is not None else None,
            self.sketches.part(start, stop),
            self.numbers.part(start, stop),
            self.places.part(start, stop),
            self.only_boilerplate[start:stop],
            self.lines.part(start, stop),
            self.texts.part(start, stop),
            self.title_texts.part(start, stop) if self.title_texts is not None else None,
            self.fingerprints.part(start, stop) if self.fingerprints is not None else None,
        )


class Fingerprinter:
    """Computes features and fingerprints. Holds the dictionaries; has no mutable state.

    Args:
        settings: engine settings: text, weights, sketch and landmarks are used.

    Raises:
        OSError: a word list cannot be read.
        ValueError: a line of the user dictionary has the wrong form.
    """

    def __init__(self, settings: EngineSettings) -> None:
        text = settings.text
        self._sketch = settings.sketch
        self._landmarks = landmark_rule(settings)
        self._normal = Normaliser(simplify=text.simplify, strip_html=text.strip_html)
        self._content: Callable[[Texts], Contents] = _whole
        if text.strip_boilerplate:
            phrases = read_words(text.boilerplate or shipped_list("boilerplate.txt"))
            self._content = ContentFilter(phrases, self._normal)
        self._learns = text.learn_lines
        user_words = self._user_words(text.user_dictionary)
        self._cut = segmenter(text.segmenter, user_words, hmm=text.hmm)
        self.profile: Profile = profile_of(settings.weights)
        self.lexicon = build_lexicon(
            user_words,
            read_words(text.stop_words or shipped_list("stop_words.txt")),
            read_words(text.marker_words or shipped_list("marker_words.txt")),
            simplify=text.simplify,
        )

    def words(self, text: str) -> list[str]:
        """Return the words of a text's content, including punctuation."""
        return self._cut(self._content(self._normal.all([text])).texts).of(0)

    def features(self, articles: Sequence[Article], learnt: U64 = NOTHING_LEARNT) -> Features:
        """Return the features of a batch.

        Args:
            articles: the batch.
            learnt: lines learnt to be their site's: not content at the ends of its articles, see `LineCounts`.
        """
        return self.segmented(self.unsegmented(articles, learnt), np.ones(len(articles), np.bool_))

    def segmented(self, features: Features, wanted: Bool) -> Features:
        """Return the features with terms for exactly the `wanted` articles, shape (n,).

        Articles that are already segmented are not segmented again.
        """
        if np.array_equal(wanted, features.cut):
            return features
        kept, missing = wanted & features.cut, wanted & ~features.cut
        terms, titles = self._terms(features.texts.only(missing)), None
        if features.title_texts is not None:
            titles = self._terms(features.title_texts.only(missing))
        known = features.fingerprints
        return replace(
            features,
            cut=wanted,
            terms=features.terms.mixed(kept, terms),
            titles=features.titles.mixed(kept, titles) if features.titles is not None and titles is not None else None,
            fingerprints=self._mixed(known, kept, terms, titles) if known is not None else None,
        )

    def unsegmented(self, articles: Sequence[Article], learnt: U64 = NOTHING_LEARNT) -> Features:
        """Return the features of a batch without its terms; see `features`."""
        bodies = self._normal.all([article.body for article in articles])
        titles = self._normal.all([article.title for article in articles]) if self.profile.title else None
        contents, lines = self._peeled(self._content(bodies), articles, learnt)
        return Features(
            np.zeros(len(articles), np.bool_),
            Terms.none(len(articles)),
            Terms.none(len(articles)) if titles is not None else None,
            self._sketches(contents.texts, bodies, articles),
            *particulars(contents.texts, self._sketch.numbers, self._sketch.places),
            contents.only_boilerplate,
            lines,
            contents.texts,
            titles,
        )

    def fingerprinted(self, features: Features, epoch: Epoch) -> Features:
        """Return the features with fingerprints, so that asking for those of the same epoch later takes no time."""
        return replace(features, fingerprints=Fingerprints(epoch, *self.fingerprints(features, epoch)))

    def fingerprints(self, features: Features, epoch: Epoch) -> tuple[U64, I64]:
        """Return fingerprints, shape (n,), and bit sums, shape (n, 64), with the weights of an epoch."""
        known, articles = features.fingerprints, len(features.cut)
        if known is None or known.epoch is not epoch:
            return self.weighted(features.terms, features.titles, epoch)
        if (first := len(known.values)) == articles:
            return known.values, known.sums
        titles = features.titles.part(first, articles) if features.titles is not None else None
        values, sums = self.weighted(features.terms.part(first, articles), titles, epoch)
        return np.concatenate([known.values, values]), np.concatenate([known.sums, sums])

    def weighted(self, terms: Terms, titles: Terms | None, epoch: Epoch) -> tuple[U64, I64]:
        """Return the same from terms alone: those of the bodies, and those of the titles as in `Features.titles`."""
        return simhash(terms.offsets, terms.hashes, weigh(terms, titles, self.lexicon, epoch, self.profile))

    def _mixed(self, known: Fingerprints, kept: Bool, terms: Terms, titles: Terms | None) -> Fingerprints:
        """Return the known fingerprints of the articles in `kept`, shape (n,), and those of the terms of the rest."""
        count = len(known.values)
        own = titles.part(0, count) if titles is not None else None
        return known.mixed(kept[:count], *self.weighted(terms.part(0, count), own, known.epoch))

    def _peeled(self, contents: Contents, articles: Sequence[Article], learnt: U64) -> tuple[Contents, EndLines]:
        """Return the contents without the lines learnt to be their sites', and the lines at their ends."""
        if not self._learns:
            return contents, EndLines.none(len(articles))
        sites = [site_number(article.site, article.scope) for article in articles]
        return remove_site_lines(contents, np.array(sites, np.uint64), learnt)

    def _user_words(self, dictionary: Path | None) -> tuple[UserWord, ...]:
        """Return the user's words normalised, as the segmenter sees them."""
        words = read_user_dictionary(dictionary) if dictionary else []
        return tuple(UserWord(self._normal(entry.word), entry.frequency, entry.tag) for entry in words)

    def _terms(self, texts: Texts) -> Terms:
        return extract_terms(self._cut(texts), self.lexicon)

    def _sketches(self, texts: Texts, bodies: Texts, articles: Sequence[Article]) -> Sketches:
        """Return the sketches of contents, with the content hashes of the whole bodies."""
        characters, content = texts.kept(word_table()), content_hashes(bodies, [article.body for article in articles])
        gram, size = self._sketch.gram, self._sketch.size
        return sketch(characters.points, characters.offsets, gram, size, self._landmarks, content)


def _whole(texts: Texts) -> Contents:
    return Contents(texts, np.zeros(len(texts), np.bool_))


def landmark_rule(settings: EngineSettings) -> LandmarkRule:
    """Return the rule for how many landmarks a text has."""
    marks = settings.landmarks
    return LandmarkRule(marks.keys, marks.spacing, min(marks.most_keys, settings.sketch.size))
