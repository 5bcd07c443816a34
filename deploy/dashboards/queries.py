"""Queries of the dashboards: what they select, and what the metrics in them mean.

Knows PromQL's names and the catalogue; knows nothing of Grafana.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stream_dedup.observe.catalogue import CLIENT_LIBRARY_METRICS
from stream_dedup.observe.metric import PREFIX, metrics_of
from stream_dedup.observe.metrics import THEMES

_SELECTIONS = {
    "$of": 'namespace=~"$namespace", job=~"$job", instance=~"$instance"',
    "$index": 'namespace=~"$namespace", job=~"$job"',  # for recorded series, which cover all processes
}
_RECORDED = re.compile(r"\b[a-z]+:stream_dedup_\w+:\w+")
_NAME = re.compile(rf"(?<![\w:])(?:{PREFIX}|process_|python_)\w+")
_PARTS = re.compile(r"_(?:bucket|sum|count)$")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


class Series(NamedTuple):
    """One query of a panel.

    Attributes:
        query: PromQL; `$of` stands for the processes that the dashboard's variables select, `$index` for their index.
        legend: name of each of its series; labels in double braces.
    """

    query: str
    legend: str = ""

    @property
    def expression(self) -> str:
        """The query as Grafana gets it."""
        expression = self.query
        for name, selection in _SELECTIONS.items():
            expression = expression.replace(name, selection)
        return expression


def quantiles(metric: str, *shares: float) -> tuple[Series, ...]:
    """Return quantiles of a histogram, each named by its share: `median`, `99%`.

    Args:
        metric: the histogram.
        shares: of the observations that are at most as large.
    """
    return tuple(
        Series(
            f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{{$of}}[$__rate_interval])))",
            {0.5: "median"}.get(share, f"{share:.0%}"),
        )
        for share in shares
    )


def metric_names(expression: str) -> list[str]:
    """Return the service's and its process's metrics that an expression names, each once, in order."""
    return list(dict.fromkeys(_NAME.findall(expression)))


def recorded_names(expression: str) -> list[str]:
    """Return the recorded series that an expression names, each once, in order."""
    return list(dict.fromkeys(_RECORDED.findall(expression)))


def described(expressions: Iterable[str]) -> str:
    """Return what the metrics of a panel mean and what to do when they move, as Markdown."""
    names = dict.fromkeys(name for expression in expressions for name in metric_names(expression))
    known = dict(_meanings())
    told = dict.fromkeys(known.get(name) or known[_PARTS.sub("", name)] for name in names)
    return "\n\n".join(_LINK.sub(r"\1", text) for text in told)


def _meanings() -> Iterator[tuple[str, str]]:
    for theme in THEMES:
        for name, metric in metrics_of(theme):
            shown = metric.shown(name)
            yield shown, _text(shown, metric.meaning, metric.action)
    for foreign in CLIENT_LIBRARY_METRICS:
        yield foreign.name, _text(foreign.name, foreign.meaning, foreign.action)


def _text(name: str, meaning: str, action: str) -> str:
    return f"`{name}`: {meaning} *When it moves:* {action}"
