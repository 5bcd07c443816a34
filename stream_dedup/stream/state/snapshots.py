"""Snapshots of a state, even while a service runs on it: requested and answered by files in the state's directory.

Knows the two files; knows nothing of what a state holds. Anyone who may write to the directory may ask; each request
has a name of its own, which the answer shares.
"""

import math
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import orjson
import structlog

from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import StoreError

_NAME = "snapshot-{}"
_REQUEST, _ANSWER = ".request", ".answer"
_NAME_BYTES = 8
_LOOK_SECONDS = 0.1
_TURN_SECONDS = 1.0

log = structlog.get_logger()


class SnapshotServer:
    """The service's side: looks for requests now and then and fulfils them.

    Args:
        directory: `state.directory`.
        store: what is copied.
        digest: names the copy in the requested directory, as it names the state.
    """

    def __init__(self, directory: Path, store: RocksStore, digest: str) -> None:
        self._directory = directory
        self._store = store
        self._digest = digest
        self._turned_at = -math.inf

    def turn(self) -> None:
        """Serve, at most once a second."""
        if time.monotonic() - self._turned_at >= _TURN_SECONDS:
            self._turned_at = time.monotonic()
            self.serve()

    def serve(self) -> None:
        """Make the snapshots that were asked for, unless the stream would have to wait long for them."""
        if self._store.is_reclaiming:
            return
        for request in filter(_is_request, sorted(self._directory.glob(_NAME.format("*") + _REQUEST))):
            # Whatever becomes of a request, the others are served and the stream continues.
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
        try:
            request.unlink()
        except FileNotFoundError:
            return  # withdrawn: nobody waits for an answer
        _write(request.with_suffix(_ANSWER), answer)


def ask(directory: Path, target: Path, seconds: float, is_held: Callable[[], bool]) -> bool:
    """Ask the service that runs on a state for a snapshot, wait for it, and return whether it was made.

    It was not if the service has ended in the meantime: then nobody holds the state any more.

    The request is withdrawn when the wait ends: otherwise the next service to run would make the snapshot.

    Args:
        directory: `state.directory`.
        target: directory of the snapshot.
        seconds: how long to wait.
        is_held: tells whether a process holds the state.

    Raises:
        StoreError: the service could not, or did not answer.
    """
    request = directory / (_NAME.format(secrets.token_hex(_NAME_BYTES)) + _REQUEST)
    answer = request.with_suffix(_ANSWER)
    deadline = time.monotonic() + seconds
    try:
        _write(request, {"directory": str(target.absolute())})
        while not answer.is_file():
            if not is_held() and not answer.is_file():
                return False
            if time.monotonic() > deadline:
                raise StoreError(
                    f"the process that holds {directory} made no snapshot within {seconds:.0f} s: try again once "
                    "it has restored its state, or reclaimed the space of an expired generation"
                )
            time.sleep(_LOOK_SECONDS)
        told = orjson.loads(answer.read_bytes())
    finally:
        for file in (request, answer):
            file.unlink(missing_ok=True)
    if told["error"]:
        raise StoreError(f"no snapshot: {told['error']}")
    return True


def _is_request(path: Path) -> bool:
    # A link may lead to where this process may not look.
    with suppress(OSError):
        return path.is_file()
    return False


def _write(path: Path, content: dict[str, str | None]) -> None:
    # Atomically: the other side must not read half of it.
    part = path.with_suffix(".part")
    part.write_bytes(orjson.dumps(content))
    part.replace(path)
