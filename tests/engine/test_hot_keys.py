"""The posting lists under a flood of one template: candidates are bounded, and hot keys are counted.

Knows the Deduplicator and which keys its texts have; knows nothing of how lists are stored.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from random import Random

import numpy as np
import pytest

from deploy.demo.samples.bulletins import bulletins
from stream_dedup import Article, Deduplicator, EngineSettings
from stream_dedup.engine.judged import Judged
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.index.lookup.candidates import CONTENT, LANDMARK, SIMHASH
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.text.idf import Epoch
from tests.engine.samples import FORECAST, WIDE, settings

_CAP = 4
_LANDMARKS_ONLY = settings(landmarks={"cap": _CAP}, simhash={"enabled": False})
_SIMHASH_ONLY = settings(
    landmarks={"enabled": False}, simhash={**WIDE, "bucket_cap": _CAP, "probes": 1, "prefix_bits": 8}
)


@cache
def _flood() -> tuple[Article, ...]:
    """Return bulletins of one template: they share most of their text, but none is a copy of another."""
    rng = Random(5)
    numbers = ([rng.randrange(10_000) for _ in range(5)] for _ in range(100))
    return tuple(Article(str(place), FORECAST.format(*values)) for place, values in enumerate(numbers))


def _judged(engine_settings: EngineSettings, size: int) -> list[Judged]:
    with Deduplicator(settings=engine_settings) as engine:
        return [engine.process(_flood()[start : start + size]) for start in range(0, len(_flood()), size)]


def _sum(judged: Iterable[Judged]) -> list[int]:
    return [int(total) for total in np.sum([one.tally.hot_keys for one in judged], axis=0)]


def _landmarks() -> list[list[int]]:
    features = Fingerprinter(_LANDMARKS_ONLY).features(_flood())
    return [[mark for mark in marks if mark] for marks in features.sketches.landmarks.tolist()]


def _prefixes() -> list[list[tuple[int, int]]]:
    fingerprinter, plan = Fingerprinter(_SIMHASH_ONLY), _SIMHASH_ONLY.simhash
    fingerprints, _ = fingerprinter.fingerprints(fingerprinter.features(_flood()), Epoch())
    keys = TablePlan(plan.tables, plan.prefix_bits).prefixes(fingerprints)
    return [list(enumerate(row)) for row in keys.tolist()]


def _met(keys: Sequence[Sequence[object]]) -> list[list[int]]:
    """Return, for each article and each of its keys, how many earlier articles have that key, up to the cap."""
    held: defaultdict[object, int] = defaultdict(int)
    met = []
    for own in keys:
        met.append([min(_CAP, held[key]) for key in own])
        for key in own:
            held[key] += 1
    return met


@pytest.mark.parametrize("size", [1, 7, 60])
def test_hot_landmarks_are_those_that_enough_articles_had_before(size: int) -> None:
    """In batches of any size, each lookup of a landmark that `landmarks.cap` earlier articles have counts once."""
    met, judged = _met(_landmarks()), _judged(_LANDMARKS_ONLY, size)
    hot = sum(count == _CAP for row in met for count in row)
    assert hot > 100
    assert _sum(judged)[LANDMARK] == hot
    assert _sum(judged)[SIMHASH] == 0
    assert max(int(one.tally.longest_lists[LANDMARK]) for one in judged) == _CAP


@pytest.mark.parametrize("size", [1, 7, 60])
def test_hot_buckets_are_those_that_enough_articles_had_before(size: int) -> None:
    """The same holds for the exact keys of the SimHash tables and `simhash.bucket_cap`."""
    met, judged = _met(_prefixes()), _judged(_SIMHASH_ONLY, size)
    hot = sum(count == _CAP for row in met for count in row)
    assert hot > 0
    assert _sum(judged)[SIMHASH] == hot
    assert _sum(judged)[LANDMARK] == 0


@pytest.mark.parametrize("size", [1, 7, 100])
def test_longest_list_is_that_of_the_fullest_key(size: int) -> None:
    """For each batch, the number of articles under the fullest landmark of any of them, up to the cap."""
    longest = [int(one.tally.longest_lists[LANDMARK]) for one in _judged(_LANDMARKS_ONLY, size)]
    fullest = [max(row) for row in _met(_landmarks())]
    assert longest == [max(fullest[start : start + size]) for start in range(0, len(fullest), size)]
    assert fullest[:3] == [0, 1, 2]


@pytest.mark.parametrize(("engine_settings", "keys"), [(_LANDMARKS_ONLY, LANDMARK), (_SIMHASH_ONLY, SIMHASH)])
def test_candidates_of_a_flood_are_bounded(engine_settings: EngineSettings, keys: int) -> None:
    """However many bulletins there are, each is compared with at most the cap for each of its keys."""
    most = [len(own) * _CAP for own in (_landmarks() if keys == LANDMARK else _prefixes())]
    found = [int(one.tally.candidates[keys]) for one in _judged(engine_settings, 1)]
    assert all(count <= bound for count, bound in zip(found, most, strict=True))
    assert max(found) >= _CAP
    assert max(most) < len(_flood())


def test_exact_copies_fill_the_only_place_of_their_content() -> None:
    """A content key has room for one article, so copies have one candidate each, however many there are."""
    body = _flood()[0].body
    with Deduplicator(settings=settings()) as engine:
        judged = [engine.process([Article(str(place), body)]) for place in range(10)]
    assert [int(one.tally.candidates[CONTENT]) for one in judged] == [0] + [1] * 9


def test_ordinary_articles_meet_no_full_list() -> None:
    """Without a flood no key is hot: twenty bulletins of various templates stay far below the default caps."""
    with Deduplicator(settings=settings()) as engine:
        texts = bulletins(Random(1))[:20]
        judged = engine.process([Article(text.id, text.body) for text in texts])
    assert judged.tally.hot_keys[[LANDMARK, SIMHASH]].tolist() == [0, 0]
