"""Measures how far fingerprints move when the weights change, on the newest articles that were counted.

Knows words, weights and Hamming distances; knows nothing of when an epoch ends or who reads the result.
"""

from dataclasses import dataclass

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.text.idf import Epoch
from stream_dedup.text.terms import Terms, joined_terms

SAMPLE_ARTICLES = 128  # gives the mean to within 1/11 of the standard deviation, and takes 4 to 7 ms per epoch
SAMPLE_WORDS = 1024  # most distinct words of a sampled article: a sample takes 2 MB for news, 5 MB at worst


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the fingerprints of a sample moved when an epoch began.

    Attributes:
        epoch: number of the epoch that began.
        distances: Hamming distance between the fingerprints with the previous epoch's weights and with this one's,
            bits, shape (n,).
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
    """Articles of one batch: their fingerprints and the terms these were computed from."""

    fingerprints: U64
    terms: Terms
    titles: Terms | None

    def newest(self) -> "_Part":
        """Return the last `SAMPLE_ARTICLES` articles."""
        n = len(self.fingerprints)
        first = max(0, n - SAMPLE_ARTICLES)
        titles = self.titles.part(first, n) if self.titles is not None else None
        return _Part(self.fingerprints[first:], self.terms.part(first, n), titles)


@dataclass(frozen=True, slots=True)
class DriftSample:
    """The newest `SAMPLE_ARTICLES` articles of an epoch, all fingerprinted with its weights.

    Which articles it holds does not depend on how the stream is batched. Articles without words are left out because
    their fingerprint is meaningless, those with more than `SAMPLE_WORDS` distinct words because they cost too much.
    """

    parts: tuple[_Part, ...] = ()

    def __len__(self) -> int:
        return min(SAMPLE_ARTICLES, sum(len(part.fingerprints) for part in self.parts))

    def followed_by(self, features: Features, fingerprints: U64, articles: I64) -> "DriftSample":
        """Return the sample updated with newer articles.

        Args:
            features: features of a batch of n articles.
            fingerprints: their fingerprints with the epoch's weights, shape (n,).
            articles: indices of the counted articles in the batch, ascending, shape (m,).
        """
        words = np.diff(features.terms.offsets)[articles]
        places = articles[(words > 0) & (words <= SAMPLE_WORDS)][-SAMPLE_ARTICLES:]
        if not len(places):
            return self
        titles = features.titles.only(places) if features.titles is not None else None
        return DriftSample(_newest((*self.parts, _Part(fingerprints[places], features.terms.only(places), titles))))

    def drift(self, fingerprinter: Fingerprinter, epoch: Epoch) -> Drift | None:
        """Return how far the fingerprints move with the weights of another epoch; None if the sample is empty."""
        if not self.parts:
            return None
        sample = _joined(self.parts).newest()
        moved, _ = fingerprinter.weighted(sample.terms, sample.titles, epoch)
        return Drift(epoch.number, np.bitwise_count(sample.fingerprints ^ moved).astype(np.int64))


def _newest(parts: tuple[_Part, ...]) -> tuple[_Part, ...]:
    """Drop the oldest parts as long as the remaining ones fill the sample."""
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
