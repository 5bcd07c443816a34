"""How far fingerprints move when the weights change: measured on the newest articles that were counted.

Knows words, weights and Hamming distances; knows nothing of when an epoch ends or who is told.
"""

from dataclasses import dataclass

import numpy as np

from stream_dedup.compiled.hashing import I64, U64
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.text.idf import Epoch
from stream_dedup.text.terms import Terms, joined_terms

SAMPLE_ARTICLES = 128  # the mean is then known to an eleventh of the standard deviation, for 4 to 7 ms an epoch
SAMPLE_WORDS = 1024  # distinct words of an article, at most: so a sample has 5 MB at worst, 2 MB of news


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the fingerprints of a sample moved at the beginning of an epoch.

    Attributes:
        epoch: number of the epoch that began.
        distances: Hamming distance between the fingerprint of the epoch before and that of this one, bits, shape (n,).
    """

    epoch: int
    distances: I64

    @property
    def mean(self) -> float:
        """Mean distance, bits."""
        return float(self.distances.mean())

    @property
    def most(self) -> int:
        """Largest distance, bits."""
        return int(self.distances.max())


@dataclass(frozen=True, slots=True)
class _Part:
    """Articles of one batch: their fingerprints and what these were made from."""

    fingerprints: U64
    terms: Terms
    titles: Terms | None

    def last(self, count: int) -> "_Part":
        n = len(self.fingerprints)
        first = max(0, n - count)
        titles = self.titles.part(first, n) if self.titles is not None else None
        return _Part(self.fingerprints[first:], self.terms.part(first, n), titles)


@dataclass(frozen=True, slots=True)
class DriftSample:
    """The newest articles of an epoch, `SAMPLE_ARTICLES` of them, whose fingerprints all have its weights.

    Which articles it holds does not depend on batches. Articles without a word have no fingerprint to speak of, those
    of more than `SAMPLE_WORDS` distinct words would cost too much: both are left out.
    """

    parts: tuple[_Part, ...] = ()

    def __len__(self) -> int:
        return min(SAMPLE_ARTICLES, sum(len(part.fingerprints) for part in self.parts))

    def followed_by(self, features: Features, fingerprints: U64, articles: I64) -> "DriftSample":
        """Return the sample with newer articles.

        Args:
            features: of a batch of n.
            fingerprints: of the batch, with the weights of the epoch, shape (n,).
            articles: places of the articles in the batch, ascending, shape (m,).
        """
        words = np.diff(features.terms.offsets)[articles]
        places = articles[(words > 0) & (words <= SAMPLE_WORDS)][-SAMPLE_ARTICLES:]
        if not len(places):
            return self
        titles = features.titles.only(places) if features.titles is not None else None
        return DriftSample(_newest((*self.parts, _Part(fingerprints[places], features.terms.only(places), titles))))

    def drift(self, fingerprinter: Fingerprinter, epoch: Epoch) -> Drift | None:
        """Return how far the fingerprints move with the weights of another epoch; None if there are none."""
        if not self.parts:
            return None
        sample = _joined(self.parts).last(SAMPLE_ARTICLES)
        moved, _ = fingerprinter.weighted(sample.terms, sample.titles, epoch)
        return Drift(epoch.number, np.bitwise_count(sample.fingerprints ^ moved).astype(np.int64))


def _newest(parts: tuple[_Part, ...]) -> tuple[_Part, ...]:
    """Leave out the oldest parts as long as the others fill the sample."""
    spare = sum(len(part.fingerprints) for part in parts) - SAMPLE_ARTICLES
    first = 0
    while len(parts[first].fingerprints) <= spare:
        spare -= len(parts[first].fingerprints)
        first += 1
    return parts[first:]


def _joined(parts: tuple[_Part, ...]) -> _Part:
    titles = [part.titles for part in parts if part.titles is not None]
    return _Part(
        np.concatenate([part.fingerprints for part in parts]),
        joined_terms([part.terms for part in parts]),
        joined_terms(titles) if titles else None,
    )
