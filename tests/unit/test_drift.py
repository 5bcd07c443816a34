"""Drift counts the fingerprint bits that the weights move in the newest articles, however batches are cut."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_dedup.arrays import U64
from stream_dedup.article import Article
from stream_dedup.fingerprint.drift import SAMPLE_ARTICLES, SAMPLE_WORDS, DriftSample
from stream_dedup.fingerprint.features import Features, Fingerprinter
from stream_dedup.settings import EngineSettings
from stream_dedup.text.idf import COUNT_DTYPE, DocumentCounts, Epoch
from stream_dedup.text.terms import Terms

_MANY = 100_000


def _epoch(number: int, counts: dict[int, int]) -> Epoch:
    """Return an epoch of many articles in which these word hashes have these counts."""
    live = DocumentCounts(1000)
    live.add(_MANY, np.array(list(counts.items()), COUNT_DTYPE))
    return live.freeze(number)


def _features(fingerprinter: Fingerprinter, bodies: list[str]) -> Features:
    return fingerprinter.features([Article(str(place), body) for place, body in enumerate(bodies)])


def _terms(*articles: list[int]) -> Terms:
    """Return terms that differ only in their hashes, so that their weights depend on idf alone."""
    hashes = [value for article in articles for value in article]
    alike = np.ones(len(hashes), np.int64)
    return Terms(
        np.cumsum([0, *map(len, articles)], dtype=np.int64),
        np.array(hashes, np.uint64),
        alike,
        alike,
        -alike,
        np.zeros(len(hashes), np.bool_),
    )


@pytest.fixture(scope="module")
def texts_of_300(fingerprinter: Fingerprinter, bodies: list[str]) -> tuple[Features, U64]:
    """Return the features and fingerprints of both halves of 150 texts."""
    halves = [half for body in bodies[:150] for half in (body[: len(body) // 2], body[len(body) // 2 :])]
    features = _features(fingerprinter, halves)
    return features, fingerprinter.fingerprints(features, Epoch())[0]


@pytest.fixture(scope="module")
def paper_fingerprinter() -> Fingerprinter:
    """Return a fingerprinter with the weights of the 2020 paper."""
    return Fingerprinter(EngineSettings.model_validate({"weights": {"profile": "paper2020"}}))


def _sampled(fingerprinter: Fingerprinter, features: Features, epoch: Epoch) -> DriftSample:
    fingerprints, _ = fingerprinter.fingerprints(features, epoch)
    return DriftSample().followed_by(features, fingerprints, np.arange(len(fingerprints)))


def test_bit_of_two_words_follows_the_rarer_one(fingerprinter: Fingerprinter) -> None:
    """Bit 0 is set in both words, bit 1 in only one: it flips when the other word becomes the rarer one.

    So the first article moves by 1 bit, and the second, which has only one word, by none.
    """
    features = replace(_features(fingerprinter, ["甲", "乙"]), terms=_terms([0b11, 0b01], [0b11]))
    before, after = _epoch(1, {0b01: _MANY // 2}), _epoch(2, {0b11: _MANY // 2})
    assert fingerprinter.fingerprints(features, before)[0].tolist() == [0b11, 0b11]
    drift = _sampled(fingerprinter, features, before).drift(fingerprinter, after)
    assert drift is not None
    assert (drift.epoch, drift.distances.tolist(), drift.mean, drift.most) == (2, [1, 0], 0.5, 1)


def test_equal_counts_move_nothing(fingerprinter: Fingerprinter, bodies: list[str]) -> None:
    """The same counts under another number are the same weights, so every distance is 0."""
    features = _features(fingerprinter, bodies[:50])
    sample = _sampled(fingerprinter, features, _epoch(3, {int(features.terms.hashes[0]): 7}))
    drift = sample.drift(fingerprinter, _epoch(4, {int(features.terms.hashes[0]): 7}))
    assert drift is not None
    assert drift.distances.tolist() == [0] * 50


def test_nothing_sampled_has_no_drift(fingerprinter: Fingerprinter) -> None:
    """Without articles there is no value, rather than a 0 that would look like a measurement."""
    assert DriftSample().drift(fingerprinter, Epoch()) is None


def test_texts_without_words_and_giants_are_left_out(fingerprinter: Fingerprinter) -> None:
    """An article without terms cannot move, and one with too many costs too much; one at the limit is used."""
    features = _features(fingerprinter, ["甲", "乙", "丙", "丁"])
    sizes = (0, SAMPLE_WORDS + 1, SAMPLE_WORDS, 3)
    terms = _terms(*(list(range(1, size + 1)) for size in sizes))
    sample = _sampled(fingerprinter, replace(features, terms=terms), Epoch())
    assert len(sample) == 2


@given(
    cuts=st.lists(st.integers(0, 300), max_size=6).map(sorted),
    unique=st.sets(st.integers(0, 299), min_size=1).map(sorted),
)
def test_sample_is_the_newest_articles_however_they_were_cut(
    fingerprinter: Fingerprinter, texts_of_300: tuple[Features, U64], cuts: list[int], unique: list[int]
) -> None:
    """However batches are cut, the distances are those of the newest unique articles, each computed alone."""
    features, fingerprints = texts_of_300
    sample = DriftSample()
    for start, stop in pairwise([0, *cuts, 300]):
        places = np.array([place - start for place in unique if start <= place < stop], np.int64)
        sample = sample.followed_by(features.part(start, stop), fingerprints[start:stop], places)
    newest = unique[-SAMPLE_ARTICLES:]
    after = _epoch(1, dict.fromkeys(features.terms.hashes[:40].tolist(), _MANY // 3))
    moved, _ = fingerprinter.fingerprints(features, after)
    drift = sample.drift(fingerprinter, after)
    assert drift is not None
    assert len(sample) == len(newest)
    assert drift.distances.tolist() == [(int(fingerprints[place]) ^ int(moved[place])).bit_count() for place in newest]


def test_titles_count_where_the_profile_weighs_them(paper_fingerprinter: Fingerprinter, bodies: list[str]) -> None:
    """With the 2020 paper's title factor, the sample's fingerprints include the titles."""
    articles = [Article(str(place), body, title=body[:12]) for place, body in enumerate(bodies[:40])]
    features = paper_fingerprinter.features(articles)
    before, after = Epoch(), _epoch(1, dict.fromkeys(features.terms.hashes[:200].tolist(), 9))
    fingerprints, _ = paper_fingerprinter.fingerprints(features, before)
    moved, _ = paper_fingerprinter.fingerprints(features, after)
    drift = DriftSample().followed_by(features, fingerprints, np.arange(0, 40, 2)).drift(paper_fingerprinter, after)
    assert drift is not None
    assert drift.distances.tolist() == np.bitwise_count(fingerprints ^ moved)[::2].tolist()
    assert drift.most > 0
