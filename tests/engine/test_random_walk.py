"""Random streams of articles, revisions, redeliveries and withdrawals, compared with the plain model.

Knows outcomes, clusters and successions; knows nothing of how the state is kept.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from stream_dedup import Deduplicator, EngineSettings
from tests.engine.model import (
    BASES,
    BEGIN,
    CUTS,
    DAY,
    VARIANTS,
    Item,
    Seen,
    article,
    engine_settings,
    parts,
    seen,
    told,
)
from tests.engine.samples import LIGHT
from tests.engine.scoped import Scopes, scoped_streams

_POLICIES: list[dict[str, Any]] = [
    {"canonical": "first_seen"},
    {"canonical": "first_published"},
    {"canonical": "longest"},
    {"canonical": "preferred_source", "preferred_sources": ["乙报", "甲报"]},
]
_GIVEN = hypothesis_settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
_SETTINGS = st.builds(
    lambda late, policy, variants, revisions: engine_settings(
        2, late, **policy, variants=variants, revisions=revisions
    ),
    st.sampled_from(["judge", "dead"]),
    st.sampled_from(_POLICIES),
    st.sampled_from([2, 3, 8]),
    st.booleans(),
)


def _expected(stream: list[Item], settings: EngineSettings) -> tuple[list[Seen], Scopes]:
    model = Scopes(settings)
    return [model.feed(item) for item in stream], model


@pytest.mark.parametrize("variant", range(VARIANTS))
def test_model_and_engine_agree_on_pairs(variant: int) -> None:
    """Model and engine agree on every pair of texts: those that streams are made of are clear of the thresholds."""
    landmarks_alone = LIGHT.model_validate({**LIGHT.model_dump(), "simhash": {"enabled": False}})
    for base in range(BASES):
        for other in range(BASES * VARIANTS):
            pair = [article("one", base, variant), article("other", *divmod(other, VARIANTS))]
            expected, _ = _expected([*pair], LIGHT)
            for settings in (LIGHT, landmarks_alone):
                with Deduplicator(settings=settings) as engine:
                    assert [seen(outcome) for outcome in engine.process(pair).outcomes] == expected


@given(stream=scoped_streams(), cuts=CUTS, settings=_SETTINGS)
@_GIVEN
def test_outcomes_are_those_of_the_model(stream: list[Item], cuts: set[int], settings: EngineSettings) -> None:
    """Whatever comes, in batches cut anywhere, each outcome, cluster and succession is that of the model."""
    expected, model = _expected(stream, settings)
    found: list[Seen] = []
    clusters: dict[str, Seen | None] = {}
    successions: list[tuple[str, ...]] = []
    with Deduplicator(settings=settings) as engine:
        for part in parts(stream, cuts):
            judged = engine.process(part)
            found += [seen(outcome) for outcome in judged.outcomes]
            changed, announced = told(judged)
            clusters |= changed
            successions += announced
    assert found == expected
    assert clusters == model.clusters
    assert successions == model.successions


@given(stream=scoped_streams(), cuts=CUTS, settings=_SETTINGS)
@_GIVEN
def test_cuts_change_nothing_at_all(stream: list[Item], cuts: set[int], settings: EngineSettings) -> None:
    """Outcomes with all measures, the vocabulary, and all progress but the step count equal those of a single batch."""
    with Deduplicator(settings=settings) as whole, Deduplicator(settings=settings) as cut:
        judged = whole.process(stream)
        assert [outcome for part in parts(stream, cuts) for outcome in cut.process(part).outcomes] == judged.outcomes
        assert _without_steps(cut) == _without_steps(whole)
        assert cut.vocabulary() == whole.vocabulary()


_OF_FEW_URLS = st.lists(
    st.builds(
        lambda name, base, variant, url, days: (f"{name}", base, variant, url, days),
        st.integers(0, 60) | st.integers(0, 6),  # most ids are new, and some come again
        st.integers(0, BASES - 1),
        st.integers(0, VARIANTS - 1),
        st.sampled_from(["http://page/", "http://page/", "http://page/", "http://other/", ""]),
        # Nothing ages: an engine that has found a copy does not look for newer ones, as the model does.
        st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.01, 2.1]),
    ),
    min_size=12,
    max_size=40,
)


@given(drawn=_OF_FEW_URLS, cuts=st.sets(st.integers(1, 39), max_size=3), settings=_SETTINGS)
@_GIVEN
def test_ids_that_share_a_url_are_judged_together_as_alone(
    drawn: list[tuple[str, int, int, str, float]], cuts: set[int], settings: EngineSettings
) -> None:
    """More ids than are remembered of a URL come in a batch: the outcomes are those of the model, and of each alone."""
    stream: list[Item] = []
    now = BEGIN
    for name, base, variant, url, days in drawn:
        now += int(days * DAY)
        stream.append(article(name, base, variant, at=now, url=url))
    expected, _ = _expected(stream, settings)
    with Deduplicator(settings=settings) as batched, Deduplicator(settings=settings) as alone:
        outcomes = [outcome for part in parts(stream, cuts) for outcome in batched.process(part).outcomes]
        assert [seen(outcome) for outcome in outcomes] == expected
        assert outcomes == [outcome for item in stream for outcome in alone.process([item]).outcomes]
        assert _without_steps(batched) == _without_steps(alone)


def _without_steps(engine: Deduplicator) -> tuple[object, ...]:
    progress = engine.progress
    return progress.judged, progress.epoch_judged, progress.entries, progress.stream_ms, progress.generations


@given(stream=scoped_streams(), cuts=CUTS, settings=_SETTINGS)
@_GIVEN
def test_no_article_is_a_copy_of_itself(stream: list[Item], cuts: set[int], settings: EngineSettings) -> None:
    """Only redeliveries and revisions name the article's own id; every duplicate has a link."""
    with Deduplicator(settings=settings) as engine:
        outcomes = [decision for part in parts(stream, cuts) for decision in engine.process(part).decisions]
    for decision in outcomes:
        assert decision.unique or decision.link is not None
        if decision.link is not None and decision.link.relation not in {"redelivery", "revision"}:
            assert decision.article.id not in {decision.link.duplicate_of, decision.link.matched}
