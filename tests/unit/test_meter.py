"""The meter: what a commit found in the index, how far an epoch moved fingerprints, and the lag in seconds."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pytest
from structlog.testing import capture_logs

from deploy.demo.samples.corpus import BaseText, Form
from stream_dedup.article import Article, Origin, Source, Withdrawal
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.judged import Judged, Tally
from stream_dedup.fingerprint.drift import Drift
from stream_dedup.index.lookup.plan import TablePlan
from stream_dedup.index.stores.store import Family
from stream_dedup.observe.metrics import Metrics
from stream_dedup.stream.commit.pipeline import Committed
from stream_dedup.stream.input.source import Lag
from stream_dedup.stream.input.source import Source as Input
from stream_dedup.stream.kafka.places import Place
from stream_dedup.stream.watching.meter import Meter
from tests.unit.arrived import ArrivedMessage
from tests.unit.stores import content_of

_SECONDS = dict.fromkeys(("produce", "transaction", "apply"), 0.0)
_LINE = "同一个模板的通告只有编号不同，其余的文字完全一样，请各单位遵照执行并及时反馈：第{}号。"

Maker = Callable[..., Deduplicator]


def _flooded(make_engine: Maker) -> tuple[Deduplicator, list[Judged]]:
    """Judge five texts of one template, one by one, so that all are unique; a landmark's list is limited to two."""
    engine = make_engine(
        landmarks={"cap": 2}, verify={"near_jaccard": 1.0, "min_containment": 1.0}, simhash={"enabled": False}
    )
    return engine, [engine.process([Article(str(place), _LINE.format(place * 1111))]) for place in range(5)]


def _value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"stream_dedup_{name}", labels)


def test_hot_keys_add_up_and_the_longest_list_is_that_of_the_last_commit(make_engine: Maker) -> None:
    """The counter adds up the commits, the gauge shows the last; keys of contents, always full, are not counted."""
    engine, judged = _flooded(make_engine)
    metrics = Metrics()
    meter, longest = Meter(metrics, engine), []
    for one in judged:
        meter.committed(Committed([], 0, one, [], _SECONDS))
        longest.append(_value(metrics, "longest_list_articles", source="landmark"))
    assert longest == [0, 1, 2, 2, 2]
    hot = _value(metrics, "hot_keys_total", source="landmark")
    assert hot == sum(int(one.tally.hot_keys[1]) for one in judged)
    assert hot >= 3
    assert _value(metrics, "hot_keys_total", source="simhash") == 0
    assert _value(metrics, "hot_keys_total", source="content") is None


def test_time_of_a_commit_is_that_of_its_own_stages(make_engine: Maker) -> None:
    """Deciding is told by its parts, and neither these nor what is done ahead count as time of the commit."""
    engine, (judged, *_) = _flooded(make_engine)
    metrics, parts = Metrics(), {"look_up": 20.0, "judge": 12.0}
    seconds = {"decode": 8.0, "decide": 32.0, "produce": 1.0, "transaction": 2.0, "apply": 4.0}
    Meter(metrics, engine).committed(Committed([], 0, replace(judged, seconds=parts), [], seconds))
    assert _value(metrics, "commit_seconds_sum") == 7
    told = {name: _value(metrics, "stage_seconds_total", stage=name) for name in (*seconds, *parts)}
    assert told == {**seconds, **parts, "decide": None}


def test_messages_are_as_old_as_their_timestamps_say(make_engine: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose producer's clock runs ahead was decided at once, and one without a timestamp counts for nothing."""
    engine, (judged, *_) = _flooded(make_engine)
    metrics, now_ms = Metrics(), 1_700_000_000_000
    monkeypatch.setattr("stream_dedup.stream.watching.meter.time.time_ns", lambda: now_ms * 1_000_000)
    messages: Any = [ArrivedMessage(b"", stamp) for stamp in (now_ms - 90_000, now_ms - 500, now_ms + 60_000, -1)]
    Meter(metrics, engine).committed(Committed(messages, 0, judged, [], _SECONDS))
    assert _value(metrics, "decision_seconds_count") == 3
    assert _value(metrics, "decision_seconds_sum") == 90.5


def test_articles_without_their_sites_lines_add_up(make_engine: Maker) -> None:
    """The counter adds up the commits."""
    engine, (judged, *_) = _flooded(make_engine)
    metrics = Metrics()
    for without_lines in (3, 0, 4):
        one = replace(judged, tally=Tally(without_lines=without_lines))
        Meter(metrics, engine).committed(Committed([], 0, one, [], _SECONDS))
    assert _value(metrics, "articles_stripped_total") == 7


def test_drift_is_shown_and_logged_once_an_epoch(make_engine: Maker) -> None:
    """Each distance is observed once, so the histogram's count is that of the sample; one log line has the rest."""
    engine, (judged, *_) = _flooded(make_engine)
    metrics = Metrics()
    drift = Drift(3, np.array([0, 0, 1, 5], np.int64))
    with capture_logs() as lines:
        Meter(metrics, engine).committed(Committed([], 0, replace(judged, drifts=[drift]), [], _SECONDS))
    assert _value(metrics, "epoch_drift_distance_count") == 4
    assert _value(metrics, "epoch_drift_distance_sum") == 6
    assert _value(metrics, "epoch_drift_distance_bucket", le="1.0") == 3
    assert (_value(metrics, "epoch_drift_mean_distance"), _value(metrics, "epoch_drift_articles")) == (1.5, 4)
    expected = {"event": "epoch", "number": 3, "drift_mean_bits": 1.5, "drift_most_bits": 5, "drift_articles": 4}
    assert lines == [{"log_level": "info", **expected}]


def test_articles_are_counted_by_the_topic_they_came_from(make_engine: Maker) -> None:
    """A copy counts for its own topic, whatever the topic of its original."""
    engine, metrics = make_engine(), Metrics()
    told = [Article(str(place), _LINE.format(0), origin=Origin(topic, 0, place)) for place, topic in enumerate("abb")]
    meter = Meter(metrics, engine)
    for one in told:
        meter.committed(Committed([], 700, engine.process([one]), [], _SECONDS))
    assert _value(metrics, "articles_total", topic="a", decision="unique", relation="none") == 1
    assert _value(metrics, "articles_total", topic="b", decision="duplicate", relation="exact") == 2
    assert _value(metrics, "articles_total", topic="a", decision="duplicate", relation="exact") is None
    assert (_value(metrics, "commit_bytes_count"), _value(metrics, "commit_bytes_sum")) == (3, 2100)


def test_probes_and_hits_are_those_of_the_tables(make_engine: Maker, texts: list[BaseText]) -> None:
    """With the exact key alone, each article looks up every table; a hit is a prefix that an earlier one has there."""
    engine = make_engine(landmarks={"enabled": False}, simhash={"tables": 6, "prefix_bits": 8, "probes": 1})
    plan, metrics = TablePlan(6, 8), Metrics()
    meter, known, hits, probes = Meter(metrics, engine), np.empty((0, 6), np.uint64), 0, 0
    # Short texts are in no table.
    bodies = [text.body for text in texts if text.form is Form.NEWS][:120]
    for first in range(0, len(bodies), 30):
        judged = engine.process([Article(str(first + place), body) for place, body in enumerate(bodies[first:][:30])])
        meter.committed(Committed([], 0, judged, [], _SECONDS))
        assert all(decision.unique for decision in judged.decisions)
        fingerprints = np.array([decision.fingerprint for decision in judged.decisions], np.uint64)
        prefixes = plan.prefixes(fingerprints)
        hits += sum(int(np.isin(prefixes[:, table], known[:, table]).sum()) for table in range(6))
        probes += prefixes.size
        known = np.concatenate([known, prefixes])
    assert 0 < hits < probes
    assert (_value(metrics, "simhash_probes_total"), _value(metrics, "simhash_hits_total")) == (probes, hits)


def test_all_successions_and_withdrawals_of_a_commit_are_counted(make_engine: Maker, bodies: list[str]) -> None:
    """An article may lead to two: it leaves a cluster that went by its id, and takes over another one."""
    engine, metrics = make_engine(cluster={"canonical": "longest"}), Metrics()
    one, other = bodies[:2]
    batches: list[list[Article | Withdrawal]] = [
        [Article("moves", f"{one}（完）"), Article("copy", one), Article("part", other[: len(other) // 2])],
        [Article("moves", other), Withdrawal("copy"), Withdrawal("part"), Withdrawal("nobody")],
    ]
    meter = Meter(metrics, engine)
    for items in batches:
        meter.committed(Committed([], 0, engine.process(items), [], _SECONDS))
    assert (_value(metrics, "successions_total"), _value(metrics, "withdrawals_total")) == (2, 2)
    meter.aborted()
    outcomes = [_value(metrics, "transactions_total", outcome=outcome) for outcome in ("committed", "aborted")]
    assert outcomes == [len(batches), 1]
    links = {source: _value(metrics, "matches_total", source=source) for source in Source}
    assert sum(count or 0 for count in links.values()) == 2
    assert links[Source.ID] == 0


def test_candidates_add_up_by_what_found_them(make_engine: Maker) -> None:
    """Those compared and those that matched."""
    engine, (judged, *_) = _flooded(make_engine)
    metrics = Metrics()
    meter = Meter(metrics, engine)
    for times in (1, 2):
        tally = Tally(candidates=np.array([3, 5, 7]) * times, confirmed=np.array([2, 4, 6]) * times)
        meter.committed(Committed([], 0, replace(judged, tally=tally), [], _SECONDS))
    for source, compared, matched in (("content", 9, 6), ("landmark", 15, 12), ("simhash", 21, 18)):
        assert _value(metrics, "candidates_total", source=source) == compared
        assert _value(metrics, "candidates_confirmed_total", source=source) == matched


def test_gauges_of_the_state_are_those_of_what_it_holds(
    make_engine: Maker, bodies: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs and their bytes are those in the store; the stream's time is in seconds."""
    monkeypatch.setattr("stream_dedup.stream.watching.meter._GAUGE_SECONDS", 0.0)
    begin, step = 1_760_000_000_000, 4 * 3_600_000
    engine, metrics = make_engine(window={"days": 2}), Metrics()
    shelf, store, source = engine.state.index.shelf, engine.state.store, cast("Input", _Input({}))
    shelf.young_entries = 4
    meter = Meter(metrics, engine)
    for number, body in enumerate(bodies[:60]):
        engine.process([Article(str(number), body, published_ms=begin + number * step)])
        if number % 10 == 9:
            meter.tick(source)
    shelf.finish(engine.progress)
    meter.tick(source)
    sizes = [len(content_of(store, name)) for name in store.file_names()]
    assert (_value(metrics, "index_runs"), _value(metrics, "index_run_bytes")) == (len(sizes), sum(sizes))
    assert 0 < (_value(metrics, "index_blocks_read_total") or 0) == shelf.reads.blocks
    assert _value(metrics, "stream_time_seconds") == (begin + 59 * step) / 1000
    assert _value(metrics, "window_generations") == 3
    assert _value(metrics, "idf_vocabulary_words") == engine.vocabulary() > 0
    assert (_value(metrics, "idf_epoch"), _value(metrics, "learnt_lines")) == (engine.epoch.number, 0)


def test_what_is_judged_in_silence_is_counted(make_engine: Maker) -> None:
    """Every message counts, also those without an article; so do commits and epochs, and the gauges follow."""
    engine, judged = _flooded(make_engine)
    metrics, drift = Metrics(), Drift(1, np.array([2, 4], np.int64))
    meter = Meter(metrics, engine)
    meter.judged_without_publishing(7, [])
    meter.judged_without_publishing(3, [drift])
    assert _value(metrics, "messages_silent_total") == 10
    assert _value(metrics, "transactions_total", outcome="committed") == 2
    assert _value(metrics, "epoch_drift_distance_count") == 2
    assert _value(metrics, "state_articles_judged") == len(judged)
    words = {word for place in range(5) for word in engine.fingerprinter.words(_LINE.format(place * 1111))}
    assert 0 < (_value(metrics, "idf_vocabulary_words") or 0) <= len(words)


def test_gauges_of_the_window_are_those_of_what_is_left(make_engine: Maker, texts: list[BaseText]) -> None:
    """Entries that have expired are not counted; the span is that of the generations, which begin every half window."""
    engine, metrics, hour_ms = make_engine(window={"days": 1}), Metrics(), 3_600_000
    for place, hours in enumerate(range(0, 80, 8)):
        engine.process([Article(str(place), texts[place].body, published_ms=1_700_000_000_000 + hours * hour_ms)])
    Meter(metrics, engine).tick(cast("Input", _Input({})))
    left = sum(1 for _ in engine.state.store.items(Family.ENTRIES))
    assert 0 < left < engine.progress.entries
    assert _value(metrics, "index_entries") == left
    # After half a day they begin at 0, 16, 32, 48 and 64 hours; at 64 hours the one of 32 ended within the last day.
    assert _value(metrics, "window_span_seconds") == (72 - 32) * 3_600


def test_blocks_that_were_read_are_counted_once(make_engine: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the gauges are brought up to date; those read before the meter was made are not of its time."""
    metrics, engine, now = Metrics(), make_engine(), 1_000.0
    monkeypatch.setattr("stream_dedup.stream.watching.meter.time.monotonic", lambda: now)
    reads, counted = engine.state.index.shelf.reads, []
    reads.blocks = 3
    meter = Meter(metrics, engine)
    for reads.blocks in (3, 8, 8, 9):
        now += 2.0
        meter.tick(cast("Input", _Input({})))
        counted.append(_value(metrics, "index_blocks_read_total"))
    assert counted == [0, 5, 5, 6]


def test_rate_is_that_since_the_last_report(make_engine: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of the log has it, with the lag and what was decided; nothing is reported where nothing was decided."""
    now = 1_000.0
    monkeypatch.setattr("stream_dedup.stream.watching.meter.time.monotonic", lambda: now)
    engine, _ = _flooded(make_engine)
    meter, source = Meter(Metrics(), engine), cast("Input", _Input({("t", 0): Lag(3, None), ("t", 1): Lag(4, None)}))
    with capture_logs() as lines:
        for count in (60, 0, 90):
            judged = engine.process([Article(f"{now}-{place}", f"{_LINE}{now}") for place in range(count)])
            meter.committed(Committed([], 0, judged, [], _SECONDS))
            now += 30.0
            meter.tick(source)
    told = [(line["per_second"], line["lag"]) for line in lines if line["event"] == "progress"]
    assert told == [(2.0, 7), (3.0, 7)]


def test_standby_shows_no_words_of_its_own(make_engine: Maker) -> None:
    """The engine knows only those of the time when it last decided: 0 says that they are unknown."""
    engine, _ = _flooded(make_engine)
    metrics = Metrics()
    meter, source = Meter(metrics, engine), cast("Input", _Input({}))
    meter.tick(source)
    assert (_value(metrics, "idf_vocabulary_words") or 0) > 0
    meter.idle()
    meter.following(12, 3)
    assert _value(metrics, "idf_vocabulary_words") == _value(metrics, "idf_epoch") == 0
    assert (_value(metrics, "changelog_position"), _value(metrics, "changelog_records_remaining")) == (12, 3)


def test_topics_that_are_not_read_are_shown_while_the_input_is(make_engine: Maker) -> None:
    """A standby reads none of them, and that is no fault."""
    metrics = Metrics()
    meter = Meter(metrics, make_engine())
    meter.tick(cast("Input", _Input({}, unread_topics={"deleted"})))
    assert _value(metrics, "unread_topics") == 1
    meter.idle()
    assert _value(metrics, "unread_topics") == 0


def test_losses_of_the_input_are_counted(make_engine: Maker) -> None:
    """An alert tells that articles are missing; the next source counts anew."""
    metrics = Metrics()
    meter, first, second = Meter(metrics, make_engine()), _Input({}, lost=25), _Input({}, lost=5)
    assert _value(metrics, "input_lost_total") == 0
    meter.tick(cast("Input", first))
    first.lost = 30
    meter.count_events(cast("Input", first))
    meter.count_events(cast("Input", second))
    assert _value(metrics, "input_lost_total") == 35


def test_rebalances_are_counted_up_to_the_end_of_a_source(make_engine: Maker) -> None:
    """Closing a source revokes its partitions after the gauges were last brought up to date; the next counts anew."""
    metrics = Metrics()
    meter, first, second = Meter(metrics, make_engine()), _Input({}, rebalances=2), _Input({}, rebalances=1)
    meter.tick(cast("Input", first))
    first.rebalances = 3
    meter.count_events(cast("Input", first))
    meter.count_events(cast("Input", second))
    assert _value(metrics, "rebalances_total") == 4


# ------------------------------------------------------------------------------------------------ lag


@dataclass
class _Input:
    """A source, as far as the meter needs one."""

    lags: dict[Place, Lag]
    assigned: set[Place] = field(default_factory=lambda: {("t", 0)})
    rebalances: int = 0
    lost: int = 0
    unread_topics: set[str] = field(default_factory=set)

    def lag(self) -> dict[Place, Lag]:
        """Return the lag that was set."""
        return self.lags


def _lag_seconds(metrics: Metrics, partition: int = 0) -> float | None:
    return _value(metrics, "consumer_lag_seconds", topic="t", partition=str(partition))


def test_lag_in_seconds_is_the_age_of_what_waits(make_engine: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is 0 if nothing is waiting, and absent if the age is unknown or the partition was revoked."""
    metrics, now_ms = Metrics(), time.time_ns() // 1_000_000
    monkeypatch.setattr("stream_dedup.stream.watching.meter.time.time_ns", lambda: now_ms * 1_000_000)
    meter = Meter(metrics, make_engine())
    source = _Input({("t", 0): Lag(3, now_ms - 90_000), ("t", 1): Lag(0, None), ("t", 2): Lag(5, None)})
    meter.tick(cast("Input", source))
    assert _lag_seconds(metrics) is None
    meter.refresh()
    assert (_lag_seconds(metrics), _lag_seconds(metrics, 1), _lag_seconds(metrics, 2)) == (90.0, 0.0, None)
    assert _value(metrics, "consumer_lag_messages", topic="t", partition="2") == 5
    meter.idle()
    meter.refresh()
    assert (_lag_seconds(metrics), _lag_seconds(metrics, 1)) == (None, None)
    assert _value(metrics, "consumer_lag_messages", topic="t", partition="0") is None


def test_lag_in_seconds_grows_while_the_loop_stands_still(make_engine: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Soon after the last update a scrape shows the age of then; much later it shows that the age has grown."""
    metrics, began = Metrics(), time.time_ns()
    passed = 0.0
    monkeypatch.setattr("stream_dedup.stream.watching.meter.time.time_ns", lambda: began + int(passed * 1e9))
    monkeypatch.setattr("stream_dedup.stream.watching.meter.time.monotonic", lambda: 1_000.0 + passed)
    meter, shown = Meter(metrics, make_engine()), []
    meter.tick(cast("Input", _Input({("t", 0): Lag(1, began // 1_000_000 - 2_000)})))
    for passed in (0.0, 0.9, 30.0):  # noqa: B007  # the clocks read it
        meter.refresh()
        shown.append(_lag_seconds(metrics))
    assert shown == [2.0, 2.0, pytest.approx(32.0, abs=0.01)]
