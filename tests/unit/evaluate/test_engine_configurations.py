"""The engine as an algorithm: it is called as the service calls it, and scored by its clusters."""

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from stream_dedup.article import Article
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.evaluate.engine import _seconds, ask, changes, configurations, measure_engine
from stream_dedup.evaluate.labelled import LabelledArticle, LabelledSet
from stream_dedup.evaluate.results import Seconds
from stream_dedup.evaluate.runner.run import summary_of
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.settings import EngineSettings, Settings
from stream_dedup.settings.kinds import flattened

_DAY_MS = 86_400_000


@pytest.fixture(autouse=True)
def _shared_fingerprinter(
    cached_fingerprinter: Callable[[EngineSettings], Fingerprinter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_dedup.engine.parts.Fingerprinter", cached_fingerprinter)


def _stream(bodies: list[str]) -> LabelledSet:
    """Return three texts, a copy of the first a month later with a line added, and a false label on the third."""
    first, second, third = bodies[:3]
    articles = [
        LabelledArticle(Article("a", first, published_ms=0), "a"),
        LabelledArticle(Article("b", second, published_ms=1), "b"),
        LabelledArticle(Article("c", third, published_ms=2), "b", "b", "rewrite"),
        LabelledArticle(Article("a1", first + "（责任编辑：李梅）", published_ms=30 * _DAY_MS), "a", "a", "editor"),
    ]
    return LabelledSet("four", articles, np.empty((0, 2), np.int64))


def test_copies_of_the_engine_are_scored(bodies: list[str]) -> None:
    """The real copy is found, even beyond the service's window, and the falsely labelled one is not."""
    measured = measure_engine(configurations()["engine/default"], _stream(bodies))
    score = measured.given.score
    assert (score.true_positives, score.false_positives, score.false_negatives) == (1, 0, 1)
    assert {one.kind: one.recall for one in measured.given.kinds} == {"editor": 1.0, "rewrite": 0.0}
    assert measured.links == 1.0
    assert measured.candidates == 1 / 4  # the copy was compared with its original, and nothing else with anything


def test_seconds_of_the_processor_are_split_by_stages() -> None:
    """Of twelve, the stages that compute features took a third of the time; the engine does not time its segmenter."""
    stages = {"features": 1.0, "simhash": 2.0, "search": 5.0, "commit": 1.0}
    assert _seconds(stages, 12.0) == Seconds(None, 4.0, 8.0)
    assert _seconds({}, 12.0) == Seconds(None, 0.0, 12.0)


def test_copies_by_an_unknown_edit_are_in_no_row_of_edits(bodies: list[str]) -> None:
    """Neither in the engine's recall by edit nor in the counts of copies: pairs of ids need not name an edit."""
    labelled = _stream(bodies)
    articles = [replace(one, kind="") if one.kind == "rewrite" else one for one in labelled.articles]
    unnamed = replace(labelled, articles=articles)
    measured = measure_engine(configurations()["engine/default"], unnamed)
    assert [(one.kind, one.pairs) for one in measured.given.kinds] == [("editor", 1)]
    assert [(one.kind, one.copies) for one in summary_of(unnamed, "").kinds] == [("editor", 1)]


def test_answers_are_those_of_the_engine(bodies: list[str]) -> None:
    """The links are those that `Deduplicator.add_batch` makes, as positions of articles."""
    articles = [one.article for one in _stream(bodies).articles]
    settings = configurations()["engine/default"].settings
    with Deduplicator(settings=settings) as engine:
        decisions = engine.add_batch(articles)
    linked = {(d.article.id, d.link.duplicate_of) for d in decisions if d.link is not None and not d.unique}
    answers = ask(settings, articles)
    assert {(articles[copy].id, articles[other].id) for copy, other in answers.links} == linked == {("a1", "a")}


def test_a_configuration_names_its_segmenter_and_weights() -> None:
    """What its results say of it is what its settings are, whether it changes them or not."""
    for one in configurations().values():
        text, weights = one.settings.text, one.settings.weights
        assert (one.named.segmenter, one.named.feature) == (text.segmenter, weights.profile)
    assert {one.named.segmenter for one in configurations().values()} == {"compiled", "jieba"}


def test_overlapping_links_do_not_count(bodies: list[str]) -> None:
    """A link between overlapping articles counts neither as right nor as wrong, so no link remains."""
    labelled = _stream(bodies)
    overlapping = LabelledSet("four", labelled.articles, np.array([[0, 3]]))
    assert measure_engine(configurations()["engine/default"], overlapping).links is None


def test_configurations_differ_in_what_they_say() -> None:
    """Each configuration is valid, has the settings it names, and differs from the defaults in no other."""
    shipped = dict(flattened(EngineSettings().model_dump()))
    for name, configuration in configurations().items():
        own, named = dict(flattened(configuration.settings.model_dump())), dict(flattened(configuration.groups))
        assert own == shipped | {"window.days": 36_500} | named, name
        assert (own != shipped | {"window.days": 36_500}) == (name != "engine/default"), name


def test_configurations_start_from_the_settings_of_the_user() -> None:
    """Each has them all, except for those that it is about, which are as its name says, and for the window."""
    given = {
        "verify": {"near_jaccard": 0.95, "min_grams": 20},
        "weights": {"noun": 2.0},
        "landmarks": {"enabled": False, "cap": 32},
        "text": {"segmenter": "rjieba"},
        "window": {"days": 7},
    }
    made = configurations(Settings.model_validate({**given, "kafka": {"sasl.password": "hunter"}}))
    plain = {name.partition("/")[2]: one.settings for name, one in made.items()}
    assert {(one.verify.min_grams, one.landmarks.cap, one.window.days) for one in plain.values()} == {(20, 32, 36_500)}
    default, threshold = plain["default"], plain["threshold-0.3"]
    assert (default.verify.near_jaccard, default.weights.noun, default.text.segmenter) == (0.95, 2.0, "rjieba")
    assert (default.simhash.enabled, default.landmarks.enabled) == (True, False)
    assert (threshold.verify.near_jaccard, threshold.verify.min_containment) == (0.3, 0.3)
    assert (plain["landmarks"].simhash.enabled, plain["landmarks"].landmarks.enabled) == (False, True)
    assert plain["paper2020"].weights == EngineSettings.model_validate({"weights": {"profile": "paper2020"}}).weights
    assert plain["jieba"].text.segmenter == "jieba"
    assert made["engine/default"].named.segmenter == "rjieba"
    assert b"hunter" not in pickle.dumps(made)


def test_changes_are_told_as_flags() -> None:
    """What differs from the defaults, and which of it a configuration has."""
    settings = EngineSettings.model_validate(
        {
            "verify": {"near_jaccard": 0.95, "same_url": False, "duplicates": "exact,near"},
            "window": {"days": 7},
            "simhash": {"tables": 4},
        }
    )
    told = ["verify.near_jaccard=0.95", "verify.duplicates=exact,near", "verify.same_url=false"]
    assert changes(settings) == [*told, "window.days=7.0"]
    made = configurations(settings)
    assert made["engine/default"].taken == told
    assert made["engine/threshold-0.3"].taken == told[1:]
    assert not any(one.taken for one in configurations().values())


def test_thresholds_are_those_of_their_names() -> None:
    """`engine/threshold-0.3` uses 0.3 for Jaccard and containment."""
    verify = configurations()["engine/threshold-0.3"].settings.verify
    assert (verify.near_jaccard, verify.min_containment) == (0.3, 0.3)
