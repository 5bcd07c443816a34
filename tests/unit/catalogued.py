"""The names of all series in the catalogue of metrics.

Knows the catalogue; does not know who uses the names.
"""

from stream_dedup.observe.catalogue import CLIENT_LIBRARY_METRICS
from stream_dedup.observe.metric import metrics_of
from stream_dedup.observe.metrics import THEMES

_PARTS = ("", "_bucket", "_sum", "_count")


def known_names() -> set[str]:
    """Return the names of all series that the service exposes, including the parts of histograms."""
    shown = {metric.shown(name) for theme in THEMES for name, metric in metrics_of(theme)}
    return {name + part for name in shown for part in _PARTS} | {foreign.name for foreign in CLIENT_LIBRARY_METRICS}
