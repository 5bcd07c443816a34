"""Runs that follow one another to one run, a stretch of keys at a time.

Knows how postings of several runs are put in order; knows nothing of which runs are to be merged.
"""

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from stream_dedup.compiled import kernel
from stream_dedup.hashing import I64
from stream_dedup.index.postings import PostingKind
from stream_dedup.index.runs.blocks import Flat
from stream_dedup.index.runs.run import Run, RunWriter

_STRETCH_BLOCKS = 1024  # of the largest run, taken at a time


def merge_runs(file: BinaryIO, runs: Sequence[Run], kinds: Sequence[PostingKind], floor: int) -> None:
    """Write a run that holds what several hold.

    Args:
        file: empty.
        runs: the oldest first.
        kinds: of their sections.
        floor: postings of entries with smaller numbers are left out.

    Raises:
        StoreDamagedError: one of them is damaged.
        OSError: the file cannot be written.
    """
    writer = RunWriter(file, runs[0].first, runs[-1].stop)
    for section, kind in enumerate(kinds):
        keys = sum(run.sections[section].keys for run in runs)
        writer.section(_merged(runs, section, kind, floor), keys, kind.detail_bytes)
    writer.finish()


def _merged(runs: Sequence[Run], section: int, kind: PostingKind, floor: int) -> Iterator[Flat]:
    largest = max((run.sections[section].first_keys for run in runs), key=len)
    begins = [0, *largest[_STRETCH_BLOCKS::_STRETCH_BLOCKS].tolist()]
    for begin, end in zip(begins, [*begins[1:], None], strict=True):
        parts = [run.part(section, kind.detail_bytes, begin, end) for run in runs]
        bounds = np.cumsum([0, *(len(part.keys) for part in parts)])
        joined = Flat(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        yield merged_lists(joined, bounds, kind.cap, floor)


@kernel
def merged_lists(flat: Flat, bounds: I64, cap: int, floor: int) -> Flat:
    """Merge postings of several sources.

    Args:
        flat: those of source i at bounds[i]:bounds[i + 1], each in ascending order; the oldest source first.
        bounds: shape (sources + 1,).
        cap: most postings of a key, the newest.
        floor: postings of entries with smaller numbers are left out.
    """
    at = bounds[:-1].copy()
    merged = Flat(np.empty_like(flat.keys), np.empty_like(flat.keys), np.empty_like(flat.keys))
    used = 0
    while True:
        found, key = False, np.uint64(0)
        for source in range(len(at)):
            if at[source] < bounds[source + 1] and (not found or flat.keys[at[source]] < key):
                found, key = True, flat.keys[at[source]]
        if not found:
            break
        first = used
        for source in range(len(at)):
            while at[source] < bounds[source + 1] and flat.keys[at[source]] == key:
                if flat.entries[at[source]] >= np.uint64(floor):
                    _copy(flat, at[source], merged, used)
                    used += 1
                at[source] += 1
        over = used - first - cap
        if over > 0:
            for place in range(first, first + cap):
                _copy(merged, place + over, merged, place)
            used = first + cap
    return Flat(merged.keys[:used].copy(), merged.entries[:used].copy(), merged.details[:used].copy())


@kernel
def _copy(source: Flat, place: int, target: Flat, to: int) -> None:
    target.keys[to], target.entries[to], target.details[to] = (
        source.keys[place],
        source.entries[place],
        source.details[place],
    )
