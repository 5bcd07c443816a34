"""Dashboards and rules on a real Prometheus that scrapes real services: each query has data, each metric exists."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pytest

from deploy.dashboards import DASHBOARDS, Page
from deploy.dashboards.board import Query, Variables, annotations, views
from deploy.dashboards.queries import metric_names
from deploy.demo.samples import sample_stream
from deploy.ports import free_port
from deploy.prometheus.ruleset import Rule, all_rules
from deploy.prometheus.server import Prometheus
from stream_dedup.stream.state.snapshots import ask
from tests.observing.scraped import FLAGS, INTERVAL_SECONDS, firing, scraped
from tests.stream.messages import Incoming, produce
from tests.stream.records import collect
from tests.stream.service import Service
from tests.stream.topics import fresh_topics
from tests.stream.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.usefixtures("compiled")
_SHADOW = ("shadow.enabled=true", "shadow.verify.near_jaccard=0.9", "shadow.verify.min_containment=0.97")
_PAUSE_SECONDS = 0.25
_BATCH, _FLUSHED_AFTER = 20, 200
_WITHOUT_DATA = {
    "ALERTS{": "no alert fires in this stream; test_tour.py looks at it while one does",
    "offset 1d": "there is no yesterday",
}


@dataclass(frozen=True, slots=True)
class _Stage:
    prometheus: Prometheus
    begin: float
    end: float

    def has_data(self, expression: str) -> bool:
        """Whether an expression has a finite value at any time of the stream."""
        curves = self.prometheus.query_range(expression, self.begin, self.end, INTERVAL_SECONDS)
        return any(math.isfinite(value) for curve in curves for value in curve.values)


@pytest.fixture(scope="module")
def stage(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Stage]:
    """An active process and a standby after the sample stream and some withdrawals."""
    directory = tmp_path_factory.mktemp("scraped")
    topics, ports = fresh_topics(bootstrap), [free_port(), free_port()]
    flags = (*FLAGS, *_SHADOW, f"shadow.topic={topics.group}.shadow")
    samples = [Incoming(sample.value, sample.key) for sample in sample_stream()]
    withdrawn = [Incoming(None, sample.id.encode()) for sample in sample_stream()[:20] if sample.id]
    for name in ("active", "standby", "prometheus"):
        (directory / name).mkdir()
    with (
        scraped(directory / "prometheus", ports) as prometheus,
        Service(directory / "active", bootstrap, topics, *flags, f"http.port={ports[0]}") as active,
    ):
        begin = time.time()
        active.wait_ready()
        with Service(directory / "standby", bootstrap, topics, *flags, f"http.port={ports[1]}") as standby:
            standby.wait_ready()
            messages = [*samples, *withdrawn]
            for first in range(0, len(messages), _BATCH):
                if first == _FLUSHED_AFTER:
                    # A snapshot flushes the write buffers: reads from them would not show in the block cache's metrics.
                    ask(active.directory / "state", directory / "snapshot", PATIENCE_SECONDS, lambda: True)
                produce(bootstrap, topics.input, messages[first : first + _BATCH])
                time.sleep(_PAUSE_SECONDS)
            collect(bootstrap, topics, len(messages), active)
            count = "sum(stream_dedup_commit_messages_sum)"
            wait_until(lambda: [one.values[0] for one in prometheus.query(count)] == [len(messages)], "all is scraped")
            time.sleep(8 * INTERVAL_SECONDS)
            yield _Stage(prometheus, begin, time.time())


def _expressions(page: Page) -> list[str]:
    # Rates over so long that a busy machine scrapes twice meanwhile.
    times = Variables(interval=INTERVAL_SECONDS, rate_interval=40 * INTERVAL_SECONDS, range=60.0)
    queries: list[Query] = [*annotations(page), *chain.from_iterable(view.queries for view in views(page))]
    return [times.filled(query.expression) for query in queries]


def _excused(expression: str) -> bool:
    return any(part in expression for part in _WITHOUT_DATA)


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.name)
def test_each_query_of_a_dashboard_has_data(stage: _Stage, page: Page) -> None:
    """Each query of a panel or annotation, except those with a stated reason for having none."""
    without = [one for one in _expressions(page) if not _excused(one) and not stage.has_data(one)]
    assert not without, "\n".join(without)


def test_what_has_no_data_is_said_for_a_reason(stage: _Stage) -> None:
    """No reason is given for a query that does have data, or that does not exist."""
    expressions = [one for page in DASHBOARDS for one in _expressions(page)]
    for part in _WITHOUT_DATA:
        matching = [one for one in expressions if part in one]
        assert matching, part
        assert not any(stage.has_data(one) for one in matching), part


@pytest.mark.parametrize("rule", [rule for rule in all_rules() if not rule.alert], ids=lambda rule: rule.name)
def test_each_recorded_series_has_data(stage: _Stage, rule: Rule) -> None:
    """Every recording rule yields a series with a number."""
    assert stage.has_data(rule.name)


def test_rules_are_evaluated_without_errors(stage: _Stage) -> None:
    """All rules of the files are loaded, and Prometheus reports no error for any."""

    def told() -> list[dict[str, Any]]:
        return [rule for group in stage.prometheus.ask("rules")["groups"] for rule in group["rules"]]

    wait_until(lambda: all(rule["health"] != "unknown" for rule in told()), "all are evaluated")
    rules = told()
    assert sorted(rule["name"] for rule in rules) == sorted(rule.name for rule in all_rules())
    assert [rule.get("lastError", "") for rule in rules if rule["health"] != "ok"] == []


def test_named_metrics_are_those_that_the_service_shows(stage: _Stage) -> None:
    """Dashboards and rules name only metrics that the scraped processes export."""
    shown = set(stage.prometheus.ask("label/__name__/values"))
    expressions = [one for page in DASHBOARDS for one in _expressions(page)]
    expressions += [rule.expression for rule in all_rules()]
    named = {name for expression in expressions for name in metric_names(expression)}
    assert named
    assert named <= shown


def test_nothing_fires_where_all_is_well(stage: _Stage) -> None:
    """A first start, a stream with dead letters, a standby and a change of epoch raise no alert."""
    wait_until(lambda: len(stage.prometheus.query("up == 1")) == 2, "both are scraped")
    assert firing(stage.prometheus) == set()
