"""The catalogue of metrics, and what is exposed of it."""

import re
import subprocess
from typing import Any

import pytest
from prometheus_client import Counter, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from stream_dedup.observe.catalogue import CLIENT_LIBRARY_METRICS
from stream_dedup.observe.histogram import Histogram
from stream_dedup.observe.metric import Metric, metrics_of
from stream_dedup.observe.metrics import THEMES, Metrics
from tests.metrics_page import PAGE, renewed
from tests.prometheus import program

_BASE_UNITS = {"seconds", "bytes"}
# Units that Prometheus' conventions forbid in names: multiples of seconds and bytes, and percent.
_OTHER_UNITS = {"ms", "millis", "milliseconds", "us", "minutes", "hours", "days", "kb", "mb", "kilobytes", "percent"}


def _catalogue() -> list[tuple[str, Metric[Any]]]:
    return [(name, metric) for theme in THEMES for name, metric in metrics_of(theme)]


@pytest.mark.parametrize(("name", "metric"), _catalogue())
def test_names_follow_the_conventions(name: str, metric: Metric[Any]) -> None:
    """Names are lower case, end in a base unit, and contain no other unit and no kind; suffixes are the client's."""
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)
    words = name.split("_")
    assert (words[-1] in _BASE_UNITS) == (metric.unit in _BASE_UNITS)
    assert metric.unit == words[-1] or metric.unit not in _BASE_UNITS
    assert not {*words} & (_OTHER_UNITS | {"counter", "gauge", "histogram", "total", "count", "sum", "bucket", "info"})
    assert metric.shown(name).startswith("stream_dedup_")
    assert metric.shown(name).endswith("_total") == (metric.kind is Counter)


@pytest.mark.parametrize(("name", "metric"), _catalogue())
def test_each_metric_tells_what_it_means_and_what_to_do(name: str, metric: Metric[Any]) -> None:
    """Meaning and action are sentences; labels are bounded, by values or in words; a histogram has its buckets."""
    for text in (metric.meaning, metric.action):
        assert re.match(r"[A-Z0-9`]", text), name
        assert text.endswith((".", "?")), name
    for label in metric.labels:
        assert re.fullmatch(r"[a-z]+", label.name)
        assert label.values or label.bound
        assert len({*label.values}) == len(label.values)
    assert bool(metric.buckets) == (metric.kind is Histogram)
    assert [*metric.buckets] == sorted({*metric.buckets})


def test_what_is_said_of_other_metrics_names_them_as_they_are() -> None:
    """A word like `stage_seconds_total` in a meaning or an action is the name of a metric."""
    names = {metric.shown(name).removeprefix("stream_dedup_") for name, metric in _catalogue()}
    texts = [text for _, metric in _catalogue() for text in (metric.meaning, metric.action)]
    texts += [text for foreign in CLIENT_LIBRARY_METRICS for text in (foreign.meaning, foreign.action)]
    named = {word for text in texts for word in re.findall(r"`([a-z]+(?:_[a-z]+)*_(?:total|seconds|bytes))`", text)}
    assert named
    assert named <= names


def test_series_are_few() -> None:
    """A metric has at most 32 series per topic and partition."""
    for name, metric in _catalogue():
        series = 1
        for label in metric.labels:
            series *= len(label.values) or 1
        assert series <= 32, name


def test_attributes_of_metrics_are_those_of_the_catalogue() -> None:
    """Each name of the catalogue is an attribute of the right kind, exposed as the catalogue says."""
    metrics = Metrics()
    families = {family.name: family for family in metrics.registry.collect()}
    for name, metric in _catalogue():
        assert type(getattr(metrics, name)) is metric.kind
        family = families[f"stream_dedup_{name}"]
        assert family.documentation == metric.meaning
        assert family.type == metric.kind.__name__.lower()


def test_nothing_is_shown_that_the_catalogue_lacks() -> None:
    """The registry has the names of the catalogue and of the client library, and no others."""
    metrics = Metrics()
    metrics.build.info({"version": "1"})
    shown = {family.name for family in text_string_to_metric_families(generate_latest(metrics.registry).decode())}
    known = {metric.shown(name).removesuffix("_total") for name, metric in _catalogue()}
    known |= {one.name.removesuffix("_total") for one in CLIENT_LIBRARY_METRICS}
    assert shown == known


def test_counters_begin_with_0_where_their_labels_are_known() -> None:
    """So the first dead letter is an increase, which a new series would not be; gauges show only what is known."""
    metrics = Metrics()
    value = metrics.registry.get_sample_value
    assert value("stream_dedup_dead_letters_total", {"reason": "too_late"}) == 0
    assert value("stream_dedup_transactions_total", {"outcome": "aborted"}) == 0
    assert value("stream_dedup_kafka_connected_brokers", {"client": "producer"}) is None
    assert next(iter(metrics.articles.collect())).samples == []


def test_articles_of_an_expected_topic_begin_with_0() -> None:
    """This holds for each decision and relation; other topics have no series yet."""
    metrics = Metrics()
    metrics.show_topic("articles.in")
    (family,) = metrics.articles.collect()
    shown = {
        tuple(sample.labels[name] for name in ("topic", "decision", "relation")): sample.value
        for sample in family.samples
    }
    assert shown["articles.in", "unique", "none"] == 0
    assert shown["articles.in", "duplicate", "near"] == 0
    assert {topic for topic, _, _ in shown} == {"articles.in"}


def test_refreshing_ends_with_its_context() -> None:
    """A refresh calls the registered functions, but no longer after their context has ended."""
    metrics, calls = Metrics(), []
    with metrics.refreshed_by(lambda: calls.append("one")):
        metrics.refresh()
        with metrics.refreshed_by(lambda: calls.append("two")):
            metrics.refresh()
        metrics.refresh()
    metrics.refresh()
    assert calls == ["one", "one", "two", "one"]


def test_promtool_takes_what_is_shown() -> None:
    """Promtool finds no fault in names, units, types and help of a registry with all metrics."""
    metrics = Metrics()
    for name, metric in _catalogue():
        made = getattr(metrics, name)
        if metric.labels and metric.kind is not type(metrics.build):
            made = made.labels(*[(*label.values, "one")[0] for label in metric.labels])
        if isinstance(made, Gauge):
            made.set(1)
    metrics.build.info({"version": "1"})
    checked = subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=generate_latest(metrics.registry),
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


def test_page_is_that_of_the_catalogue() -> None:
    """The tables in deploy/metrics.md are generated from the catalogue; `make metrics-page` updates them."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page)


def test_page_names_every_metric() -> None:
    """No metric is missing from the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name in [metric.shown(name) for name, metric in _catalogue()] + [one.name for one in CLIENT_LIBRARY_METRICS]:
        assert f"| `{name}` |" in page
