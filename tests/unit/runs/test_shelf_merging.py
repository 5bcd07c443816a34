"""Merging leaves the thread that decides alone: it waits for space, and ends, fails and dies without a loss."""

import os
import shutil
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stream_dedup.index.runs import shelf as shelf_module
from stream_dedup.index.runs.merging import merge_runs
from stream_dedup.index.runs.run import Run, open_run
from stream_dedup.index.runs.shelf import Shelf
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Family, MemoryStore, StoreError, StoreFullError
from tests.stream.waiting import PATIENCE_SECONDS
from tests.unit.runs.files import open_files
from tests.unit.runs.walking import YOUNG, FaultyStore, Now, Walk, add_unmerged

pytestmark = pytest.mark.usefixtures("small_runs")


@pytest.mark.parametrize("at", ["files", "pairs"])
def test_a_full_disk_lets_merging_wait(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """If there is no space for a merged run, its parts stay in use without an error; it is written later."""
    store = FaultyStore()
    with Walk(store) as walk:
        add_unmerged(walk, monkeypatch)
        registry, parts = list(store.items(Family.META)), [run.name for run in walk.shelf.runs]
        merger = Now()
        monkeypatch.setattr(walk.shelf, "_aside", merger)
        descriptors = open_files()
        store.fail(at, StoreFullError("full"))
        for _ in range(4):
            walk.shelf.maintain(walk.progress)
            assert [run.name for run in walk.shelf.runs] == parts
            assert list(store.items(Family.META)) == registry
            walk.check()
        assert merger.submitted >= 3
        store.error = None
        # What was merged last, but not registered, waits to be put in use: the store's file, the run's, its mapping's.
        assert open_files() - descriptors == (3 if at == "pairs" else 0)
        walk.finish()
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, 5 * YOUNG)]
        walk.check()


def test_a_merge_begins_only_if_it_leaves_the_store_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the disk holds the merged file and two write buffers besides, no byte is written; then it is merged."""
    buffer, disk = 1 << 20, SimpleNamespace(free=0)
    store = RocksStore(tmp_path, write_buffer_bytes=buffer)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: disk)
    with Walk(store) as walk:
        add_unmerged(walk, monkeypatch)
        merger = Now()
        monkeypatch.setattr(walk.shelf, "_aside", merger)
        needed = sum(path.stat().st_size for path in (tmp_path / "files").iterdir()) + 2 * buffer
        for disk.free, merges in ((0, 0), (needed - 1, 0), (needed, 1)):
            walk.shelf.maintain(walk.progress)
            assert merger.submitted == merges
        walk.finish()
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, 5 * YOUNG)]
        walk.check()


def test_other_errors_of_a_merge_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge that fails because of damage, or for any reason but space, raises an error."""
    store = FaultyStore()
    with Walk(store) as walk:
        add_unmerged(walk, monkeypatch)
        monkeypatch.setattr(walk.shelf, "_aside", Now())
        store.fail("files", StoreError("broken"))
        walk.shelf.maintain(walk.progress)
        with pytest.raises(StoreError, match="broken"):
            walk.shelf.maintain(walk.progress)
        walk.check()


def test_who_waits_for_all_merges_hears_of_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The merge is not tried again and again; nothing has changed, and later it is made."""
    errors = [StoreFullError("full"), StoreError("tried again")]

    def failing(*_: object) -> None:
        raise errors.pop(0)

    with Walk(MemoryStore()) as walk:
        add_unmerged(walk, monkeypatch)
        with monkeypatch.context() as full:
            full.setattr(shelf_module, "merge_runs", failing)
            with pytest.raises(StoreFullError):
                walk.finish()
        assert len(walk.shelf.runs) == 5
        walk.check()
        walk.finish()
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, 5 * YOUNG)]
        walk.check()


@pytest.mark.parametrize("merging", [False, True], ids=["freezing", "merging"])
def test_a_crash_between_file_and_registry_leaves_nothing(monkeypatch: pytest.MonkeyPatch, *, merging: bool) -> None:
    """A run that was written but not registered is removed at the next opening, and nothing is lost."""
    store = MemoryStore()
    with Walk(store) as walk:
        if merging:
            add_unmerged(walk, monkeypatch)
        else:
            walk.add(YOUNG)
        monkeypatch.setattr(walk.shelf, "_aside", Now())
        before = store.file_names()
        with monkeypatch.context() as dying:
            dying.setattr(Shelf, "_register", _die)
            with pytest.raises(KeyboardInterrupt):
                _settle_twice(walk)
        assert len(store.file_names()) == len(before) + 1
        walk.reopen()
        assert store.file_names() == before
        walk.check()
        walk.check_files()


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def _settle_twice(walk: Walk) -> None:
    """Let what is due start and finish."""
    walk.shelf.maintain(walk.progress)
    walk.shelf.maintain(walk.progress)


def test_a_merge_that_ends_with_the_process_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing ends a merge in progress between two stretches and leaves nothing of it; the next shelf merges again."""
    store = RocksStore(tmp_path)
    with Walk(store) as walk:
        add_unmerged(walk, monkeypatch)
        parts = sorted(store.file_names())
        with monkeypatch.context() as slow:
            begun, heard = threading.Event(), list[bool]()
            closes = walk.shelf._closing  # noqa: SLF001  # a merge takes too little time here to be caught in the middle

            def slowly(*told: Any) -> None:  # noqa: ANN401  # passed on
                begun.set()
                heard.append(closes.wait(60))
                merge_runs(*told)

            slow.setattr(shelf_module, "merge_runs", slowly)
            walk.shelf.maintain(walk.progress)
            assert begun.wait(PATIENCE_SECONDS)
            walk.shelf.close()
        assert heard == [True]
        assert sorted(store.file_names()) == parts
        assert not any((tmp_path / "scratch").iterdir())
        walk.reopen()
        assert sorted(store.file_names()) == parts
        walk.check()
        walk.finish()
        # Reopened, it has frozen the last four entries as well.
        assert [(run.first, run.stop) for run in walk.shelf.runs] == [(0, 5 * YOUNG), (5 * YOUNG, 6 * YOUNG)]
        walk.check()
        walk.check_files()


def test_threads_beside_the_one_that_decides_open_what_they_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that decides does not read the filters of a run, whether it was frozen or merged."""
    opened: dict[str, set[int]] = {}

    def noting(name: str, *told: Any, **how: Any) -> Run:  # noqa: ANN401  # passed on
        run = open_run(name, *told, **how)
        opened.setdefault(threading.current_thread().name, set()).add(run.entries)
        return run

    monkeypatch.setattr(shelf_module, "open_run", noting)
    with Walk(MemoryStore()) as walk:
        _merge_more(walk)
    assert all(thread.startswith("runs") for thread in opened)
    sizes = set().union(*opened.values())
    assert min(sizes) == YOUNG < max(sizes)


def test_removing_what_was_merged_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are removed by a thread of its own, and an error there is raised once, when the shelf is next used."""
    store = FaultyStore()
    with Walk(store) as walk:
        _merge_more(walk)
        assert store.removing
        assert threading.current_thread() not in store.removing
        monkeypatch.setattr(walk.shelf, "_remover", Now())  # else the next ones might fail before the first is heard of
        store.fail("removals", StoreError("cannot be removed"))
        with pytest.raises(StoreError, match="cannot be removed"):
            _merge_more(walk)
        store.error = None
        walk.shelf.maintain(walk.progress)
        walk.check()
        walk.reopen()
        walk.check_files()


def test_closing_waits_for_a_removal_under_way() -> None:
    """Nothing uses the store once the shelf is closed."""
    begun, released, ended = threading.Event(), threading.Event(), threading.Event()

    class Slow(MemoryStore):
        def remove_files(self, names: Sequence[str]) -> None:
            known = set(names) & set(self.file_names())
            if known:
                begun.set()
                released.wait(PATIENCE_SECONDS)
            super().remove_files(names)
            if known:
                ended.set()

    with Walk(Slow()) as walk:
        walk.add(YOUNG)
        walk.finish()
        for _ in range(3):
            walk.begin_generation()
        walk.shelf.maintain(walk.progress)
        assert begun.wait(PATIENCE_SECONDS)
        threading.Timer(0.1, released.set).start()
        walk.shelf.close()
        assert ended.is_set()


def _merge_more(walk: Walk) -> None:
    """Add so many entries that runs are merged."""
    for _ in range(6):
        walk.add(YOUNG)
    walk.finish()


def test_closing_closes_a_merged_run_that_is_not_in_use_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge that ended just before the shelf was closed leaves no file open."""
    store, before, merger = MemoryStore(), open_files(), Now()
    with Walk(store) as walk:
        add_unmerged(walk, monkeypatch)
        monkeypatch.setattr(walk.shelf, "_aside", merger)
        walk.shelf.maintain(walk.progress)
        assert merger.submitted == 1
        walk.shelf.close()
        assert open_files() - before == len(store.file_names())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")
def test_freezing_and_merging_let_others_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their threads have a lower priority than the one that adds entries, whose priority stays."""
    before, seen = os.getpriority(os.PRIO_PROCESS, 0), dict[int, int]()

    def noting(*told: Any, **how: Any) -> Run:  # noqa: ANN401  # passed on
        run = open_run(*told, **how)
        seen[run.entries] = os.getpriority(os.PRIO_PROCESS, 0)
        return run

    monkeypatch.setattr(shelf_module, "open_run", noting)
    with Walk(MemoryStore()) as walk:
        add_unmerged(walk, monkeypatch)
        walk.finish()
        walk.check()
    assert seen.keys() == {YOUNG, 5 * YOUNG}
    assert min(seen.values()) > before == os.getpriority(os.PRIO_PROCESS, 0)


def test_who_waits_for_a_merge_is_heard_and_may_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """With twelve runs unmerged everything waits, and shows it again and again; given up, it can go on later."""
    released, waits, most = threading.Event(), 0, 3

    def waiting() -> None:
        nonlocal waits
        waits += 1
        if waits >= most:
            raise _StoppedError

    def slowly(*told: Any) -> None:  # noqa: ANN401  # passed on
        released.wait(PATIENCE_SECONDS)
        merge_runs(*told)

    monkeypatch.setattr(shelf_module, "merge_runs", slowly)
    monkeypatch.setattr(shelf_module, "_SLICE_SECONDS", 0.01)
    store = MemoryStore()
    store.while_waiting = waiting
    with Walk(store) as walk:
        try:
            while len(walk.shelf.runs) < 12:
                walk.add(YOUNG)
                freezing = walk.shelf._freezing  # noqa: SLF001  # waited for here, so that only merges count
                wait([] if freezing is None else [freezing])
            assert waits == 0
            with pytest.raises(_StoppedError):
                walk.shelf.maintain(walk.progress)
        finally:
            released.set()
        assert waits == most
        most = 1 << 30
        walk.finish()
        walk.check()
        walk.check_files()


class _StoppedError(Exception):
    pass
