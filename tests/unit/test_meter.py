"""Promises of the meter: what a commit met in the index, and how far an epoch moved fingerprints, is to be seen."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from structlog.testing import capture_logs

from stream_dedup.article import Article
from stream_dedup.batch import Judged
from stream_dedup.dedup import Deduplicator
from stream_dedup.fingerprint.drift import Drift
from stream_dedup.observe.metrics import Metrics
from stream_dedup.stream.meter import Meter
from stream_dedup.stream.pipeline import Committed

_SECONDS = dict.fromkeys(("produce", "transaction", "apply"), 0.0)
_LINE = "同一个模板的通告只有编号不同，其余的文字完全一样，请各单位遵照执行并及时反馈：第{}号。"

Maker = Callable[..., Deduplicator]


def _flooded(make_engine: Maker) -> tuple[Deduplicator, list[Judged]]:
    """Judge five texts of one template that count as different, one by one, with room for two under a landmark."""
    engine = make_engine(
        landmarks={"cap": 2}, verify={"near_jaccard": 1.0, "min_containment": 1.0}, simhash={"enabled": False}
    )
    return engine, [engine.process([Article(str(place), _LINE.format(place * 1111))]) for place in range(5)]


def _value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"stream_dedup_{name}", labels)


def test_hot_keys_add_up_and_the_longest_list_is_that_of_the_last_commit(make_engine: Maker) -> None:
    """The counter is the sum over the commits; the gauge follows them; contents, always full, are not shown."""
    engine, judged = _flooded(make_engine)
    metrics = Metrics()
    meter, longest = Meter(metrics, engine), []
    for one in judged:
        meter.committed(Committed([], one, [], _SECONDS))
        longest.append(_value(metrics, "longest_list_articles", source="landmark"))
    assert longest == [0, 1, 2, 2, 2]
    hot = _value(metrics, "hot_keys_total", source="landmark")
    assert hot == sum(int(one.hot_keys[1]) for one in judged)
    assert hot >= 3
    assert _value(metrics, "hot_keys_total", source="simhash") == 0
    assert _value(metrics, "hot_keys_total", source="content") is None


def test_articles_without_their_sites_lines_add_up(make_engine: Maker) -> None:
    """The counter is the sum over the commits."""
    engine, (judged, *_) = _flooded(make_engine)
    metrics = Metrics()
    for without_lines in (3, 0, 4):
        one = replace(judged, without_lines=without_lines)
        Meter(metrics, engine).committed(Committed([], one, [], _SECONDS))
    assert _value(metrics, "articles_stripped_total") == 7


def test_drift_is_shown_and_logged_once_an_epoch(make_engine: Maker) -> None:
    """Each distance is an observation of the histogram, so that its count is the sample's; one line tells the rest."""
    engine, (judged, *_) = _flooded(make_engine)
    metrics = Metrics()
    drift = Drift(3, np.array([0, 0, 1, 5], np.int64))
    with capture_logs() as lines:
        Meter(metrics, engine).committed(Committed([], replace(judged, drifts=[drift]), [], _SECONDS))
    assert _value(metrics, "epoch_drift_bits_count") == 4
    assert _value(metrics, "epoch_drift_bits_sum") == 6
    assert _value(metrics, "epoch_drift_bits_bucket", le="1.0") == 3
    assert (_value(metrics, "epoch_drift_mean_bits"), _value(metrics, "epoch_drift_articles")) == (1.5, 4)
    expected = {"event": "epoch", "number": 3, "drift_mean_bits": 1.5, "drift_most_bits": 5, "drift_articles": 4}
    assert lines == [{"log_level": "info", **expected}]
