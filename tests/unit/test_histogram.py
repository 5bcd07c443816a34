"""A histogram that takes many values at once, compared with Prometheus' own, which takes them one by one."""

import numpy as np
import prometheus_client
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from stream_dedup.observe.histogram import Histogram

_BOUNDS = (0.005, 0.01, 0.1, 1.0, 60.0)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [0.0],
        [0.005, 0.01, 0.1, 1.0, 60.0],  # a bound belongs to its bucket
        [-1.0, np.nextafter(1.0, 2.0), 61.0, 1e9],
        np.random.default_rng(5).exponential(0.5, 1_000).tolist(),
    ],
    ids=["none", "zero", "bounds", "beyond", "many"],
)
def test_many_at_once_are_each_observed(values: list[float]) -> None:
    """Observing many at once, twice, shows the same as observing each by itself."""
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    at_once = Histogram("seen", "", registry=ours, buckets=_BOUNDS)
    one_by_one = prometheus_client.Histogram("seen", "", registry=theirs, buckets=_BOUNDS)
    for _ in range(2):
        at_once.observe_all(np.array(values))
        for value in values:
            one_by_one.observe(value)
    shown, expected = _shown(ours), _shown(theirs)
    assert shown.pop("seen_sum") == pytest.approx(expected.pop("seen_sum"))
    assert shown == expected


def _shown(registry: CollectorRegistry) -> dict[str, float]:
    lines = generate_latest(registry).decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith(("#", "seen_created")))
    return {name: float(value) for name, value in pairs}
