"""The tools that do damage: the damage is done, and undone where it must be."""

import os
import resource
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from stream_dedup.stream.protocol import Step
from tests.faults.chaos import delete_state, disk_bytes, file_limit, flip_bytes, fused, small_disk, truncate_manifest

_KEYS = [f"{number:06}".encode() for number in range(20_000)]
_MEGABYTE = 1 << 20


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A closed RocksDB database with a table, one folder below."""
    database = Rdict(str(tmp_path / "below"), Options(raw_mode=True))
    for key in _KEYS:
        database[key] = os.urandom(20)
    database.flush()
    database.close()
    return tmp_path


def _read(state: Path) -> int:
    database = Rdict(str(state / "below"), Options(raw_mode=True))
    try:
        return sum(database[key] is not None for key in _KEYS if key in database)
    finally:
        database.close()


def test_sound_database_is_read(state: Path) -> None:
    """Before any damage, all keys are there."""
    assert _read(state) == len(_KEYS)


def test_flipped_bytes_are_noticed_by_rocksdb(state: Path) -> None:
    """A table with flipped bytes cannot be read to the end."""
    flip_bytes(state)
    with pytest.raises(Exception, match="Corruption"):  # RocksDB's errors have no class of their own
        _read(state)


def test_truncated_manifest_is_not_noticed_by_rocksdb(state: Path) -> None:
    """A database whose list of files is cut off opens without an error, and its tables are gone."""
    truncate_manifest(state)
    assert _read(state) == 0


def test_deleted_state_is_gone(state: Path) -> None:
    """Nothing is left of a deleted state."""
    assert disk_bytes(state) > _MEGABYTE / 4
    delete_state(state)
    assert not state.exists()
    assert disk_bytes(state) == 0


def _fill(file: Path, size: int) -> None:
    with file.open("wb", buffering=0) as out:
        for _ in range(size >> 12):
            out.write(os.urandom(4096))


@pytest.mark.parametrize("disk", [small_disk, file_limit])
def test_small_disk_runs_full_and_grows(
    disk: Callable[[Path, int], AbstractContextManager[Callable[[], None]]], tmp_path: Path
) -> None:
    """A file larger than the disk fails for lack of space, but fits after it grows; at the end nothing is left.

    This holds for a mounted disk, if this process may mount, and for the limit that replaces it elsewhere.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with disk(tmp_path / "disk", 2 * _MEGABYTE) as grow:
        (tmp_path / "disk").mkdir(exist_ok=True)
        with pytest.raises(OSError, match=r"No space left|File too large"):
            _fill(tmp_path / "disk" / "file", 3 * _MEGABYTE)
        grow()
        _fill(tmp_path / "disk" / "file", 3 * _MEGABYTE)
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == before
    assert str(tmp_path) not in Path("/proc/mounts").read_text(encoding="utf-8")


def test_fused_program_names_step_and_signal() -> None:
    """The program that runs the service with a fuse ends in --, so that the service's arguments follow."""
    assert fused(Step.READ, 3, "stop") == (
        *("tests.faults.runner", "--at", "read", "--after", "3"),
        *("--signal", "stop", "--"),
    )
