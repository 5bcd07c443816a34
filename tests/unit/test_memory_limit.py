"""The memory limit of a control group and what is used of it, in both versions, in a container and outside."""

from pathlib import Path

import pytest

from stream_dedup.memory_limit import MemoryLimit, memory_limit

_NONE_OF_VERSION_1 = "9223372036854771712"


@pytest.mark.parametrize(
    ("membership", "files", "size"),
    [
        ("0::/", {"memory.max": "4294967296"}, 4 << 30),
        ("0::/", {"memory.max": "max"}, 0),
        ("0::/system.slice/a.service", {"system.slice/a.service/memory.max": "1000", "memory.max": "max"}, 1000),
        ("0::/pod/box", {"pod/memory.max": "1000", "pod/box/memory.max": "2000"}, 1000),
        ("0::/pod/box", {"pod/memory.max": "3000", "pod/box/memory.max": "2000"}, 2000),
        ("0::/not/mounted", {"memory.max": "1000"}, 1000),
        ("5:cpu,memory:/box\n3:pids:/box", {"memory/box/memory.limit_in_bytes": "1000"}, 1000),
        ("5:memory:/docker/abc", {"memory/memory.limit_in_bytes": "1000"}, 1000),
        ("5:memory:/", {"memory/memory.limit_in_bytes": _NONE_OF_VERSION_1}, 0),
        ("0::/", {}, 0),
    ],
)
def test_narrowest_limit_counts(membership: str, files: dict[str, str], size: int, tmp_path: Path) -> None:
    """The smallest of the process's group and its ancestors applies; no limit is 0."""
    assert _limit(membership, files, tmp_path).size == size


@pytest.mark.parametrize(
    ("membership", "files", "used"),
    [
        ("0::/", {"memory.max": "1000", "memory.stat": "anon 700\nfile 5000\nanon_thp 3"}, 700),
        (
            "0::/pod/box",
            {
                "pod/memory.max": "1000",
                "pod/memory.stat": "anon 900",
                "pod/box/memory.max": "2000",
                "pod/box/memory.stat": "anon 500",
            },
            900,
        ),
        (
            "5:memory:/",
            {"memory/memory.limit_in_bytes": "1000", "memory/memory.stat": "rss 300\ntotal_cache 8000\ntotal_rss 800"},
            800,
        ),
        ("0::/", {"memory.max": "1000"}, None),
    ],
)
def test_what_counts_is_all_anonymous_memory_under_the_narrowest_limit(
    membership: str, files: dict[str, str], used: int | None, tmp_path: Path
) -> None:
    """It is that of the group whose limit applies, with the groups below it."""
    assert _limit(membership, files, tmp_path).used == used


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    """On a platform without control groups there is no limit, and nobody tells what is used."""
    assert memory_limit(tmp_path / "missing", tmp_path) == (0, None)


def _limit(membership: str, files: dict[str, str], folder: Path) -> MemoryLimit:
    told = folder / "cgroup"
    told.write_text(f"{membership}\n", encoding="utf-8")
    for name, value in files.items():
        file = folder / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n", encoding="utf-8")
    return memory_limit(told, folder / "groups")
