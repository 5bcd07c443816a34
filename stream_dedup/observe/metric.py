"""A metric as the catalogue describes it, and how it is created.

Knows Prometheus' client and its naming conventions; knows no single metric.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Generic, Self, TypeVar, overload

from prometheus_client import CollectorRegistry, Counter, Gauge, Info

from stream_dedup.observe.histogram import Histogram

PREFIX = "stream_dedup_"
_SUFFIXES = {Counter: "_total", Info: "_info"}  # added by the client

Made = TypeVar("Made", Counter, Gauge, Histogram, Info)


@dataclass(frozen=True, slots=True)
class Label:
    """A label of a metric, and what bounds its values.

    Attributes:
        name: name of the label.
        values: the values known beforehand.
        bound: describes what limits any other values; empty if there are no others.
    """

    name: str
    values: tuple[str, ...] = ()
    bound: str = ""


@dataclass(frozen=True, slots=True)
class Metric(Generic[Made]):
    """A metric: an attribute of a theme class, named without prefix and suffix.

    On an instance of the class, the attribute is the client's object once that has been created; see `make`.

    Attributes:
        kind: class of the client's object.
        unit: unit of the values.
        meaning: what the values are.
        action: what to do when they change.
        labels: in order; those of an `Info` are its content.
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
        """Return the metric itself: an instance attribute, once created, takes precedence over this."""
        return self

    def make(self, name: str, registry: CollectorRegistry) -> Made:
        """Create the client's object.

        A counter whose label values are all known starts with a 0 for each combination, because Prometheus does not
        see the first increase of a series that did not exist before.

        Args:
            name: name of the attribute.
            registry: the registry to add it to.
        """
        bounds: dict[str, Any] = {"buckets": self.buckets} if self.buckets else {}
        labels = [label.name for label in self.labels] if self.kind is not Info else []
        made = self.kind(PREFIX + name, self.meaning, labels, registry=registry, **bounds)
        if self.kind is Counter and self.labels and not any(label.bound for label in self.labels):
            for values in product(*(label.values for label in self.labels)):
                made.labels(*values)
        return made

    def shown(self, name: str) -> str:
        """Return the full name of the metric from the name of its attribute."""
        return PREFIX + name + _SUFFIXES.get(self.kind, "")


def counter(unit: str, meaning: str, action: str, *labels: Label) -> Metric[Counter]:
    """Describe a value that only grows."""
    return Metric(Counter, unit, meaning, action, labels)


def gauge(unit: str, meaning: str, action: str, *labels: Label) -> Metric[Gauge]:
    """Describe a value that goes up and down."""
    return Metric(Gauge, unit, meaning, action, labels)


def histogram(unit: str, meaning: str, action: str, buckets: Sequence[float]) -> Metric[Histogram]:
    """Describe a distribution, by the upper bounds of its buckets."""
    return Metric(Histogram, unit, meaning, action, buckets=tuple(buckets))


def info(meaning: str, action: str, *labels: Label) -> Metric[Info]:
    """Describe facts given only by labels: the value is 1."""
    return Metric(Info, "", meaning, action, labels)


def metrics_of(theme: type) -> Iterator[tuple[str, Metric[Any]]]:
    """Yield the metrics of a theme class with the names of their attributes, in order."""
    for name, value in vars(theme).items():
        if isinstance(value, Metric):
            yield name, value
