"""Compiles loops with numba, once per installation.

Knows where compiled code is cached and when it is stale; knows nothing of the loops themselves.
"""

import atexit
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from shutil import disk_usage
from typing import Any, TypeVar, cast

import numba
from numba.core.event import Listener, install_listener, trigger_event

from stream_dedup.scratch import Scratch

_Function = TypeVar("_Function", bound=Callable[..., Any])
_ROOM_BYTES = 50 << 20  # a service's loops take 18 MB
_IMPORT = re.compile(r"^from stream_dedup\.([\w.]+) import (\([^)]*\)|.*)$", re.MULTILINE)
_NAME = re.compile(r"\w+")
_COMPILING = "numba:compile"  # numba's name of the event


def kernel(function: _Function) -> _Function:
    """Compile a function with numba: it runs without the GIL, is cached on disk, and keeps its types for the checker.

    Compiled code is cached in `$NUMBA_CACHE_DIR`, or else in the user's cache directory. A cache that cannot be written
    to, as in a container image, is used if root owns it. If there is neither, code is compiled at each start: a
    directory that others can write to would let them run code in this process. So it is while a new cache has no room.
    """
    directory = cache_directory()
    if directory is None:
        return cast("_Function", numba.njit(nogil=True)(function))
    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, str(directory)
    try:
        return cast("_Function", numba.njit(cache=True, nogil=True)(function))
    finally:
        config.CACHE_DIR = before


@cache
def cache_directory() -> Path | None:
    """Return the cache directory for code compiled from exactly these sources, None if it cannot be created.

    numba itself only checks whether the file of a loop has changed, although loops of other files are compiled into it.
    """
    try:
        directory = _cache_root() / f"kernels-{_sources_digest()}"
        if _is_shipped(directory):
            return _overlay(directory)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no permission to write, or no home directory
        return None
    own = os.access(directory, os.W_OK) and directory.stat().st_uid == os.getuid()
    return directory if own and (_holds_code(directory) or disk_usage(directory).free >= _ROOM_BYTES) else None


def hearing_of_compiling(hear: Callable[[], None]) -> AbstractContextManager[None]:
    """Return a context in which `hear` is called when the first loop is compiled, as no code of it is cached."""
    return cast("AbstractContextManager[None]", install_listener(_COMPILING, _Once(hear)))


def tell_of_compiling() -> None:
    """Let those who hear of compiling in this process know that another one does it on behalf of this one."""
    with trigger_event(_COMPILING):
        pass


class _Once(Listener):
    """Calls back at the first event."""

    def __init__(self, hear: Callable[[], None]) -> None:
        self._hear: Callable[[], None] | None = hear

    def on_start(self, _event: object) -> None:
        """See `Listener`."""
        hear, self._hear = self._hear, None
        if hear is not None:
            hear()

    def on_end(self, _event: object) -> None:
        """See `Listener`."""


def _holds_code(directory: Path) -> bool:
    return any(directory.rglob("*.nbc"))


def _cache_root() -> Path:
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(named)
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path("~/.cache").expanduser()) / "stream-dedup"


def _is_shipped(directory: Path) -> bool:
    """Tell whether the code was compiled in advance by root, so that neither this process nor others can change it."""
    if not directory.is_dir() or os.access(directory, os.W_OK):
        return False
    status = directory.stat()
    return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _overlay(shipped: Path) -> Path:
    """Return a directory of links to shipped code, removed at exit: numba needs a directory that it can write to."""
    scratch = Scratch("kernels")
    atexit.register(scratch.cleanup)
    overlay = Path(scratch.name)
    for folder in shipped.iterdir():
        (overlay / folder.name).mkdir()
        for file in folder.iterdir():
            (overlay / folder.name / file.name).symlink_to(file)
    return overlay


def _sources_digest() -> str:
    """Return a digest of the files with loops and of those they import constants from, which are compiled in."""
    package = Path(__file__).parents[1]
    sources = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    looped = {path for path, source in sources.items() if "@kernel" in source}
    constants = {
        file
        for path in looped
        for name in _giving_constants(sources[path])
        for file in (package / f"{name}.py", package / name / "__init__.py")
    }
    digest = hashlib.sha256()
    for path in sorted(looped | (constants & sources.keys())):
        digest.update(sources[path].encode())
    return digest.hexdigest()[:16]


def _giving_constants(source: str) -> Iterator[str]:
    """Yield the modules of this package that a source imports constants from, as paths without a suffix."""
    for module, names in _IMPORT.findall(source):
        if any(name.isupper() for name in _NAME.findall(names)):
            yield module.replace(".", "/")
