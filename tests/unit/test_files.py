"""File runs: each record ends in one of three result files, judged as it is labelled, and nothing is overwritten.

Knows runs and their results; reading the files is tested in test_readers, resuming a run in test_files_resumed.
"""

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import pytest

from deploy.demo.samples import Sample, sample_stream
from stream_dedup.article import Article, Relation, Withdrawal
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.prepared import Prepared
from stream_dedup.files.readers import FileFormatError, Progress
from stream_dedup.files.run import Summary, are_regular, dedup_files
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.settings import CommitSettings, EngineSettings, Settings

_NAMES = ("unique.jsonl", "links.jsonl", "dead.jsonl")


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def _ignore(_file: int, _progress: Progress) -> None:
    """Ignore the report."""


def test_what_can_be_read_again_is_known(tmp_path: Path) -> None:
    """A run over files alone can be resumed after its end, one that reads a pipe cannot."""
    file, pipe = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    file.touch()
    os.mkfifo(pipe)
    assert [are_regular(paths) for paths in ([file], [file, pipe], [file, Path("-")])] == [True, False, False]


_SOUND = '1,"一行\n两行"\n'.encode(), '3,"又一""行"'.encode()


@pytest.fixture
def engine_in(
    cached_fingerprinter: Callable[[EngineSettings], Fingerprinter], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Path | None], Deduplicator]:
    """Return a function that makes engines over a directory or over memory."""
    monkeypatch.setattr("stream_dedup.engine.parts.Fingerprinter", cached_fingerprinter)
    return lambda directory: Deduplicator(directory, Settings())


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """Return the sample stream without its tombstone, which no file can hold."""
    return [sample for sample in sample_stream() if sample.value is not None]


@pytest.fixture
def sample_file(tmp_path: Path, samples: list[Sample]) -> Path:
    """Return the sample stream as a file."""
    path = tmp_path / "samples.jsonl"
    path.write_bytes(b"".join((sample.value or b"") + b"\n" for sample in samples))
    return path


def _run(files: list[Path], out: Path, engine: Deduplicator, settings: Settings | None = None) -> Summary:
    summary = Summary()
    with engine:
        dedup_files(files, out, engine, settings or Settings(), _ignore, summary)
    return summary


def test_sample_stream_is_judged_end_to_end(
    sample_file: Path, samples: list[Sample], tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator]
) -> None:
    """Each record is in exactly one result file, and the summary counts them."""
    summary = _run([sample_file], tmp_path / "out", engine_in(None))
    unique, links, dead = (_lines(tmp_path / "out" / name) for name in _NAMES)
    assert summary.records() == len(samples) == len(unique) + len(links) + len(dead)
    relations = Counter(orjson.loads(line)["relation"] for line in links)
    assert summary.outcomes == Counter({"unique": len(unique), "dead": len(dead), **relations})
    assert set(unique) <= {sample.value for sample in samples}


def test_broken_messages_of_the_sample_stream_are_dead_for_their_reasons(
    sample_file: Path, samples: list[Sample], tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator]
) -> None:
    """The dead letters are those labelled so, each with its reason, file, line and value."""
    _run([sample_file], tmp_path / "out", engine_in(None))
    dead = [orjson.loads(line) for line in _lines(tmp_path / "out" / "dead.jsonl")]
    expected = [(number, sample.dead_reason) for number, sample in enumerate(samples, 1) if sample.dead_reason]
    assert [(line["number"], line["reason"]) for line in dead] == expected
    assert {line["file"] for line in dead} == {str(sample_file)}
    assert all(line["value"] and line["detail"] for line in dead)


def test_sample_stream_is_judged_as_it_is_labelled(
    sample_file: Path, samples: list[Sample], tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator]
) -> None:
    """No original, event pair or bulletin is a link; verbatim copies are exact, redeliveries are redeliveries."""
    _run([sample_file], tmp_path / "out", engine_in(None))
    links = {orjson.loads(line)["offset"]: orjson.loads(line) for line in _lines(tmp_path / "out" / "links.jsonl")}
    by_kind: dict[str, list[dict[str, object] | None]] = {}
    for number, sample in enumerate(samples, 1):
        by_kind.setdefault(sample.kind, []).append(links.get(number))
    for kind in ("original", "event-pair", "bulletin"):
        assert set(by_kind[kind]) == {None}, kind
    assert {link and link["relation"] for link in by_kind["verbatim"]} == {Relation.EXACT}
    assert {link and link["relation"] for link in by_kind["redelivery"]} == {Relation.REDELIVERY}


def test_reposts_of_the_sample_stream_lead_to_their_originals(
    sample_file: Path, samples: list[Sample], tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator]
) -> None:
    """At least 95% of the labelled reposts are linked to the cluster of the article they copy."""
    _run([sample_file], tmp_path / "out", engine_in(None))
    links = {orjson.loads(line)["offset"]: orjson.loads(line) for line in _lines(tmp_path / "out" / "links.jsonl")}
    reposts = {number: sample for number, sample in enumerate(samples, 1) if sample.repost_of}
    right = sum(links.get(number, {}).get("duplicate_of") == sample.repost_of for number, sample in reposts.items())
    assert right >= 0.95 * len(reposts)


def test_state_goes_on_from_run_to_run(
    sample_file: Path, tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator]
) -> None:
    """Two runs over halves of a file with one state decide as a single run over the whole."""
    lines = _lines(sample_file)
    halves = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for half, part in zip(halves, (lines[:250], lines[250:]), strict=True):
        half.write_bytes(b"\n".join(part) + b"\n")
        _run([half], tmp_path / f"{half.stem}-out", engine_in(tmp_path / "state"))
    _run([sample_file], tmp_path / "whole-out", engine_in(None))
    whole = _lines(tmp_path / "whole-out" / "unique.jsonl")
    parts = [line for half in halves for line in _lines(tmp_path / f"{half.stem}-out" / "unique.jsonl")]
    assert parts == whole


def test_second_run_over_the_same_file_finds_redeliveries_only(
    sample_file: Path, tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator]
) -> None:
    """With the state kept, a second run over the same file finds nothing new."""
    first = _run([sample_file], tmp_path / "1", engine_in(tmp_path / "state"))
    second = _run([sample_file], tmp_path / "2", engine_in(tmp_path / "state"))
    dead = first.outcomes["dead"]
    assert second.outcomes == Counter({"redelivery": first.records() - dead, "dead": dead})


def test_files_are_judged_in_their_order(tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator]) -> None:
    """A copy in the second file is a link to the article in the first."""
    for name in ("a", "b"):
        row = {"id": name, "body": "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开。"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    _run([tmp_path / "b.jsonl", tmp_path / "a.jsonl"], tmp_path / "out", engine_in(None))
    (link,) = map(orjson.loads, _lines(tmp_path / "out" / "links.jsonl"))
    assert (link["id"], link["duplicate_of"], link["topic"]) == ("a", "b", "a.jsonl")


@pytest.mark.parametrize("name", _NAMES)
def test_results_are_not_overwritten(
    name: str, sample_file: Path, tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator]
) -> None:
    """If any result file exists, the run is refused and the file unchanged."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("precious")
    with pytest.raises(FileExistsError):
        _run([sample_file], tmp_path / "out", engine_in(None))
    assert (tmp_path / "out" / name).read_text() == "precious"


@pytest.mark.parametrize("name", ["none.jsonl", "a.txt"])
def test_run_that_cannot_begin_leaves_no_results(
    name: str, tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator]
) -> None:
    """After a misspelt file name, the same command can be run again, with no results in its way."""
    with pytest.raises(FileFormatError):
        _run([tmp_path / name], tmp_path / "out", engine_in(None))
    assert not any((tmp_path / "out" / result).exists() for result in _NAMES)


def test_progress_is_reported_for_each_file(
    sample_file: Path, tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator]
) -> None:
    """The last report for a file says that all of it has been read."""
    reports: dict[int, Progress] = {}
    with engine_in(None) as engine:
        dedup_files([sample_file] * 2, tmp_path / "out", engine, Settings(), reports.__setitem__, Summary())
    read = Progress(sample_file.stat().st_size, sample_file.stat().st_size)
    assert reports == {0: read, 1: read}


def test_batch_of_large_records_is_bounded_by_its_bytes(
    tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator]
) -> None:
    """Records are judged as soon as they reach `commit.bytes`: thousands of large ones would not fit into memory."""
    lines = [orjson.dumps({"id": str(n), "body": "一则短讯", "pad": "x" * 600_000}) + b"\n" for n in range(5)]
    file = tmp_path / "large.jsonl"
    file.write_bytes(b"".join(lines))
    settings = Settings(commit=CommitSettings(bytes=1 << 20))
    read: list[int] = []
    with engine_in(None) as engine:
        dedup_files(
            [file], tmp_path / "out", engine, settings, lambda _, progress: read.append(progress.done), Summary()
        )
    assert read == [sum(map(len, lines[:count])) for count in (2, 4, 5)]


def test_scopes_of_files_do_not_mix(engine_in: Callable[[Path | None], Deduplicator], tmp_path: Path) -> None:
    """With `input.fields.scope`, records are compared only within their scope; links and withdrawals name it."""
    body = next(sample for sample in sample_stream() if sample.dead_reason is None)
    text = orjson.loads(body.value or b"")["body"]
    rows = [{"id": name, "body": text, "channel": scope} for name in ("1", "2") for scope in ("", "a", "b")]
    path = tmp_path / "in.jsonl"
    path.write_bytes(
        b"".join(orjson.dumps(row) + b"\n" for row in [*rows, {"id": "1", "channel": "b", "deleted": True}])
    )
    settings = Settings.model_validate({"input": {"fields": {"scope": "channel"}}})
    summary = _run([path], tmp_path / "out", engine_in(None), settings)
    assert summary.outcomes == {"unique": 3, "exact": 3, "withdrawn": 1}
    told = [orjson.loads(line) for line in _lines(tmp_path / "out" / "links.jsonl")]
    assert [(one["id"], one.get("scope"), one["duplicate_of"]) for one in told] == [
        ("2", None, "1"),
        ("2", "a", "1"),
        ("2", "b", "1"),
        ("1", "b", "2"),
    ]


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.usefixtures("engine_in")  # which caches what engines share
def test_new_canonical_article_is_told_behind_what_led_to_it(size: int, tmp_path: Path) -> None:
    """A better article takes over in a line of its own, which is of no record; a withdrawal names its successor."""
    text = {"body": "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开，附近的居民都来捧场。"}
    rows = [
        {"id": "broken"},
        {"id": "a", **text},
        {"id": "b", "source": "乙报", **text},
        {"id": "c", **text},
        {"id": "b", "deleted": True},
        {"id": "d", **text},
    ]
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    cluster = {"canonical": "preferred_source", "preferred_sources": ["乙报"]}
    settings = Settings.model_validate({"cluster": cluster, "commit": {"articles": size}})
    summary = _run([path], tmp_path / "out", Deduplicator(None, settings), settings)
    assert summary.outcomes == {"unique": 1, "exact": 3, "withdrawn": 1, "dead": 1}
    told = [orjson.loads(line) for line in _lines(tmp_path / "out" / "links.jsonl")]
    assert [(one["id"], one["relation"], one["duplicate_of"], one.get("reason")) for one in told] == [
        ("b", "exact", "a", None),
        ("a", "succession", "b", "policy"),
        ("c", "exact", "b", None),
        ("b", "withdrawn", "a", None),
        ("d", "exact", "a", None),
    ]


def test_csv_withdraws_articles(engine_in: Callable[[Path | None], Deduplicator], tmp_path: Path) -> None:
    """`deleted` set to true in CSV withdraws an article; false does not."""
    path = tmp_path / "in.csv"
    path.write_text("id,body,deleted\n1,石桥镇的夜市昨晚重新开张,false\n1,,true\n", newline="")
    assert _run([path], tmp_path / "out", engine_in(None)).outcomes == {"unique": 1, "withdrawn": 1}


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.usefixtures("engine_in")  # which caches what engines share
def test_dead_letters_are_in_order(size: int, tmp_path: Path) -> None:
    """Those that cannot be read and those about which there is nothing to decide, however the file is cut."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "1", "deleted": true}\n{\n{"id": "2", "deleted": true}\n[]\n')
    settings = Settings.model_validate({"commit": {"articles": size}})
    _run([path], tmp_path / "out", Deduplicator(), settings)
    dead = [orjson.loads(line) for line in _lines(tmp_path / "out" / "dead.jsonl")]
    reasons = ["unknown_article", "invalid_json", "unknown_article", "not_an_object"]
    assert [(line["number"], line["reason"]) for line in dead] == [*enumerate(reasons, 1)]


def test_faulty_rows_are_dead_letters(engine_in: Callable[[Path | None], Deduplicator], tmp_path: Path) -> None:
    """An invalid row goes to dead.jsonl with its number, its reason and its content."""
    path = tmp_path / "in.csv"
    path.write_bytes(b"id,body\n" + _SOUND[0] + b"2,a,b\n" + _SOUND[1])
    assert _run([path], tmp_path / "out", engine_in(None)).outcomes == {"unique": 2, "dead": 1}
    (dead,) = map(orjson.loads, _lines(tmp_path / "out" / "dead.jsonl"))
    assert (dead["number"], dead["reason"], dead["value"]) == (2, "invalid_record", "2,a,b\n")


def test_what_stands_before_damage_is_judged(
    sample_file: Path, engine_in: Callable[[Path | None], Deduplicator], tmp_path: Path
) -> None:
    """If a compressed file is truncated, the records before are in the results and counted, though the run fails."""
    path, summary = tmp_path / "cut.jsonl.gz", Summary()
    path.write_bytes(gzip.compress(sample_file.read_bytes())[:-2000])
    with engine_in(None) as engine, pytest.raises(FileFormatError, match=r"cut\.jsonl\.gz"):
        dedup_files([path], tmp_path / "out", engine, Settings(), _ignore, summary)
    written = sum(len(_lines(tmp_path / "out" / name)) for name in _NAMES)
    assert written == summary.records() > 100


def test_standard_input_holds_lines_of_json(
    sample_file: Path,
    engine_in: Callable[[Path | None], Deduplicator],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Input from a pipe is judged like the same file."""
    whole = _run([sample_file], tmp_path / "file", engine_in(None))
    with sample_file.open() as piped:
        monkeypatch.setattr("sys.stdin", piped)
        assert _run([Path("-")], tmp_path / "pipe", engine_in(None)) == whole
    assert _lines(tmp_path / "pipe" / "unique.jsonl") == _lines(tmp_path / "file" / "unique.jsonl")


@pytest.mark.parametrize("name", ["d.jsonl", "d"])
def test_directory_is_no_file(name: str, engine_in: Callable[[Path | None], Deduplicator], tmp_path: Path) -> None:
    """The error says so, and not that the file is missing or of unknown format."""
    (tmp_path / name).mkdir()
    with pytest.raises(FileFormatError, match="is a directory"):
        _run([tmp_path / name], tmp_path / "out", engine_in(None))


def test_record_that_cannot_be_prepared_is_dead(
    tmp_path: Path, engine_in: Callable[[Path | None], Deduplicator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in its text ends no run: the same one would meet each run again."""
    path, engine = tmp_path / "some.jsonl", engine_in(None)
    path.write_bytes(b"".join(orjson.dumps({"id": name, "body": f"{name} {'正文' * 40}"}) + b"\n" for name in "abc"))
    prepare = engine.prepare

    def refusing(items: Sequence[Article | Withdrawal], awaited: Callable[[], bool] = lambda: False) -> Prepared | None:
        if any(item.id == "b" for item in items):
            raise ValueError("a fault of ours")
        return prepare(items, awaited)

    monkeypatch.setattr(engine, "prepare", refusing)
    summary = _run([path], tmp_path / "out", engine)
    (dead,) = [orjson.loads(line) for line in _lines(tmp_path / "out" / "dead.jsonl")]
    assert (dead["reason"], dead["number"], dead["detail"]) == ("internal", 2, "ValueError: a fault of ours")
    assert summary.records() == 3
