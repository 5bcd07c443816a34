"""Invalid snapshot requests and answers that cannot be written do not stop the stream."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest
from structlog.testing import capture_logs

from stream_dedup.index.peek import is_held
from stream_dedup.index.stores.rocks import RocksStore, open_store
from stream_dedup.index.stores.store import StoreError
from stream_dedup.settings import Settings
from stream_dedup.stream.state import snapshots as snapshots_
from stream_dedup.stream.state.snapshots import SnapshotServer, ask
from stream_dedup.stream.state.states import digest_of, state_directory


@pytest.fixture
def snapshots(tmp_path: Path) -> SnapshotServer:
    """Return a snapshot server with a directory of its own."""
    return SnapshotServer(tmp_path, _store([]), "digest")


@pytest.mark.parametrize("request_", [b"", b"[]", b"null", b"5", b"{}", b'{"directory": 5}', b'{"directory": null}'])
def test_request_that_is_none_is_answered_with_an_error(
    request_: bytes, snapshots: SnapshotServer, tmp_path: Path
) -> None:
    """Anyone who can write into the directory can write anything."""
    request, answer = tmp_path / "snapshot-1.request", tmp_path / "snapshot-1.answer"
    request.write_bytes(request_)
    snapshots.serve()
    assert not request.exists()
    assert orjson.loads(answer.read_bytes())["error"]


def test_answer_that_cannot_be_written_is_told(snapshots: SnapshotServer, tmp_path: Path) -> None:
    """If the disk is full or permissions are missing, it is logged, and the requester gets no answer."""
    (tmp_path / "snapshot-1.request").write_bytes(b"{}")
    (tmp_path / "snapshot-1.part").mkdir()
    with capture_logs() as lines:
        snapshots.serve()
    assert [line["event"] for line in lines] == ["snapshot_failed", "snapshot_failed"]


def test_what_cannot_be_served_keeps_no_other_waiting(snapshots: SnapshotServer, tmp_path: Path) -> None:
    """This holds for a directory named like a request, a link that cannot be followed, and an unwritable answer."""
    (tmp_path / "snapshot-0.request").symlink_to("x" * 300)  # too long for a name
    (tmp_path / "snapshot-1.request").mkdir()
    (tmp_path / "snapshot-2.request").write_bytes(b"{}")
    (tmp_path / "snapshot-2.part").mkdir()
    (tmp_path / "snapshot-3.request").write_bytes(orjson.dumps({"directory": str(tmp_path / "right")}))
    snapshots.serve()
    assert orjson.loads((tmp_path / "snapshot-3.answer").read_bytes())["error"] is None


def test_each_who_asks_has_an_answer_of_its_own(tmp_path: Path) -> None:
    """Of two simultaneous requests, one of them impossible, neither gets the other's answer."""
    made: list[Path] = []
    snapshots = SnapshotServer(tmp_path, _store(made), "digest")
    with ThreadPoolExecutor(2) as threads:
        asked = {
            name: threads.submit(ask, tmp_path, tmp_path / name, 60.0, lambda: True) for name in ("right", "wrong")
        }
        while len(list(tmp_path.glob("*.request"))) < len(asked):
            time.sleep(0.01)
        snapshots.serve()
        assert asked["right"].result()
        with pytest.raises(StoreError, match="there is something already"):
            asked["wrong"].result()
    assert made == [tmp_path / "right" / "digest"]
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


def test_request_that_was_taken_back_leaves_no_answer(tmp_path: Path) -> None:
    """A requester that has given up is gone when the snapshot is ready."""
    request = tmp_path / "snapshot-1.request"
    request.write_bytes(orjson.dumps({"directory": str(tmp_path / "right")}))
    SnapshotServer(tmp_path, _store([], request.unlink), "digest").serve()
    assert list(tmp_path.iterdir()) == []


def test_answer_of_a_service_that_has_ended_since_counts(tmp_path: Path) -> None:
    """It may make the snapshot, answer and stop between two looks of the requester."""

    def is_held() -> bool:
        (request,) = tmp_path.glob("*.request")
        request.with_suffix(".answer").write_bytes(orjson.dumps({"directory": "", "error": None}))
        return False

    assert ask(tmp_path, tmp_path / "right", 60.0, is_held)
    assert list(tmp_path.iterdir()) == []


def test_directory_is_that_of_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service runs in another one: a relative name would mean another place there."""
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []

    def is_held() -> bool:
        asked.extend(orjson.loads(request.read_bytes())["directory"] for request in tmp_path.glob("*.request"))
        return False

    assert not ask(tmp_path, Path("copy"), 60.0, is_held)
    assert asked == [str(tmp_path / "copy")]


def test_stream_does_not_wait_until_space_is_reclaimed(tmp_path: Path) -> None:
    """A compaction may take a minute, for which nothing would be decided: the request is served afterwards."""
    with RocksStore(tmp_path / "state") as store:
        snapshots = SnapshotServer(tmp_path, store, "digest")
        request = tmp_path / "snapshot-1.request"
        request.write_bytes(orjson.dumps({"directory": str(tmp_path / "right")}))
        with store._upkeep:  # noqa: SLF001  # held for as long as the compaction takes
            snapshots.serve()
            assert request.exists()
        snapshots.serve()
    assert not request.exists()
    assert (tmp_path / "right" / "digest").is_dir()


def test_requests_are_looked_for_once_a_second(
    snapshots: SnapshotServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the loop goes round: each time, a directory is read."""
    now = [1_000.0]
    monkeypatch.setattr(snapshots_, "time", SimpleNamespace(monotonic=lambda: now[0]))
    snapshots.turn()
    request = tmp_path / "snapshot-1.request"
    request.write_bytes(b"{}")
    for now[0] in (1_000.0, 1_000.5, 1_000.99):
        snapshots.turn()
        assert request.exists()
    now[0] = 1_001.0
    snapshots.turn()
    assert not request.exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_interrupted_takes_the_request_back(number: signal.Signals, tmp_path: Path) -> None:
    """Otherwise, if a rebuild holds the state, the service that starts next would make this snapshot."""
    settings = Settings.model_validate({"state": {"directory": tmp_path / "state"}})
    flag = f"state.directory={settings.state.directory}"
    command = [sys.executable, "-m", "stream_dedup", "state", "snapshot", str(tmp_path / "copy"), "--set", flag]
    with (
        open_store(state_directory(settings, digest_of(settings)), settings.state),
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process,
    ):
        while not list(settings.state.directory.glob("*.request")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        _, told = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in told) == (128 + number, False)
    assert not [path for path in settings.state.directory.iterdir() if path.is_file()]


@pytest.mark.slow
def test_snapshot_is_made_without_the_service_if_it_dies_meanwhile(tmp_path: Path) -> None:
    """Nobody will answer, and nobody holds the state any more: a killed service's state is whole."""
    settings = Settings.model_validate({"state": {"directory": tmp_path / "state"}})
    database = state_directory(settings, digest_of(settings))
    holding = (
        "import sys, time; from pathlib import Path; from stream_dedup import Deduplicator; "
        "engine = Deduplicator(Path(sys.argv[1])); print(flush=True); time.sleep(600)"
    )
    flag = f"state.directory={settings.state.directory}"
    command = [sys.executable, "-m", "stream_dedup", "state", "snapshot", str(tmp_path / "copy"), "--set", flag]
    with subprocess.Popen([sys.executable, "-c", holding, str(database)], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            holder.stdout.readline()
            assert is_held(database)
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                while not list(settings.state.directory.glob("*.request")):
                    assert process.poll() is None
                    time.sleep(0.01)
                killed = time.monotonic()
                holder.kill()
                _, told = process.communicate(timeout=120)
            assert process.returncode == 0, told
            assert time.monotonic() - killed < 30  # half of the time that it would wait for an answer
        finally:
            holder.kill()
    assert (tmp_path / "copy" / database.name / "CURRENT").is_file()
    assert not is_held(database)
    assert not [path for path in settings.state.directory.iterdir() if path.is_file()]


def _store(made: list[Path], meanwhile: Callable[[], None] = lambda: None) -> RocksStore:
    """Return a store that records the copies it makes, and refuses to make one under the name `wrong`."""

    class Noting(RocksStore):
        is_reclaiming = False

        def __init__(self) -> None:
            pass

        def checkpoint(self, directory: Path) -> None:
            if directory.parent.name == "wrong":
                raise StoreError("there is something already")
            made.append(directory)
            meanwhile()

    return Noting()
