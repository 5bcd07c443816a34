"""After `stream-dedup dedup --state` is killed, the same command completes the results.

Uses real processes and a real directory; `tests/unit/test_files_resumed.py` tests every point in a batch.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import IO

import orjson
import pytest

from deploy.demo.samples import sample_stream

_ROOT = Path(__file__).parents[2]
_NAMES = ("unique.jsonl", "links.jsonl", "dead.jsonl")
_DEADLINE_SECONDS = 240
_END_SECONDS = 60


def _lines(out: Path) -> dict[str, list[bytes]]:
    return {name: (out / name).read_bytes().splitlines() if (out / name).exists() else [] for name in _NAMES}


def _started(file: Path, out: Path, state: Path, stdin: IO[bytes] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "stream_dedup", "dedup", str(file), "--out", str(out), "--state", str(state)]
    command += ["--set", "commit.articles=4"]
    return subprocess.Popen(command, cwd=_ROOT, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _ended(process: subprocess.Popen[str], number: signal.Signals, out: Path, records: int) -> int:
    """Stop a run once there are that many results, and return its exit code."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while sum(map(len, _lines(out).values())) < records and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(number)
    process.communicate(timeout=_END_SECONDS)
    return process.returncode


def test_killed_run_goes_on_with_the_same_command(tmp_path: Path) -> None:
    """After SIGKILL and after SIGTERM, each record is in the results once, the unique ones in order."""
    # So many that a run is still going when its progress is noticed.
    values = [sample.value for seed in (20, 21, 22) for sample in sample_stream(seed) if sample.value is not None]
    file, out, state = tmp_path / "in.jsonl", tmp_path / "out", tmp_path / "state"
    file.write_bytes(b"".join(value + b"\n" for value in values))
    assert _ended(_started(file, out, state), signal.SIGKILL, out, 50) == -signal.SIGKILL
    assert _ended(_started(file, out, state), signal.SIGTERM, out, 150) == 128 + signal.SIGTERM
    last = _started(file, out, state)
    told, errors = last.communicate(timeout=_DEADLINE_SECONDS)
    assert (last.returncode, "results in" in told) == (0, True), errors
    found = _lines(out)
    numbers = [orjson.loads(line)["offset"] for line in found["links.jsonl"]]
    numbers += [orjson.loads(line)["number"] for line in found["dead.jsonl"]]
    assert max(Counter(numbers).values()) == 1
    unique = [value for number, value in enumerate(values, 1) if number not in set(numbers)]
    assert found["unique.jsonl"] == unique


@pytest.mark.parametrize("named", [False, True], ids=["standard input", "named"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_ends_though_its_pipe_brings_nothing(number: signal.Signals, tmp_path: Path, *, named: bool) -> None:
    """The writer need not be stopped first; what was judged before is in the results."""
    values = [sample.value for sample in sample_stream() if sample.value is not None][:20]
    pipe, out = tmp_path / "in.jsonl", tmp_path / "out"
    os.mkfifo(pipe)
    with pipe.open("r+b", buffering=0) as writer, pipe.open("rb") as reader:  # "r+": opening does not block
        run = _started(pipe if named else Path("-"), out, tmp_path / "state", None if named else reader)
        writer.write(b"".join(value + b"\n" for value in values))
        assert _ended(run, number, out, 4) == 128 + number
    assert sum(map(len, _lines(out).values())) % 4 == 0
