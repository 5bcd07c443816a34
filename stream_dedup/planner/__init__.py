"""The planner: finds tables, prefix bits, probes and largest distance for a target recall and an expected size.

Knows what an index with given settings finds and costs; knows nothing of any existing index.
"""

from stream_dedup.planner.costs import Traffic
from stream_dedup.planner.distances import STRANGERS, FlipMixture, copies_of
from stream_dedup.planner.expect import Expectation, Model, Shape, expectation_of, expectation_without_tables
from stream_dedup.planner.sample import Copies, Sample, measured_sample
from stream_dedup.planner.search import Limits, UnreachableError, cheapest

__all__ = [
    "STRANGERS",
    "Copies",
    "Expectation",
    "FlipMixture",
    "Limits",
    "Model",
    "Sample",
    "Shape",
    "Traffic",
    "UnreachableError",
    "cheapest",
    "copies_of",
    "expectation_of",
    "expectation_without_tables",
    "measured_sample",
]
