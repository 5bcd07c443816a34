"""Run files behave like immutable dictionaries of lists, and any damage is detected."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_dedup.arrays import U64
from stream_dedup.index.runs.blocks import KeyedPostings, block_bits_of, block_start, rows_before
from stream_dedup.index.runs.hits import no_hits
from stream_dedup.index.runs.run import Run
from stream_dedup.index.stores.store import StoreDamagedError
from tests.unit.runs.files import DETAIL_BYTES, flip, opened, write_run
from tests.unit.runs.plain import Posting, flat_of, hits_of, newest, rooms, rows_of, sorted_rows, u64

_FIRST, _STOP = 1000, 1500
_KEYS = st.integers(0, 40) | st.integers(0, 2**64 - 1) | st.sampled_from([2**64 - 1, 2**63])
_ASKED = st.lists(_KEYS, max_size=20, unique=True).map(sorted)
_IN_DIRECTORY = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])

Lists = dict[int, list[Posting]]


@st.composite
def _lists(draw: st.DrawFn, detail_bytes: int) -> Lists:
    keys = draw(st.lists(_KEYS, max_size=30, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    keys += rng.integers(0, 2**64, draw(st.sampled_from([0, 0, 500])), np.uint64, endpoint=False).tolist()
    return {key: _postings(rng, draw(st.sampled_from([1, 2, 70])) if key < 40 else 1, detail_bytes) for key in keys}


def _postings(rng: np.random.Generator, count: int, detail_bytes: int) -> list[Posting]:
    entries = np.unique(rng.integers(_FIRST, _STOP, count)).tolist()
    return [(entry, int(rng.integers(0, 2**63)) % 256**detail_bytes) for entry in entries]


_SECTIONS = st.tuples(*map(_lists, DETAIL_BYTES))


def _write(path: Path, sections: tuple[Lists, ...], bits: int = 0) -> None:
    """Write a run, with each section in parts by the upper bits of its keys, at most those that select a block."""
    write_run(path, _FIRST, _STOP, [_parts(lists, bits) for lists in sections])


def _parts(lists: Lists, bits: int) -> list[KeyedPostings]:
    bits = min(bits, block_bits_of(sum(map(len, lists.values()))))
    each = [{key: found for key, found in lists.items() if key >> 64 - bits == part} for part in range(1 << bits)]
    return [flat_of(sorted_rows(part)) for part in each]


def _sample() -> tuple[Lists, ...]:
    """Return three sections of several blocks each."""
    rng = np.random.default_rng(8)
    keys = rng.integers(0, 2**64, (3, 300), np.uint64, endpoint=False).tolist()
    return tuple(
        {key: _postings(rng, 2, detail) for key in own} for own, detail in zip(keys, DETAIL_BYTES, strict=True)
    )


def _read_all(run: Run, kind: int, keys: U64) -> list[list[Posting]]:
    return hits_of(run.find(kind, keys, np.full(len(keys), 9), 0, no_hits(len(keys)))[0], len(keys))


@pytest.mark.parametrize("shared", [False, True])
@given(sections=_SECTIONS, bits=st.sampled_from([0, 1, 3]), asked=_ASKED, room=st.integers(0, 4), floor=st.data())
@_IN_DIRECTORY
def test_found_is_what_a_dictionary_has(  # as many as are drawn
    tmp_path: Path,
    sections: tuple[Lists, ...],
    bits: int,
    asked: list[int],
    room: int,
    floor: st.DataObject,
    *,
    shared: bool,
) -> None:
    """In each section, the newest postings of each key are found, up to its room, of entries from the floor up."""
    _write(tmp_path / "run", sections, bits)
    lowest = floor.draw(st.integers(_FIRST - 1, _STOP + 1))
    with opened(tmp_path / "run", shared=shared) as run:
        assert (run.first, run.stop, run.entries) == (_FIRST, _STOP, _STOP - _FIRST)
        for kind, lists in enumerate(sections):
            keys = sorted({*asked, *lists})
            # Some keys ask for none.
            wanted = rooms(*(room if place % 5 else 0 for place in range(len(keys))))
            expected = [newest(lists, key, most, lowest) for key, most in zip(keys, wanted.tolist(), strict=True)]
            left = [most - len(found) for most, found in zip(wanted.tolist(), expected, strict=True)]
            hits, blocks = run.find(kind, u64(keys), wanted, lowest, no_hits(len(keys)))
            assert hits_of(hits, len(keys)) == expected
            assert wanted.tolist() == left
            assert blocks <= run.sections[kind].blocks
            assert run.sections[kind].keys == len(lists)
            assert run.sections[kind].postings == sum(map(len, lists.values()))


@given(sections=_SECTIONS, bounds=st.lists(_KEYS, max_size=4).map(sorted))
@_IN_DIRECTORY
def test_parts_are_the_postings_between_two_keys(
    tmp_path: Path, sections: tuple[Lists, ...], bounds: list[int]
) -> None:
    """The parts of a section, split at any keys, add up to the section."""
    _write(tmp_path / "run", sections)
    with opened(tmp_path / "run") as run:
        for kind, lists in enumerate(sections):
            for begin, end in pairwise([0, *bounds, None]):
                assert begin is not None
                part = {key: found for key, found in lists.items() if begin <= key and (end is None or key < end)}
                assert rows_of(run.postings_between(kind, begin, end)) == sorted_rows(part)


def test_a_block_is_read_once_for_all_its_keys(tmp_path: Path) -> None:
    """Keys in the same block take one read, and absent keys hardly any."""
    keys = [place << 54 for place in range(0, 1000, 2)]
    _write(tmp_path / "run", ({key: [(_FIRST, 0)] for key in keys},))
    with opened(tmp_path / "run") as run:
        assert run.sections[0].blocks == 8
        assert run.find(0, u64(keys), np.full(500, 1), 0, no_hits(500))[1] == 8
        # An eighth of all keys, some of them present.
        assert run.find(0, u64(keys[:64]), np.full(64, 1), 0, no_hits(64))[1] == 1
        hits, absent = run.find(0, u64(key + (1 << 54) for key in keys), np.full(500, 1), 0, no_hits(500))
        assert hits.used.tolist() == [0, 0]
        # Of 500 absent keys, the filter reports one or two as present.
        assert absent < 5


def test_a_list_larger_than_most_blocks_is_found(tmp_path: Path) -> None:
    """A block holds all postings of its keys, so one with 500 entries of eight bytes is much larger than others."""
    lists = {7: [(entry, entry) for entry in range(_FIRST, _STOP)], 9: [(_FIRST, 1)]}
    _write(tmp_path / "run", ({}, {}, lists))
    with opened(tmp_path / "run") as run:
        hits, _ = run.find(2, u64([6, 7, 8, 9]), np.full(4, 1000), 0, no_hits(4))
        assert hits_of(hits, 4) == [[], lists[7], [], lists[9]]


def test_a_block_in_two_parts_is_refused(tmp_path: Path) -> None:
    """Part of a block cannot be written, because what follows it would be lost."""
    parts = [flat_of([(1, _FIRST, 0)]), flat_of([(2, _FIRST, 0)])]
    with pytest.raises(ValueError, match="two parts"):
        write_run(tmp_path / "run", _FIRST, _STOP, [parts])


# ------------------------------------------------------------------------------------------------ damage


@pytest.mark.parametrize("kind", range(3))
def test_every_flipped_byte_of_a_block_is_heard_when_it_is_read(tmp_path: Path, kind: int) -> None:
    """Whether looked up or read as a part, a corrupt block is an error that names the file; others stay readable."""
    sections, path = _sample(), tmp_path / "0-1.run"
    _write(path, sections)
    with opened(path) as run:
        section, layout = run.sections[kind], run.sections[kind].layout
    keys = [[key for key in sorted(sections[kind]) if key >> 64 - layout.block_bits == block] for block in (0, 1)]
    begin, end = (block_start(layout, rows_before(section.fences, block), block) for block in (1, 2))
    for place in range(begin, end):
        flip(path, section.start + place)
        with opened(path) as run:
            with pytest.raises(StoreDamagedError, match=r"0-1\.run .*checksum of a block"):
                _read_all(run, kind, u64(keys[1][:1]))
            with pytest.raises(StoreDamagedError, match=r"0-1\.run .*checksum of a block"):
                run.postings_between(kind, 0, None)
            assert _read_all(run, kind, u64(keys[0][:1])) == [sections[kind][keys[0][0]]]
        flip(path, section.start + place)
    with opened(path) as run:
        assert _read_all(run, kind, u64(keys[1])) == [sections[kind][key] for key in keys[1]]


@pytest.mark.parametrize("shared", [False, True])
def test_every_flipped_byte_behind_the_blocks_is_heard_at_opening(tmp_path: Path, *, shared: bool) -> None:
    """Fences, filters and footer: if any of their bytes is wrong, the run does not open."""
    path = tmp_path / "0-1.run"
    _write(path, _sample())
    with opened(path) as run:
        behind = run.sections[-1].stop
    size = path.stat().st_size
    for place in [*range(behind, size - 200, 7), *range(size - 200, size)]:
        flip(path, place)
        with pytest.raises(StoreDamagedError, match=r"0-1\.run .*state restore --fresh"):
            _open(path, shared=shared)
        flip(path, place)
    _open(path, shared=shared)


def _open(path: Path, *, shared: bool = False) -> None:
    with opened(path, shared=shared):
        pass


def test_reading_where_memory_is_shared_changes_nothing(tmp_path: Path) -> None:
    """That a block was found sound is noted in private memory, not in the file."""
    path, sections = tmp_path / "run", _sample()
    _write(path, sections)
    before = path.read_bytes()
    with opened(path, shared=True) as run:
        for kind, lists in enumerate(sections):
            keys = sorted(lists)
            assert _read_all(run, kind, u64(keys)) == [lists[key] for key in keys]
    assert path.read_bytes() == before


def test_a_file_cut_short_does_not_open(tmp_path: Path) -> None:
    """A file with bytes missing or added at its end is not a run."""
    path = tmp_path / "0-1.run"
    _write(path, _sample())
    sound = path.read_bytes()
    sizes = [*range(0, len(sound), 97), *range(len(sound) - 60, len(sound))]
    for content in (*(sound[:size] for size in sizes), sound + b"\0"):
        path.write_bytes(content)
        with pytest.raises(StoreDamagedError, match=r"0-1\.run"):
            _open(path)


def test_blocks_that_are_gone_are_heard(tmp_path: Path) -> None:
    """If a file is truncated while open, both ways of reading fail."""
    path, sections = tmp_path / "0-1.run", _sample()
    _write(path, sections)
    with opened(path) as run:
        os.truncate(path, 100)
        with pytest.raises(StoreDamagedError, match="cannot be read"):
            _read_all(run, 2, u64(sorted(sections[2])))
        with pytest.raises(StoreDamagedError, match="cannot be read"):
            run.postings_between(2, 0, None)
