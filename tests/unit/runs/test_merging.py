"""A merged run holds what its runs hold together."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_dedup.index.runs import merging
from stream_dedup.index.runs.blocks import block_bits_of
from stream_dedup.index.runs.hits import no_hits
from stream_dedup.index.runs.merging import merge_runs
from stream_dedup.index.runs.postings import Detail, PostingKind
from stream_dedup.index.runs.run import open_run
from tests.unit.runs.files import DETAIL_BYTES, opened, write_run
from tests.unit.runs.plain import Posting, flat_of, hits_of, newest, rows_of, sorted_rows

_KEYS = st.integers(0, 8) | st.integers(0, 2**64 - 1) | st.just(2**64 - 1)
_ENTRIES = 100  # of each run
_DETAILS: tuple[Detail, ...] = ("none", "size", "fingerprint")

Lists = dict[int, list[Posting]]


@st.composite
def _sources(draw: st.DrawFn, detail_bytes: int = 8) -> list[Lists]:
    """Draw the lists of consecutive runs, with many keys in common and some in only one of them."""
    sources = []
    for place in range(draw(st.integers(1, 5))):
        begin = place * _ENTRIES
        entries = st.lists(st.integers(begin, begin + _ENTRIES - 1), min_size=1, max_size=6, unique=True).map(sorted)
        drawn = draw(st.dictionaries(_KEYS, entries, max_size=10))
        many = draw(st.sampled_from([0, 0, 400]))
        drawn |= {2**33 + key * (place + 1) * 2**53: [begin] for key in range(many)}
        sources.append(
            {key: [(entry, entry * 7 % 256**detail_bytes) for entry in found] for key, found in drawn.items()}
        )
    return sources


def _merged(sources: list[Lists], cap: int, floor: int) -> Lists:
    """Merge in plain Python."""
    together: Lists = {}
    for lists in sources:
        for key, found in lists.items():
            together[key] = [*together.get(key, []), *found]
    kept = {key: newest(together, key, cap, floor) for key in together}
    return {key: found for key, found in kept.items() if found}


@pytest.mark.parametrize("stretch", [0, 1, 10])
@given(
    sections=st.tuples(*map(_sources, DETAIL_BYTES)),
    cap=st.sampled_from([1, 3, 64]),
    floor=st.integers(0, 3 * _ENTRIES),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow
def test_a_merged_run_is_the_run_of_the_merged_lists(
    tmp_path: Path, stretch: int, sections: tuple[list[Lists], ...], cap: int, floor: int
) -> None:
    """However many blocks are merged at a time, each section holds the merged lists, even those of a single run."""
    kinds = [PostingKind(detail, cap, detail) for detail in _DETAILS]
    count = max(map(len, sections))
    padded = [[*sources, *[{}] * (count - len(sources))] for sources in sections]
    runs, looks = [], list[int]()
    for place, (begin, end) in enumerate(pairwise(range(0, (count + 1) * _ENTRIES, _ENTRIES))):
        path = tmp_path / f"{place}.run"
        write_run(path, begin, end, [[flat_of(sorted_rows(sources[place]))] for sources in padded])
        runs.append(open_run(path.name, os.open(path, os.O_RDONLY)))
    with pytest.MonkeyPatch.context() as patch, (tmp_path / "merged.run").open("wb") as file:
        patch.setattr(merging, "STRETCH_BITS", stretch)
        merge_runs(file, runs, kinds, floor, lambda: looks.append(len(looks)))
        # One for each stretch, between which a merge can be ended.
        bounds = [merging.merged_bounds(run.sections[kind] for run in runs) for kind in range(len(kinds))]
        assert len(looks) == sum(len([*merging.key_ranges(block_bits_of(most.postings))]) for most in bounds)
    for run in runs:
        run.close()
    with opened(tmp_path / "merged.run") as merged:
        assert (merged.first, merged.stop) == (0, count * _ENTRIES)
        for kind, sources in enumerate(padded):
            expected = _merged(sources, cap, floor)
            keyed = merged.postings_between(kind, 0, None)
            assert rows_of(keyed) == sorted_rows(expected)
            keys = np.array(sorted(expected), np.uint64)
            hits, _ = merged.find(kind, keys, np.full(len(keys), cap), 0, no_hits(len(keys)))
            assert hits_of(hits, len(keys)) == [expected[key] for key in keys.tolist()]
