"""What the engine promises at the end of an epoch: the drift is measured, and measuring it changes nothing.

Knows the Deduplicator and its stores; copies found across epochs are tested in test_recall_across_epochs.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_dedup import Article, Decision, Deduplicator
from stream_dedup.fingerprint.drift import SAMPLE_ARTICLES, Drift, DriftSample
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.text.idf import Epoch
from tests.engine.durable import Log, contents, follow, restored, written
from tests.engine.samples import articles, settings

_EPOCH = 100
_SETTINGS = settings(idf={"epoch_articles": _EPOCH})


def _batches(size: int) -> Iterator[list[Article]]:
    stream = list(articles())
    return (stream[start : start + size] for start in range(0, len(stream), size))


def _drifts(size: int) -> list[tuple[int, list[int]]]:
    with Deduplicator(settings=_SETTINGS) as engine:
        drifts = [drift for batch in _batches(size) for drift in engine.process(batch).drifts]
    return [(drift.epoch, drift.distances.tolist()) for drift in drifts]


def _bits(fingerprinter: Fingerprinter, decisions: list[Decision], epoch: Epoch) -> list[int]:
    """Return by how many bits each decision's fingerprint differs from the one in a given epoch."""
    features = fingerprinter.features([decision.article for decision in decisions])
    moved, _ = fingerprinter.fingerprints(features, epoch)
    pairs = zip(decisions, moved.tolist(), strict=True)
    return [(decision.fingerprint ^ value).bit_count() for decision, value in pairs]


def test_drift_is_that_of_the_unique_articles_fingerprinted_again() -> None:
    """Measured at each of the four epoch switches of the sample stream: the bits by which the fingerprints differ."""
    fingerprinter, measured, expected = Fingerprinter(_SETTINGS), list[Drift](), list[tuple[int, list[int]]]()
    with Deduplicator(settings=_SETTINGS) as engine:
        decisions: list[Decision] = []
        for batch in _batches(10):  # epochs end at the end of a batch
            judged = engine.process(batch)
            decisions += [decision for decision in judged.decisions if decision.link is None]
            measured += judged.drifts
            if engine.progress.epoch_judged == 0:
                newest = decisions[-SAMPLE_ARTICLES:]
                expected.append((engine.epoch.number, _bits(fingerprinter, newest, engine.epoch)))
                decisions = []
    assert [(drift.epoch, drift.distances.tolist()) for drift in measured] == expected
    assert [epoch for epoch, _ in expected] == [1, 2, 3, 4]
    assert all(any(distances) for _, distances in expected)


@pytest.mark.parametrize("size", [1, 64, 512])
def test_drift_does_not_depend_on_batches(size: int) -> None:
    """However the stream is cut, the same articles are measured at each switch."""
    assert _drifts(size) == _drifts(10)


def test_measuring_changes_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions and stored bytes equal those of an engine that samples nothing."""
    outcomes = []
    for measures in (True, False):
        if not measures:
            monkeypatch.setattr(DriftSample, "followed_by", lambda sample, *_: sample)
        with Deduplicator(settings=_SETTINGS) as engine:
            judged = [engine.process(batch) for batch in _batches(64)]
            outcomes.append(([one.outcomes for one in judged], contents(engine)))
            assert any(one.drifts for one in judged) == measures
    assert outcomes[0] == outcomes[1]


def test_change_that_is_dropped_leaves_the_sample_as_it_was() -> None:
    """A batch that is decided again, as after an aborted transaction, is measured only once."""
    stream = list(articles())
    with Deduplicator(settings=_SETTINGS) as engine:
        engine.process(stream[:90])
        engine.decide(stream[90:120])
        (drift,) = engine.process(stream[90:120]).drifts
    assert (drift.epoch, drift.distances.tolist()) == _drifts(10)[0]


def test_restart_leaves_a_smaller_sample(tmp_path: Path) -> None:
    """The sample is not stored: only the part of the epoch since the start is measured."""
    stream = list(articles())[:_EPOCH]
    with Deduplicator(tmp_path, _SETTINGS) as engine:
        engine.process(stream[:60])
    with Deduplicator(tmp_path, _SETTINGS) as engine:
        (drift,) = engine.process(stream[60:]).drifts
    distances, (_, of_all) = drift.distances.tolist(), _drifts(10)[0]
    assert 0 < len(distances) < len(of_all)
    assert distances == of_all[-len(distances) :]


def test_epoch_without_a_sample_tells_no_drift(tmp_path: Path) -> None:
    """If nothing new has come since the start, the next epoch begins without a measurement."""
    stream = list(articles())[: _EPOCH - 1]
    with Deduplicator(tmp_path, _SETTINGS) as engine:
        engine.process(stream)
    with Deduplicator(tmp_path, _SETTINGS) as engine:
        assert engine.process([stream[0]]).drifts == []
        assert engine.epoch.number == 1


def test_replica_that_follows_the_changelog_forgets_its_sample() -> None:
    """What a process judged before another took over may belong to an earlier epoch, so it is not measured."""
    stream, log = list(articles()), Log()
    with Deduplicator(settings=_SETTINGS) as active:
        written(active, log, [stream[:40]])
        with restored(log, _SETTINGS) as other:
            written(active, log, [stream[40:60]])
            other.process(stream[40:60])
            assert len(other.state.epoch_state.sample) > 0
            begin = log.end
            written(active, log, [stream[60:90]])
            follow(other, log, begin)
            other.state.refresh()
            assert len(other.state.epoch_state.sample) == 0


@pytest.mark.parametrize("size", [1, 7, 512])
def test_first_epochs_are_short_and_double(size: int) -> None:
    """With a first epoch of 15 articles and a maximum of 100, epochs begin after 15, 45, 105, 205, ... articles."""
    begun: list[int] = []
    with Deduplicator(settings=settings(idf={"epoch_articles": 100, "first_epoch_articles": 15})) as engine:
        for start in range(0, 420, size):
            judged = engine.process(list(articles())[start : min(start + size, 420)])
            for step in judged.change.steps:
                begun += [step.progress.judged] if step.progress.epoch_judged == 0 else []
    assert begun == [15, 45, 105, 205, 305, 405]
