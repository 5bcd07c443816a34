"""Measures the two distributions of distances on a user's own articles, and how many of these are indexed.

Knows the engine and edited copies; knows nothing of plans.
"""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from stream_dedup.arrays import I64, U64
from stream_dedup.article import Article
from stream_dedup.compiled.kernel import kernel
from stream_dedup.counted import counted
from stream_dedup.decode import Decoder, UndecodableError
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.files.nothing_judged import no_articles
from stream_dedup.files.readers import FileFormatError, reader_for
from stream_dedup.files.run import check_files
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.fingerprint.simhash import BITS, popcount
from stream_dedup.planner.distances import FlipMixture, fitted
from stream_dedup.planner.edits import cut_copy, padded_copy
from stream_dedup.settings import EngineSettings, Settings, WindowSettings
from stream_dedup.text.idf import Epoch

_BATCH = 512
_LEAST = 100  # fewer articles say nothing about how similar unrelated ones are
_LEAST_INDEXED = 2  # a single one has no distances
_DONORS = 3  # other articles that a padded copy takes sentences from
_SEED = 1  # of the edits
# Copies whose original the engine has forgotten would count as unrelated articles.
_WITHOUT_END = WindowSettings(days=36_500)
_LEAST_CHARACTERS = 200  # shorter texts have too few sentences to meet the tolerance


@dataclass(frozen=True, slots=True)
class Copies:
    """Articles and one copy of each.

    Attributes:
        originals: fingerprints of the articles, shape (n,).
        fingerprints: fingerprints of the copies, shape (n,).
        sums: bit sums of the copies, shape (n, 64).
    """

    originals: U64
    fingerprints: U64
    sums: I64

    def distances(self) -> I64:
        """Return how many copies are at each Hamming distance, shape (65,)."""
        return np.bincount(np.bitwise_count(self.originals ^ self.fingerprints), minlength=BITS + 1)


@dataclass(frozen=True, slots=True)
class Sample:
    """What was measured on some articles.

    Attributes:
        articles: how many articles were read.
        indexed_share: share of them that the engine indexes.
        reserve_share: share of them whose entry it keeps in reserve.
        fingerprints: fingerprints of the indexed articles, shape (n,).
        copies: copies of those indexed articles that have enough sentences.
    """

    articles: int
    indexed_share: float
    reserve_share: float
    fingerprints: U64
    copies: Copies

    def copy_mixture(self) -> FlipMixture:
        """Return the flip probabilities between articles and their copies."""
        return fitted(self.copies.distances())

    def stranger_mixture(self) -> FlipMixture:
        """Return the flip probabilities between all pairs of the indexed articles."""
        return fitted(_pair_distances(self.fingerprints))


def measured_sample(path: Path, settings: Settings, similarity: float, most: int) -> Sample:
    """Measure the articles of a file: those that the engine indexes, and edited copies of them.

    Half of the copies have sentences removed, half have sentences of other articles added.

    Args:
        path: JSONL, CSV or Parquet file, as `stream-dedup dedup` reads them.
        settings: field names and fingerprint settings are used; articles are never too old.
        similarity: share of the longer of two texts, article or copy, that both have in common.
        most: largest number of articles to read.

    Raises:
        FileFormatError: the file is missing or cannot be read, has too few articles or only copies of one, or none of
            them can be cut or padded to the similarity.
    """
    check_files([path])
    articles = list(islice(_articles(path, settings), most))
    if not articles:
        raise no_articles(path, settings.input)
    if len(articles) < _LEAST:
        raise FileFormatError(
            f"{path}: a sample of {counted(len(articles), 'article')} is too small: it needs at least {_LEAST}"
        )
    with Deduplicator(settings=settings.model_copy(update={"window": _WITHOUT_END})) as engine:
        decisions = [decision for batch in _batches(articles) for decision in engine.process(batch).decisions]
        epoch, entries = engine.epoch, engine.progress.entries
    indexed = [decision.article for decision in decisions if decision.unique and decision.link is None]
    if len(indexed) < _LEAST_INDEXED:
        raise FileFormatError(
            f"{path}: no two of {len(articles)} articles are unrelated: a sample needs unrelated ones"
        )
    in_index = sum(decision.indexed for decision in decisions)
    fingerprints, _ = _fingerprints(indexed, settings, epoch)
    chance = random.Random(_SEED)  # noqa: S311  # the same copies in every run
    copied, copies = _copies([article.body for article in indexed], similarity, chance)
    if not copied:
        raise FileFormatError(
            f"{path}: no article can be cut or padded by whole sentences to a similarity of {similarity:g}: give a "
            "sample with longer articles, or another similarity"
        )
    return Sample(
        len(articles),
        in_index / len(articles),
        (entries - in_index) / len(articles),
        fingerprints,
        Copies(fingerprints[copied], *_fingerprints(copies, settings, epoch)),
    )


def _articles(path: Path, settings: Settings) -> Iterator[Article]:
    decoder, now_ms = Decoder(settings.input), time.time_ns() // 1_000_000
    for record, _ in reader_for(path, {settings.input.fields.deleted})(path):
        with suppress(UndecodableError):
            item = decoder.decode(record.value, now_ms)
            if isinstance(item, Article):
                yield item


def _batches(articles: Sequence[Article]) -> Iterator[Sequence[Article]]:
    for first in range(0, len(articles), _BATCH):
        yield articles[first : first + _BATCH]


def _copies(texts: Sequence[str], similarity: float, chance: random.Random) -> tuple[list[int], list[Article]]:
    """Return the indices of the texts that have a copy, and the copies."""
    copied, copies = [], []
    for place, text in enumerate(texts):
        if len(text) < _LEAST_CHARACTERS:
            continue
        others = [texts[chance.randrange(len(texts))] for _ in range(_DONORS)]
        copy = padded_copy(text, similarity, others, chance) if place % 2 else cut_copy(text, similarity, chance)
        if copy is not None:
            copied.append(place)
            copies.append(Article(f"copy-{place}", copy))
    return copied, copies


def _fingerprints(articles: Sequence[Article], settings: EngineSettings, epoch: Epoch) -> tuple[U64, I64]:
    fingerprinter = Fingerprinter(settings)
    parts = [fingerprinter.fingerprints(fingerprinter.features(batch), epoch) for batch in _batches(articles)]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


@kernel
def _pair_distances(fingerprints: U64) -> I64:
    """Return how many pairs of distinct articles are at each Hamming distance, shape (65,)."""
    counts = np.zeros(BITS + 1, np.int64)
    for i in range(len(fingerprints)):
        for j in range(i):
            counts[popcount(fingerprints[i] ^ fingerprints[j])] += 1
    return counts
