"""A metric as the catalogue describes it, and how it is made.

Knows Prometheus' client and its conventions of names; knows no single metric.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Generic, Self, TypeVar, overload

from prometheus_client import CollectorRegistry, Counter, Gauge, Info

from stream_dedup.observe.histogram import Histogram

PREFIX = "stream_dedup_"
_SUFFIXES = {Counter: "_total", Info: "_info"}  # which the client adds by itself

Made = TypeVar("Made", Counter, Gauge, Histogram, Info)


@dataclass(frozen=True, slots=True)
class Label:
    """A label of a metric, and what bounds it.

    Attributes:
        name: of the label.
        values: all that it can have, where they are known beforehand.
        bound: what else it can have, and no more than that; empty where `values` are all.
    """

    name: str
    values: tuple[str, ...] = ()
    bound: str = ""


@dataclass(frozen=True, slots=True)
class Metric(Generic[Made]):
    """A metric: an attribute of a theme, under its name without prefix and suffix.

    On an object of the theme the attribute is the client's object, once that is made; see `make`.

    Attributes:
        kind: of the client's object.
        unit: of the values.
        meaning: what they are.
        action: what to do when they move.
        labels: in order; those of an `Info` are what it tells.
        buckets: upper bounds of a histogram.
    """

    kind: type[Made]
    unit: str
    meaning: str
    action: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Made: ...
    def __get__(self, instance: object, owner: type) -> Self | Made:
        """Return the metric itself: an object's own attribute, where it is made, comes before this."""
        return self

    def make(self, name: str, registry: CollectorRegistry) -> Made:
        """Return the client's object.

        A counter all of whose labels are known begins with 0 for each: Prometheus does not see the first increase of
        a series that was not there.

        Args:
            name: of the attribute.
            registry: shows it.
        """
        bounds: dict[str, Any] = {"buckets": self.buckets} if self.buckets else {}
        labels = [label.name for label in self.labels] if self.kind is not Info else []
        made = self.kind(PREFIX + name, self.meaning, labels, registry=registry, **bounds)
        if self.kind is Counter and self.labels and not any(label.bound for label in self.labels):
            for values in product(*(label.values for label in self.labels)):
                made.labels(*values)
        return made

    def shown(self, name: str) -> str:
        """Return the name under which it is shown, of the name of its attribute."""
        return PREFIX + name + _SUFFIXES.get(self.kind, "")


def counter(unit: str, meaning: str, action: str, *labels: Label) -> Metric[Counter]:
    """Describe what only grows."""
    return Metric(Counter, unit, meaning, action, labels)


def gauge(unit: str, meaning: str, action: str, *labels: Label) -> Metric[Gauge]:
    """Describe what goes up and down."""
    return Metric(Gauge, unit, meaning, action, labels)


def histogram(unit: str, meaning: str, action: str, buckets: Sequence[float]) -> Metric[Histogram]:
    """Describe a distribution, by the upper bounds of its buckets."""
    return Metric(Histogram, unit, meaning, action, buckets=tuple(buckets))


def info(meaning: str, action: str, *labels: Label) -> Metric[Info]:
    """Describe what is told by labels alone: the value is 1."""
    return Metric(Info, "", meaning, action, labels)


def metrics_of(theme: type) -> Iterator[tuple[str, Metric[Any]]]:
    """Yield the metrics of a theme by the names of their attributes, in order."""
    for name, value in vars(theme).items():
        if isinstance(value, Metric):
            yield name, value
