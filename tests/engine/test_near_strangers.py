"""Tables are looked up and near fingerprints compared only where landmarks leave a copy open, however batched.

Knows the Deduplicator; knows nothing of how lists are stored.
"""

from collections.abc import Sequence
from functools import cache
from random import Random

import numpy as np
import pytest

from stream_dedup import Article, Decision, Deduplicator, EngineSettings, Source
from stream_dedup.arrays import Bool
from stream_dedup.engine.judged import Judged
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.index.lookup import candidates
from stream_dedup.index.lookup.candidates import SIMHASH
from stream_dedup.index.lookup.entries_to_read import Marks, sharing_enough
from tests.engine.samples import FORECAST, WIDE, bodies, settings

# Tables in which every article finds every other.
_ALL_NEAR = {**WIDE, "prefix_bits": 8, "probes": 256, "max_distance": 32, "bucket_cap": 1024}
_CUT = 40  # bulletins between one and its copy


@cache
def _flood() -> tuple[Article, ...]:
    """Return bulletins of one template, none a copy of another, with copies of older ones and articles between."""
    rng = Random(5)
    bulletins = [FORECAST.format(*(rng.randrange(10_000) for _ in range(5))) for _ in range(120)]
    stream: list[Article] = []
    for place, bulletin in enumerate(bulletins):
        stream.append(Article(f"bulletin-{place}", bulletin))
        if place % 3 == 0:
            stream.append(Article(f"article-{place}", bodies()[place // 3]))
        if place >= _CUT and place % 5 == 0:
            stream.append(Article(f"copy-{place - _CUT}", bulletins[place - _CUT].replace("携带雨具", "带好雨伞")))
    return tuple(stream)


def _judged(engine_settings: EngineSettings, articles: Sequence[Article], size: int) -> list[Judged]:
    """Return the outcome of each batch of a size."""
    with Deduplicator(settings=engine_settings) as engine:
        return [engine.process(articles[start : start + size]) for start in range(0, len(articles), size)]


def _told(judged: Sequence[Judged]) -> tuple[list[Decision], int]:
    """Return the decisions, and how many candidates of the tables were compared."""
    return [item for one in judged for item in one.decisions], sum(int(one.tally.candidates[SIMHASH]) for one in judged)


def _outcome(engine_settings: EngineSettings, articles: Sequence[Article], size: int) -> tuple[list[Decision], int]:
    return _told(_judged(engine_settings, articles, size))


def test_strangers_with_near_fingerprints_are_not_compared() -> None:
    """Of articles without a common landmark, none is compared; without landmarks, nearly each pair is."""
    strangers = [Article(str(place), body) for place, body in enumerate(bodies()[:60])]
    _, apart = _outcome(settings(landmarks={"enabled": False}, simhash=_ALL_NEAR), strangers, 20)
    assert apart > 60 * 59 / 2 * 0.3
    assert _outcome(settings(simhash=_ALL_NEAR), strangers, 20)[1] == 0


def test_tables_find_what_full_lists_hide() -> None:
    """A text all of whose landmarks newer articles have too is found in the tables, if its fingerprint is near."""
    # Long enough that its landmarks, one for every 24 n-grams, are also landmarks of texts that quote more than half.
    text = "".join(bodies()[:8])
    parts = [text[: len(text) * 2 // 3], text[len(text) // 3 :]] * 3
    quoting = [part + other for part, other in zip(parts, bodies()[8:14], strict=True)]
    stream = [*map(Article, "0123456", [text, *quoting]), Article("copy", text + "本文略有改动")]
    # As if they were no copies, so that all of them are indexed.
    capped = settings(landmarks={"cap": 2}, simhash=_ALL_NEAR, verify={"duplicates": []})
    link = _outcome(capped, stream, 1)[0][-1].link
    assert link is not None
    assert (link.matched, link.source) == ("0", Source.SIMHASH)


@pytest.mark.parametrize("cap", [1, 2, 5, 20, 64])
def test_batches_do_not_matter(cap: int) -> None:
    """The same candidates are compared, and decisions made, whether they come in a batch with an article or before."""
    capped = settings(landmarks={"cap": cap}, simhash=_ALL_NEAR)
    one_by_one = _outcome(capped, _flood(), 1)
    assert one_by_one[1] > 0
    for size in (3, 17, 500):
        assert _outcome(capped, _flood(), size) == one_by_one


def _sharing(landmarks: int, text: str, other: str) -> str:
    """Return the other text with so much of the text before it that both have so many landmarks in common."""
    fingerprinter = Fingerprinter(settings())
    for length in range(len(text)):
        longer = text[:length] + other
        marks, others = fingerprinter.features([Article("1", text), Article("2", longer)]).sketches.landmarks
        if len(set(marks[marks > 0].tolist()) & set(others.tolist())) == landmarks:
            return longer
    raise ValueError("there is no such text")


@pytest.mark.parametrize(("shared", "asking"), [(0, 0), (4, 1), (12, 0)])
def test_what_articles_of_a_batch_share_may_leave_the_tables_open(shared: int, asking: int) -> None:
    """The shorter one is looked up if both have 4 landmarks in common: too few for copies, but enough to be near."""
    text, other = "".join(bodies()[:3])[:900], "".join(bodies()[3:6])[:900]
    articles = [Article("1", text), Article("2", _sharing(shared, text, other))]
    probes = _ALL_NEAR["tables"] * _ALL_NEAR["probes"]
    (judged,) = _judged(settings(simhash=_ALL_NEAR), articles, 2)
    assert judged.tally.probes == asking * probes


def _leaving_all_open(marks: Marks) -> tuple[Bool, Bool]:
    wanted, _ = sharing_enough(marks)
    return wanted, np.ones(len(marks.sizes), np.bool_)


@pytest.mark.parametrize("cap", [1, 2, 5, 20, 64])
@pytest.mark.parametrize("size", [1, 17, 500])
def test_looking_all_articles_up_in_the_tables_brings_nothing_more(
    cap: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The articles that are not looked up there would find nothing there that counts."""
    capped = settings(landmarks={"cap": cap}, simhash=_ALL_NEAR)
    judged = _judged(capped, _flood(), size)
    monkeypatch.setattr(candidates, "sharing_enough", _leaving_all_open)
    with_all = _judged(capped, _flood(), size)
    assert _told(with_all) == _told(judged)
    assert 0 < sum(one.tally.probes for one in judged) < sum(one.tally.probes for one in with_all)
