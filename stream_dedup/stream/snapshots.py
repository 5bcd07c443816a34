"""Snapshots of a state, also while a service runs on it: asked for and answered by files in the state's directory.

Knows the two files; knows nothing of what a state holds. Whoever may write into the directory may ask.
"""

import time
from pathlib import Path

import orjson
import structlog

from stream_dedup.index.rocks import RocksStore
from stream_dedup.index.store import StoreError

_REQUEST, _ANSWER = "snapshot.request", "snapshot.answer"
_LOOK_SECONDS = 0.1

log = structlog.get_logger()


class SnapshotDesk:
    """The service's side: looks for a request now and then and does what it asks.

    Args:
        directory: `state.directory`.
        store: what is copied.
        digest: names the copy in the directory that is asked for, as it names the state.
    """

    def __init__(self, directory: Path, store: RocksStore, digest: str) -> None:
        self._directory = directory
        self._store = store
        self._digest = digest

    def serve(self) -> None:
        """Make the snapshot that was asked for, if there is a request."""
        request = self._directory / _REQUEST
        if request.is_file():
            # Whatever becomes of a request, the stream goes on.
            try:
                self._serve(request)
            except OSError as error:
                log.warning("snapshot_failed", error=str(error))

    def _serve(self, request: Path) -> None:
        try:
            target = Path(orjson.loads(request.read_bytes())["directory"])
            self._store.checkpoint(target / self._digest)
            answer = {"directory": str(target), "error": None}
            log.info("snapshot_made", directory=str(target))
        except (StoreError, OSError, ValueError, TypeError, KeyError) as error:
            answer = {"directory": "", "error": str(error)}
            log.warning("snapshot_failed", error=str(error))
        request.unlink(missing_ok=True)
        _write(self._directory / _ANSWER, answer)


def ask(directory: Path, target: Path, seconds: float) -> None:
    """Ask the service that runs on a state for a snapshot, and wait for it.

    Args:
        directory: `state.directory`.
        target: directory of the snapshot.
        seconds: how long to wait.

    Raises:
        StoreError: the service could not, or did not answer.
    """
    answer = directory / _ANSWER
    answer.unlink(missing_ok=True)
    _write(directory / _REQUEST, {"directory": str(target.absolute())})
    deadline = time.monotonic() + seconds
    while not answer.is_file():
        if time.monotonic() > deadline:
            (directory / _REQUEST).unlink(missing_ok=True)
            raise StoreError(f"the process that holds {directory} made no snapshot within {seconds:.0f} s")
        time.sleep(_LOOK_SECONDS)
    told = orjson.loads(answer.read_bytes())
    answer.unlink(missing_ok=True)
    if told["error"]:
        raise StoreError(f"no snapshot: {told['error']}")


def _write(path: Path, content: dict[str, str | None]) -> None:
    # In one go: the other side must not read the half of it.
    part = path.with_suffix(".part")
    part.write_bytes(orjson.dumps(content))
    part.replace(path)
