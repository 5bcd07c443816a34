"""How far a run over files has come, kept in the state along with the articles, so that each record counts once.

Knows the files of a run and what the state keeps about them; knows nothing of records or their contents.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path

from stream_dedup.files.readers import FileFormatError, shown
from stream_dedup.files.results import NAMES
from stream_dedup.index.records.ledger import Positions
from stream_dedup.settings import EngineSettings, Settings

# What is stored under the name of the results, and under that of each file.
_STAGE, _FILES, _SETTINGS = 0, 1, 2
_RECORDS, _SIZE, _CHANGED, _RUN = 0, 1, 2, 3
_GOING_ON, _FINISHED = 1, 2
_DIGEST_BYTES = 7  # of the names of all files, and of settings: a position has 63 bits
_DECIDING = {*EngineSettings.model_fields, "input"}  # groups of settings


@dataclass(frozen=True, slots=True)
class RunStart:
    """Where a run begins.

    Attributes:
        new: False if it resumes an unfinished one.
        kept: bytes of each result file that are there already, by name.
        done: number of the last record of each file that need not be read any more, 0 for none.
    """

    new: bool
    kept: Mapping[str, int]
    done: Sequence[int]


def fresh_start(files: int) -> RunStart:
    """Return where a new run over the given number of files begins."""
    return RunStart(new=True, kept=dict.fromkeys(NAMES, 0), done=[0] * files)


class RunPositions:
    """What a run stores among the positions of a state, under the names of its results and its files.

    Args:
        paths: files to read, in order.
        out: directory of the results.
        settings: with which the files are judged.
    """

    def __init__(self, paths: Sequence[Path], out: Path, settings: Settings) -> None:
        self._paths = paths
        self._identities = [_identity(path) for path in paths]
        self._folder = out
        self._out = shown(out.resolve())
        self._inputs = [f"{self._out} < {number} {shown(path.resolve())}" for number, path in enumerate(paths, 1)]
        self._files = _digest("\0".join(self._inputs))
        self._settings = _digest(settings.model_dump_json(include=_DECIDING))

    def start(self, known: Positions) -> RunStart:
        """Return where the run begins, according to the positions in the state.

        A run that is finished, and whose results are in place, resumes at its end: it may have been killed right there.

        Raises:
            FileFormatError: an unfinished run with these results was over other files or had other settings, or a file
                that it read has changed.
        """
        stage = known.get((self._out, _STAGE))
        if stage is None:
            return fresh_start(len(self._paths))
        kept = {name: known[f"{self._out}/{name}", 0] for name in NAMES}
        fault = self._fault(known)
        if stage == _FINISHED and (fault or self._has_more(known) or not self._holds(kept)):
            return fresh_start(len(self._paths))
        if fault:
            raise FileFormatError(fault)
        return RunStart(new=False, kept=kept, done=[known[name, _RECORDS] for name in self._inputs])

    def begun(self) -> Positions:
        """Return the positions of a run at its beginning."""
        own = {_STAGE: _GOING_ON, _FILES: self._files, _SETTINGS: self._settings}
        begun = {(self._out, key): value for key, value in own.items()}
        begun |= self.after(dict.fromkeys(NAMES, 0))
        begun |= {(name, _RUN): self._files for name in self._inputs}
        return begun | {(name, _RECORDS): 0 for name in self._inputs}

    def after(self, lengths: Mapping[str, int], file: int | None = None, record: int = 0) -> Positions:
        """Return the positions after a batch; what the file was like when the run began is among them.

        Args:
            lengths: of the result files, by name.
            file: number of the batch's file, from 0; None for none.
            record: number of the batch's last record.
        """
        positions = {(f"{self._out}/{name}", 0): length for name, length in lengths.items()}
        if file is not None:
            name, (size, changed) = self._inputs[file], self._identities[file]
            positions |= {(name, _RECORDS): record, (name, _SIZE): size, (name, _CHANGED): changed}
        return positions

    def finished(self) -> Positions:
        """Return the positions of a finished run."""
        return {(self._out, _STAGE): _FINISHED}

    def _fault(self, known: Positions) -> str:
        """Return why this is not the last run with these results once more; empty if it is."""
        if known[self._out, _FILES] != self._files:
            return (
                f"{self._out} holds the results of an unfinished run over other files: resume it with the same files "
                "in the same order, or choose another --out"
            )
        if known[self._out, _SETTINGS] != self._settings:
            return (
                f"{self._out} holds the results of an unfinished run with other settings: resume it with the same "
                "--config and --set, or choose another --out and another --state"
            )
        for name, path, identity in zip(self._inputs, self._paths, self._identities, strict=True):
            if known[name, _RECORDS] and (known[name, _SIZE], known[name, _CHANGED]) != identity:
                return (
                    f"{path} has changed, in size or modification time, since the unfinished run whose results are in "
                    f"{self._out} read it: choose another --out and another --state, since this state contains what "
                    "was judged before"
                )
        return ""

    def _has_more(self, known: Positions) -> bool:
        """Return whether a file without records may have some now."""
        return any(
            size and not known[name, _RECORDS] for name, (size, _) in zip(self._inputs, self._identities, strict=True)
        )

    def _holds(self, kept: Mapping[str, int]) -> bool:
        """Return whether the result files have these lengths."""
        paths = {self._folder / name: length for name, length in kept.items()}
        return all(path.is_file() and path.stat().st_size == length for path, length in paths.items())


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest())


def _identity(path: Path) -> tuple[int, int]:
    """Return the size and modification time of a file, by which a changed file is recognised."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def runs_of(known: Positions) -> list[dict[str, object]]:
    """Return the progress of the last run with each results directory.

    For each of its files: `results`, whether these are `finished`, `file`, and `lines` done.
    """
    names = sorted({name for name, _ in known})
    outs = [name for name in names if (f"{name}/{NAMES[0]}", 0) in known]
    return [
        {"results": out, "finished": known[out, _STAGE] == _FINISHED, "file": file, "lines": lines}
        for out in outs
        for file, lines in _files_of(out, names, known)
    ]


def _files_of(out: str, names: Sequence[str], known: Positions) -> list[tuple[str, int]]:
    """Return the files of the last run with a results directory, and the lines done of each; names are in order."""
    begin, run = f"{out} < ", known[out, _FILES]
    found = takewhile(lambda name: name.startswith(begin), islice(names, bisect_left(names, begin), None))
    return [
        (name.removeprefix(begin).partition(" ")[2], known[name, _RECORDS])
        for name in found
        # An earlier run, whose results were moved away, may have read other files.
        if known[name, _RUN] == run
    ]
