"""Gets the jars of a lock file into a cache folder, whole and verified, with jgo's Maven client.

Knows Maven repositories and the cache; does not know what is in the jars, nor how Java is started.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from jgo.config import GlobalSettings
from jgo.constants import MAVEN_CENTRAL_URL
from jgo.maven import Artifact, MavenContext
from rich.console import Console
from rich.progress import track

from stream_dedup.jars.lock import Jar, JarError, JarLock, sha256_of

DOWNLOADS_AT_ONCE = 8
ATTEMPTS = 3
HTTP_TIMEOUT_SECONDS = 60
_STAGING = ".staging-"


def locked_jars(lock_file: Path, folder: Path) -> list[Path]:
    """Return the verified jars of a lock file, in its order, fetching those that are missing.

    Args:
        lock_file: names the jars.
        folder: where they are kept.

    Raises:
        JarError: a jar cannot be fetched, or its SHA-256 is not the locked one.
    """
    lock = JarLock.read(lock_file)
    if _missing(lock, folder):
        _fill(lock, folder)
    # Sums are checked on every call, not only after a download: 45 MB take 36 ms.
    for jar in lock.jars:
        jar.verify(folder / jar.filename)
    return [folder / jar.filename for jar in lock.jars]


def cache_folder(name: str) -> Path:
    """Return the folder of a set of jars, following the XDG base directory convention."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "stream-dedup" / name


def renew(lock_file: Path) -> JarLock:
    """Resolve the roots of a lock file again, with all their dependencies, and write the jars' sums into it."""
    roots = JarLock.read(lock_file).roots
    with TemporaryDirectory() as repository:
        artifacts = _resolve(roots, Path(repository))
        jars = [
            Jar(_coordinate(artifact), sha256_of(artifact.resolve()))
            for artifact in track(artifacts, "Locking jars", console=Console(stderr=True))
        ]
    lock = JarLock(roots, tuple(jars))
    lock.write(lock_file)
    return lock


def _missing(lock: JarLock, folder: Path) -> list[Jar]:
    return [jar for jar in lock.jars if not (folder / jar.filename).exists()]


def _fill(lock: JarLock, folder: Path) -> None:
    """Fetch what is missing while no other process does; the second to come finds nothing left to do."""
    folder.mkdir(parents=True, exist_ok=True)
    with _exclusive(folder / ".lock"):
        _sweep(folder)
        if missing := _missing(lock, folder):
            console = Console(stderr=True)
            console.print(f"Fetching {len(missing)} jars into {folder}", highlight=False, soft_wrap=True)
            _fetch_all(missing, folder, console)


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    # The kernel drops a flock with the process, so a killed holder never blocks the next one.
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sweep(folder: Path) -> None:
    """Remove what a killed process left behind; only the holder of the lock stages, so all of it is stale."""
    for leftover in folder.glob(f"{_STAGING}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _fetch_all(jars: list[Jar], folder: Path, console: Console) -> None:
    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        fetched = pool.map(lambda jar: _fetch(jar, folder), jars)
        for _ in track(fetched, "Fetching jars", total=len(jars), console=console):
            pass


def _fetch(jar: Jar, folder: Path) -> None:
    """Download and verify in a staging folder: under its own name a jar appears whole or not at all."""
    with TemporaryDirectory(prefix=_STAGING, dir=folder) as staging:
        path = _download(jar.coordinate, Path(staging))
        jar.verify(path)
        path.replace(folder / jar.filename)


def _download(coordinate: str, staging: Path) -> Path:
    for attempt in range(1, ATTEMPTS + 1):
        # A folder for each attempt: jgo takes the torn file of a failed one for a complete jar.
        repository = staging / str(attempt)
        time.sleep(attempt - 1)
        try:
            return _maven(repository).create_dependency(coordinate).artifact.resolve()
        except (OSError, RuntimeError) as error:
            failure = error
    raise JarError(f"cannot fetch {coordinate} ({ATTEMPTS} attempts): {failure}") from failure


def _maven(repository: Path) -> MavenContext:
    """Build a client with a private local repository, and the mirrors of the user's jgo settings."""
    remotes = {"central": MAVEN_CENTRAL_URL} | GlobalSettings.load().repositories
    return MavenContext(repo_cache=repository, remote_repos=remotes, timeout=HTTP_TIMEOUT_SECONDS)


def _resolve(roots: tuple[str, ...], repository: Path) -> list[Artifact]:
    # The resolver alone: jgo's environment builder would look for a JDK, to tell modules from plain jars.
    maven = _maven(repository)
    inputs, transitive = maven.resolver.resolve([maven.create_dependency(root) for root in roots])
    return [dependency.artifact for dependency in (*inputs, *transitive)]


def _coordinate(artifact: Artifact) -> str:
    return f"{artifact.groupId}:{artifact.artifactId}:{artifact.version}"
