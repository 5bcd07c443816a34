"""The pairs of copies of a labelled set, one by one: too many for anything but small sets."""

from itertools import combinations

from stream_dedup.evaluate.labelled import LabelledSet


def positives(labelled: LabelledSet) -> list[list[int]]:
    """Return the pairs of indices (first < second) within a cluster, ascending."""
    numbers = labelled.clusters().tolist()
    return [[i, k] for i, k in combinations(range(len(numbers)), 2) if numbers[i] == numbers[k]]
