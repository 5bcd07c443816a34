"""Ctrl-C and errors in the middle of a call: the state stays whole, or the engine says that it cannot go on.

Knows signals and what users call; what the state must hold is checked by `state verify`.
"""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from stream_dedup import Deduplicator
from stream_dedup.engine.state import State
from stream_dedup.index.stores.store import StoreError
from stream_dedup.settings import load_settings
from stream_dedup.stream.state.restore import verify
from tests.engine.samples import articles
from tests.stream.arguments import REPOSITORY, clean_environment

_BATCH = 10
# In a process of its own: the test runner's main thread may be elsewhere, or have a handler of its own.
_HURRIED = f"""
    import json, os, random, signal, sys, threading, time
    from collections import Counter
    from stream_dedup import Deduplicator
    from tests.engine.samples import articles

    stream, chance, outcomes, took = articles(), random.Random(sys.argv[2]), Counter(done=0), 0.03
    with Deduplicator(sys.argv[1]) as engine:
        engine.warm_up()
        for start in range(0, len(stream) - {_BATCH}, {_BATCH}):
            timer = threading.Timer(chance.uniform(0.0, took), os.kill, (os.getpid(), signal.SIGINT))
            outcome, began = "done", time.perf_counter()
            try:
                timer.start()
                engine.add_batch(stream[start:start + {_BATCH}])
                took = time.perf_counter() - began  # the next signal comes within as long
            except BaseException as error:
                outcome = type(error).__name__
            try:
                timer.join()
            except KeyboardInterrupt:
                pass
            outcomes[outcome] += 1
        print(json.dumps([outcomes, engine.progress.judged]))
"""
# Ctrl-C while the word lists are read, by compiled loops.
_OPENED = """
    import signal, sys
    from stream_dedup import Deduplicator
    from stream_dedup.engine import dedup

    steps, parts_of = [], dedup.parts_of

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        steps.append("went on")
        return parts_of(*arguments)

    dedup.parts_of = interrupted
    try:
        Deduplicator(sys.argv[1])
    except KeyboardInterrupt:
        steps.append("interrupted")
    dedup.parts_of = parts_of
    Deduplicator(sys.argv[1]).close()
    print(*steps, sep=", ")
"""


def _run(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        cwd=REPOSITORY,
        env=clean_environment({"PYTHONPATH": ":".join(sys.path)}),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _faults(directory: Path) -> list[str]:
    settings = load_settings(flags=[f"state.directory={directory}"])
    return list(verify(settings, lambda *_: None, with_changelog=False))


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_ctrl_c_waits_for_the_end_of_a_call(tmp_path: Path, seed: int) -> None:
    """Whenever it comes, it is a KeyboardInterrupt, the process goes on, and no batch is remembered in part."""
    outcomes, judged = json.loads(_run(_HURRIED, str(tmp_path / "state"), str(seed)))
    assert set(outcomes) <= {"done", "KeyboardInterrupt"}
    assert outcomes["KeyboardInterrupt"] > 0
    assert outcomes["done"] * _BATCH <= judged <= sum(outcomes.values()) * _BATCH
    assert judged % _BATCH == 0
    assert not _faults(tmp_path / "state")


def test_ctrl_c_waits_until_an_engine_is_open(tmp_path: Path) -> None:
    """It is a KeyboardInterrupt then too, not a SystemError of the loop that it came in, and the directory is free."""
    assert _run(_OPENED, str(tmp_path / "state")) == "went on, interrupted\n"


def test_error_in_the_middle_of_a_change_ends_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in memory is behind the store: to go on would give numbers twice. A new engine resumes."""
    first, second = articles()[:50], articles()[50:100]

    def fail(*_: object) -> None:
        raise MemoryError

    with Deduplicator(tmp_path / "state") as engine:
        with monkeypatch.context() as patched:
            patched.setattr(State, "_advance", fail)
            with pytest.raises(MemoryError):
                engine.add_batch(first)
        for use in (lambda: engine.add_batch(second), engine.positions):
            with pytest.raises(StoreError, match="interrupted while it applied a change"):
                use()
    with Deduplicator(tmp_path / "state") as engine:
        assert engine.progress.judged == len(first)
        engine.add_batch(second)
    assert not _faults(tmp_path / "state")


def test_store_that_refuses_a_change_does_not_end_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has changed then: the same batch can be added again."""
    with Deduplicator(tmp_path / "state") as engine:

        def full(*_: object) -> None:
            raise StoreError("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(engine.state.store, "write", full)
            with pytest.raises(StoreError, match="the disk is full"):
                engine.add_batch(articles()[:50])
        engine.add_batch(articles()[:50])
        assert engine.progress.judged == 50
    assert not _faults(tmp_path / "state")
