"""Interrupted file runs lose and repeat nothing, and the same command resumes them."""

import gzip
import os
import resource
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import orjson
import psutil
import pytest

from deploy.demo.samples import sample_stream
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.files.readers import FileFormatError, Progress
from stream_dedup.files.results import NAMES, Results
from stream_dedup.files.run import Summary, dedup_files
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.settings import EngineSettings, Settings

_BATCH = 100
_COMMIT = {"commit": {"articles": _BATCH}}
_SETTINGS = Settings.model_validate(_COMMIT)


class _EndError(Exception):
    """The interruption of a run."""


@pytest.fixture
def engine_in(
    cached_fingerprinter: Callable[[EngineSettings], Fingerprinter], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Path], Deduplicator]:
    """Return a function that makes engines over a directory."""
    monkeypatch.setattr("stream_dedup.engine.parts.Fingerprinter", cached_fingerprinter)
    return lambda directory: Deduplicator(directory, _SETTINGS)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the sample stream in two files."""
    values = [sample.value for sample in sample_stream() if sample.value is not None]
    folder = tmp_path_factory.mktemp("files")
    halves = [folder / "a.jsonl", folder / "b.jsonl"]
    for half, part in zip(halves, (values[:250], values[250:]), strict=True):
        half.write_bytes(b"".join(value + b"\n" for value in part))
    return halves


def _ignore(_file: int, _progress: Progress) -> None:
    """Ignore the report."""


def _run(files: list[Path], out: Path, engine: Deduplicator) -> Summary:
    summary = Summary()
    with engine:
        dedup_files(files, out, engine, _SETTINGS, _ignore, summary)
    return summary


def _end_run(
    end: Callable[[pytest.MonkeyPatch, int], None], batch: int, files: list[Path], out: Path, engine: Deduplicator
) -> Summary:
    summary = Summary()
    with pytest.MonkeyPatch.context() as patch, engine:
        end(patch, batch)
        with pytest.raises(_EndError):
            dedup_files(files, out, engine, _SETTINGS, _ignore, summary)
    return summary


def _found(out: Path) -> dict[str, list[Any]]:
    """Return the results without the times of decisions."""
    found = {name: [orjson.loads(line) for line in (out / name).read_bytes().splitlines()] for name in NAMES}
    for link in found["links.jsonl"]:
        del link["decided_at"]
    return found


@pytest.fixture(scope="module")
def whole(
    files: list[Path],
    cached_fingerprinter: Callable[[EngineSettings], Fingerprinter],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, list[Any]]:
    """Return the results of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stream_dedup.engine.parts.Fingerprinter", cached_fingerprinter)
        _run(files, folder / "out", Deduplicator(folder / "state", _SETTINGS))
    return _found(folder / "out")


def _before_writing(patch: pytest.MonkeyPatch, at: int) -> None:
    write, calls = Results.write, Counter[str]()

    def ended(results: Results) -> Any:  # noqa: ANN401  # what it returns
        calls["write"] += 1
        if calls["write"] == at:
            raise _EndError
        return write(results)

    patch.setattr(Results, "write", ended)


def _amid_writing(patch: pytest.MonkeyPatch, at: int) -> None:
    """Fail as on a full disk, after writing part of what belongs together."""
    write, calls = Results.write, Counter[str]()

    def ended(results: Results) -> Any:  # noqa: ANN401  # what it returns
        calls["write"] += 1
        if calls["write"] == at:
            results.unique.add(b'{"torn')
            results.unique.write()
            raise _EndError
        return write(results)

    patch.setattr(Results, "write", ended)


def _before_applying(patch: pytest.MonkeyPatch, at: int) -> None:
    apply, calls = Deduplicator.apply, Counter[str]()

    def ended(engine: Deduplicator, *arguments: Any) -> None:  # noqa: ANN401  # those of the method
        calls["apply"] += 1
        if calls["apply"] == at + 1:  # the first is that of the beginning
            raise _EndError
        apply(engine, *arguments)

    patch.setattr(Deduplicator, "apply", ended)


def _after_applying(patch: pytest.MonkeyPatch, at: int) -> None:
    apply, calls = Deduplicator.apply, Counter[str]()

    def ended(engine: Deduplicator, *arguments: Any) -> None:  # noqa: ANN401  # those of the method
        calls["apply"] += 1
        apply(engine, *arguments)
        if calls["apply"] == at + 1:
            raise _EndError

    patch.setattr(Deduplicator, "apply", ended)


_ENDS = (_before_writing, _amid_writing, _before_applying, _after_applying)


@pytest.mark.parametrize("batch", [1, 3, 4, 6])
@pytest.mark.parametrize("end", _ENDS, ids=lambda end: end.__name__.strip("_"))
def test_run_that_was_ended_goes_on_as_if_it_had_not_been(
    end: Callable[[pytest.MonkeyPatch, int], None],
    batch: int,
    files: list[Path],
    whole: dict[str, list[Any]],
    tmp_path: Path,
    engine_in: Callable[[Path], Deduplicator],
) -> None:
    """Wherever a batch is cut off, in either file, the same call completes the results."""
    out, state = tmp_path / "out", tmp_path / "state"
    _end_run(end, batch, files, out, engine_in(state))
    _run(files, out, engine_in(state))
    assert _found(out) == whole


def test_run_that_was_ended_before_its_files_were_made_goes_on(
    files: list[Path],
    whole: dict[str, list[Any]],
    tmp_path: Path,
    engine_in: Callable[[Path], Deduplicator],
) -> None:
    """The state may know of the run before results exist, and files created meanwhile do not block the next call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stream_dedup.files.run.Results", lambda *_, **__: _end())
        with pytest.raises(_EndError):
            _run(files, tmp_path / "out", engine_in(tmp_path / "state"))
    _run(files, tmp_path / "out", engine_in(tmp_path / "state"))
    assert _found(tmp_path / "out") == whole


def _end() -> NoReturn:
    raise _EndError


@pytest.mark.parametrize("end", [_before_writing, _amid_writing])
def test_results_of_a_failed_run_hold_whole_batches(
    end: Callable[[pytest.MonkeyPatch, int], None],
    files: list[Path],
    tmp_path: Path,
    engine_in: Callable[[Path], Deduplicator],
) -> None:
    """They hold exactly what the state knows and counts, and no partial line."""
    summary = _end_run(end, 3, files, tmp_path / "out", engine_in(tmp_path / "state"))
    assert sum(map(len, _found(tmp_path / "out").values())) == summary.records() == 2 * _BATCH


Ended = tuple[Path, list[Path], Callable[[list[Path]], Summary]]


@pytest.fixture
def ended(files: list[Path], tmp_path: Path, engine_in: Callable[[Path], Deduplicator]) -> Ended:
    """Return the results of an unfinished run over copies of the files, these files, and a function that resumes it."""
    out, state, copies = tmp_path / "out", tmp_path / "state", [tmp_path / file.name for file in files]
    for file, copy in zip(files, copies, strict=True):
        shutil.copy2(file, copy)
    _end_run(_before_applying, 4, copies, out, engine_in(state))
    return out, copies, lambda some: _run(some, out, engine_in(state))


def test_unfinished_run_does_not_go_on_over_other_files(ended: Ended) -> None:
    """Other or reordered files, and one that was read and has changed, are refused, and the results are not touched."""
    out, files, go_on = ended
    before = _found(out)
    with pytest.raises(FileFormatError, match="over other files"):
        go_on(files[::-1])
    with pytest.raises(FileFormatError, match="over other files"):
        go_on(files[:1])
    files[0].write_bytes(files[0].read_bytes() + b"{}\n")
    with pytest.raises(FileFormatError, match=r"a\.jsonl has changed"):
        go_on(files)
    assert _found(out) == before


@pytest.mark.parametrize("groups", [{"verify": {"near_jaccard": 0.9}}, {"input": {"fields": {"title": "headline"}}}])
def test_unfinished_run_does_not_go_on_with_other_settings(
    groups: dict[str, Any], files: list[Path], tmp_path: Path, engine_in: Callable[[Path], Deduplicator]
) -> None:
    """Otherwise one file of links would come from two sets of thresholds, or of fields."""
    out, state = tmp_path / "out", tmp_path / "state"
    _end_run(_before_applying, 4, files, out, engine_in(state))
    before, other = _found(out), Settings.model_validate({**_COMMIT, **groups})
    with engine_in(state) as engine, pytest.raises(FileFormatError, match="with other settings"):
        dedup_files(files, out, engine, other, _ignore, Summary())
    assert _found(out) == before


def test_file_that_was_not_read_yet_may_change_until_it_is(
    files: list[Path], tmp_path: Path, engine_in: Callable[[Path], Deduplicator]
) -> None:
    """A damaged file ends the run; once it is repaired the same call goes on. What was read of a file must stay."""
    out, state, copies = tmp_path / "out", tmp_path / "state", [tmp_path / f"{file.name}.gz" for file in files]
    for file, copy in zip(files, copies, strict=True):
        copy.write_bytes(gzip.compress(file.read_bytes()))
    sound = copies[1].read_bytes()
    copies[1].write_bytes(gzip.compress(b"\n" * 10_000)[:-1])
    with pytest.raises(FileFormatError, match=r"b\.jsonl\.gz"):
        _run(copies, out, engine_in(state))
    copies[1].write_bytes(sound)
    _end_run(_before_applying, 0, copies, out, engine_in(state))
    copies[1].write_bytes(sound + gzip.compress(b"{}\n"))
    _end_run(_after_applying, 0, copies, out, engine_in(state))
    copies[1].write_bytes(sound)
    with pytest.raises(FileFormatError, match=r"b\.jsonl\.gz has changed"):
        _run(copies, out, engine_in(state))


def test_unfinished_run_does_not_go_on_without_its_results(ended: Ended) -> None:
    """Without them, what the state already knows would be missing from the new results."""
    out, files, go_on = ended
    (out / "unique.jsonl").write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"unique\.jsonl"):
        go_on(files)
    (out / "unique.jsonl").unlink()
    with pytest.raises(FileFormatError, match=r"unique\.jsonl"):
        go_on(files)


def test_names_of_files_may_be_no_utf8(
    files: list[Path], tmp_path: Path, engine_in: Callable[[Path], Deduplicator]
) -> None:
    """The state records a run over such files like any other."""
    file, out = tmp_path / os.fsdecode(b"\xff.jsonl"), tmp_path / os.fsdecode(b"\xfe")
    shutil.copy2(files[0], file)
    _end_run(_before_applying, 2, [file], out, engine_in(tmp_path / "state"))
    _run([file], out, engine_in(tmp_path / "state"))
    found = _found(out)
    assert sum(map(len, found.values())) == len(file.read_bytes().splitlines())


def test_finished_run_has_nothing_left_to_do(
    files: list[Path], tmp_path: Path, engine_in: Callable[[Path], Deduplicator]
) -> None:
    """It may have been killed after its last step: the same call changes nothing, however often it is made."""
    out, state = tmp_path / "out", tmp_path / "state"
    _run(files, out, engine_in(state))
    before = _found(out)
    for _ in range(2):
        again = _run(files, out, engine_in(state))
        assert (again.finished, again.records()) == (True, 0)
        assert _found(out) == before


@pytest.mark.parametrize("other", ["files", "size", "time", "filled", "results", "settings"])
def test_finished_run_is_not_taken_for_another(
    other: str, files: list[Path], tmp_path: Path, engine_in: Callable[[Path], Deduplicator]
) -> None:
    """A run that differs in something is a new one, for which the results are in the way."""
    out, state, settings = tmp_path / "out", tmp_path / "state", _SETTINGS
    own = [Path(shutil.copy2(file, tmp_path / file.name)) for file in files]
    own.append(tmp_path / "empty.jsonl")
    own[-1].touch()
    _run(own, out, engine_in(state))
    if other == "files":
        own = own[:1]
    elif other in {"size", "time"}:
        changed = own[0].stat().st_mtime_ns
        own[0].write_bytes(own[0].read_bytes() + (b"{}\n" if other == "size" else b""))
        os.utime(own[0], ns=(changed, changed + (other == "time")))
    elif other == "filled":
        own[-1].write_bytes(b"{}\n")
    elif other == "results":
        (out / "links.jsonl").write_bytes(b"")
    else:
        verify = settings.verify.model_copy(update={"near_jaccard": 0.9})
        settings = settings.model_copy(update={"verify": verify})
    with engine_in(state) as engine, pytest.raises(FileExistsError):
        dedup_files(own, out, engine, settings, _ignore, Summary())


def test_finished_run_whose_results_were_moved_away_is_made_again(
    files: list[Path], tmp_path: Path, engine_in: Callable[[Path], Deduplicator]
) -> None:
    """Its state knows all articles, so all are redeliveries."""
    first = _run(files, tmp_path / "out", engine_in(tmp_path / "state"))
    (tmp_path / "out").rename(tmp_path / "moved")
    again = _run(files, tmp_path / "out", engine_in(tmp_path / "state"))
    dead = first.outcomes["dead"]
    assert again.outcomes == Counter({"redelivery": first.records() - dead, "dead": dead})


def test_disk_that_takes_a_part_of_a_batch_is_named_and_that_part_cut_off(tmp_path: Path) -> None:
    """With a real file of limited size, the error names the file, which then holds the batch before and no more."""
    path = tmp_path / "unique.jsonl"
    with (
        pytest.raises(OSError, match=r"unique\.jsonl"),
        Results(tmp_path, dict.fromkeys(NAMES, 0), sync=True) as results,
    ):
        _write_two(results, path)
    assert path.read_bytes() == b"1" * 100 + b"\n"


@pytest.mark.parametrize("sync", [True, False])
def test_batch_waits_for_the_disk_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, sync: bool
) -> None:
    """The state, which then waits as well, must not remember lines that a loss of power takes away."""
    synced: dict[int, int] = {}

    def noted(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size

    monkeypatch.setattr(os, "fsync", noted)
    with Results(tmp_path, dict.fromkeys(NAMES, 0), sync=sync) as results:
        for file in (results.unique, results.links, results.dead):
            file.add(b"{}")
        lengths = results.write()
        before = dict(synced)
        results.kept()
    assert before == ({(tmp_path / name).stat().st_ino: length for name, length in lengths.items()} if sync else {})


def test_results_go_to_a_directory_that_is_made_for_them(tmp_path: Path) -> None:
    """With all that lead to it."""
    out = tmp_path / "2026" / "12" / "01"
    with Results(out, dict.fromkeys(NAMES, 0), sync=False) as results:
        results.dead.add(b"{}")
        results.write()
        results.kept()
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {**dict.fromkeys(NAMES, b""), NAMES[2]: b"{}\n"}


def test_results_that_cannot_all_be_opened_leave_none_open(tmp_path: Path) -> None:
    """A program that embeds the engine goes on after the error, and would keep them for good."""
    (tmp_path / NAMES[2]).mkdir()
    with pytest.raises(IsADirectoryError, match=NAMES[2]):
        Results(tmp_path, dict.fromkeys(NAMES, 0), sync=False)
    held = [Path(file.path).name for file in psutil.Process().open_files()]
    assert not {*NAMES}.intersection(held)


def _write_two(results: Results, path: Path) -> None:
    """Write two batches, the second of which fits only in part."""
    results.unique.add(b"1" * 100)
    results.write()
    results.kept()
    results.unique.add(b"2" * 100)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150, hard))
    try:
        results.write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert path.stat().st_size == 150
