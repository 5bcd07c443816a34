"""The directory of a run: it holds the results so far, never half written.

Knows files and digests; knows nothing of algorithms.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from stream_dedup.closing import SelfClosing
from stream_dedup.evaluate.results import AlgorithmResult, Evaluation, ReplacementExperiment
from stream_dedup.zstandard import zstd

_Kept = TypeVar("_Kept")
_MEASURED, _REPLACED = TypeAdapter(AlgorithmResult), TypeAdapter(ReplacementExperiment)
_EVALUATION, _SECONDS = TypeAdapter(Evaluation), TypeAdapter(float)
_WHOLE = "evaluation.json"


class OtherRunError(ValueError):
    """The directory holds something other than a run over these articles."""


class Folder(SelfClosing):
    """The directory of a run, which no other run may use until it is closed or the process has ended.

    Args:
        path: the directory; created if it does not exist.
        digest: digest of the labelled set.

    Raises:
        OtherRunError: it belongs to a run over other articles, holds other things, or is in use.
    """

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self.digest = digest
        self._check()
        for name in ("results", "words"):
            (path / name).mkdir(parents=True, exist_ok=True)
        self._lock = _locked(path)
        self.clear()  # what a killed run has left
        _write(self._mark, digest.encode())

    def close(self) -> None:
        """Remove what workers passed to each other, and let other runs use the directory."""
        self.clear()
        os.close(self._lock)

    @property
    def _mark(self) -> Path:
        return self.path / "digest"

    @property
    def work(self) -> Path:
        """A directory for what workers pass to each other; see `clear`."""
        path = self.path / "work"
        path.mkdir(exist_ok=True)
        return path

    def clear(self) -> None:
        """Remove what workers passed to each other."""
        shutil.rmtree(self.path / "work", ignore_errors=True)

    def _check(self) -> None:
        if not self.path.exists() or (self.path.is_dir() and not any(self.path.iterdir())):
            return
        if not self._mark.is_file():
            raise OtherRunError(f"{self.path} is not the directory of an evaluation: choose another --out")
        found = self._mark.read_text(encoding="utf-8")
        if found != self.digest:
            raise OtherRunError(
                f"{self.path} holds an evaluation of other articles, or of other copies of these (digest {found}, not "
                f"{self.digest}): choose another --out, or move it away"
            )

    def result(self, name: str, digest: str) -> AlgorithmResult | None:
        """Return the kept result of an algorithm; None if there is none with this digest that can be read."""
        return _read(_MEASURED, self._result(name, digest))

    def keep_result(self, measured: AlgorithmResult, digest: str) -> None:
        """Keep a result under a digest of everything it depends on."""
        _write(self._result(measured.named.name, digest), _MEASURED.dump_json(measured, indent=1))

    def _result(self, name: str, digest: str) -> Path:
        return self.path / "results" / f"{_file_name(name)}.{digest}.json"

    def replaced(self, digest: str) -> ReplacementExperiment | None:
        """Return the kept result of the experiment of the K-gram study."""
        return _read(_REPLACED, self._result("replaced characters", digest))

    def keep_replaced(self, replaced: ReplacementExperiment, digest: str) -> None:
        """Keep the result of that experiment."""
        _write(self._result("replaced characters", digest), _REPLACED.dump_json(replaced, indent=1))

    def keep_evaluation(self, evaluation: Evaluation) -> None:
        """Keep the results of a run as a whole."""
        _write(self.path / _WHOLE, _EVALUATION.dump_json(evaluation, indent=1))

    def words(self, segmenter: str, digest: str) -> Path:
        """Return the path of a segmenter's words, whether or not `write_words` has written them yet."""
        return self.path / "words" / f"{_file_name(segmenter)}.{digest}.json.zst"


def _locked(folder: Path) -> int:
    """Return the descriptor of a file in a directory that only this process has locked."""
    held = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise OtherRunError(
            f"another evaluation is running in {folder}: wait for it, or choose another --out"
        ) from None
    return held


def kept_evaluation(path: Path) -> Evaluation:
    """Return the results of the last run in a directory.

    Raises:
        OtherRunError: there is none.
    """
    evaluation = _read(_EVALUATION, path / _WHOLE)
    if evaluation is None:
        raise OtherRunError(f"{path} holds no evaluation: `stream-dedup evaluate run FILE -o {path}` makes one")
    return evaluation


def write_words(path: Path, words: Sequence[Sequence[str]], seconds: float) -> None:
    """Keep the words of all articles, and the processor seconds that cutting them took."""
    _write(path, zstd.compress(orjson.dumps(words)))
    _write(_seconds(path), orjson.dumps(seconds))


def read_words(path: Path) -> list[list[str]]:
    """Return the words of all articles."""
    words: list[list[str]] = orjson.loads(zstd.decompress(path.read_bytes()))
    return words


def read_seconds(path: Path) -> float | None:
    """Return the seconds that cutting the words took; None if there are no words yet."""
    return _read(_SECONDS, _seconds(path)) if path.is_file() else None


def _seconds(path: Path) -> Path:
    return path.with_suffix(".seconds")


def _read(kind: TypeAdapter[_Kept], path: Path) -> _Kept | None:
    try:
        return kind.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", name)
