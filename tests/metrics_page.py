"""Keeps deploy/metrics.md in step with the catalogue of metrics.

Knows how a metric is written down; run as a module it updates the page.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from stream_dedup.observe.catalogue import CLIENT_LIBRARY_METRICS
from stream_dedup.observe.metric import Label, metrics_of
from stream_dedup.observe.metrics import THEMES
from tests.pages import with_part

PAGE = Path(__file__).parent.parent / "deploy" / "metrics.md"
_HEAD = "| metric | kind, unit | labels | meaning | when it moves |\n| --- | --- | --- | --- | --- |"


def renewed(page: str) -> str:
    """Return the page with the current tables, one for each theme."""
    return with_part(page, "metrics", "\n".join(_tables()))


def _tables() -> Iterator[str]:
    for theme in THEMES:
        title, _, promise = (theme.__doc__ or "").partition(": ")
        yield f"## {title}\n\n{promise[:1].upper()}{promise[1:]}\n\n{_HEAD}"
        for name, metric in metrics_of(theme):
            kind = _spaced(metric.kind.__name__.lower(), metric.unit, _bounds(metric.buckets))
            yield _row(metric.shown(name), kind, metric.labels, metric.meaning, metric.action)
        yield ""
    yield f"## Client library\n\nMetrics of every process that uses Prometheus' client for Python.\n\n{_HEAD}"
    for one in CLIENT_LIBRARY_METRICS:
        yield _row(one.name, _spaced(one.kind, one.unit), one.labels, one.meaning, one.action)
    yield ""


def _row(name: str, kind: str, labels: Iterable[Label], meaning: str, action: str) -> str:
    return f"| `{name}` | {kind} | {'; '.join(map(_label, labels))} | {meaning} | {action} |"


def _spaced(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _label(label: Label) -> str:
    known = [f"`{value}`" for value in label.values]
    return f"`{label.name}`: {', '.join([*known, *filter(None, [label.bound])])}"


def _bounds(buckets: Sequence[float]) -> str:
    return f"{len(buckets)} buckets from {buckets[0]:,.10g} to {buckets[-1]:,.10g}" if buckets else ""


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
