"""File runs: every format gives the same records, broken files are named, and nothing is lost."""

import csv
import gzip
import io
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from pyarrow import parquet

from deploy.demo.samples import Sample, sample_stream
from stream_dedup.article import Relation
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.files import readers, rows
from stream_dedup.files.readers import FileFormatError, Progress, reader_for
from stream_dedup.files.run import Summary, are_regular, check_files, dedup_files
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.settings import EngineSettings, Settings
from stream_dedup.zstandard import zstd

_ROWS = [
    {
        "id": f"n-{number}",
        "title": f'第{number}条, "引号"',
        "body": f"第一行\n第二行，{number}号\t👍" * (number % 5 + 1),
    }
    for number in range(300)
]
_JSON = b"".join(orjson.dumps(row) + b"\n" for row in _ROWS)
_NAMES = ("unique.jsonl", "links.jsonl", "dead.jsonl")


def _csv() -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, ["id", "title", "body"])
    writer.writeheader()
    writer.writerows(_ROWS)
    return text.getvalue().encode()


def _zst(content: bytes) -> bytes:
    return zstd.compress(content)


def _contents() -> dict[str, bytes]:
    table = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(_ROWS), table, row_group_size=70)
    plain_csv = _csv()
    return {
        "a.jsonl": _JSON,
        "a.ndjson": _JSON,
        "A.JSONL": _JSON,
        "crlf.jsonl": _JSON.replace(b"\n", b"\r\n"),
        "bom.jsonl": b"\xef\xbb\xbf" + _JSON,
        "no-end.jsonl": _JSON.rstrip(b"\n"),
        "a.jsonl.gz": gzip.compress(_JSON),
        "members.jsonl.gz": gzip.compress(_JSON[:1000]) + gzip.compress(_JSON[1000:]),
        "a.jsonl.zst": _zst(_JSON),
        "frames.jsonl.zst": _zst(_JSON[:1000]) + _zst(_JSON[1000:]),
        "a.csv": plain_csv,
        "bom.csv": b"\xef\xbb\xbf" + plain_csv,
        "a.csv.gz": gzip.compress(plain_csv),
        "a.csv.zst": _zst(plain_csv),
        "a.parquet": table.getvalue(),
    }


def _records(path: Path) -> list[dict[str, object]]:
    return [orjson.loads(record.value) for record, _ in reader_for(path)(path)]


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def _ignore(_path: Path, _progress: Progress) -> None:
    """Ignore the report."""


@pytest.mark.parametrize("name", list(_contents()))
def test_every_format_gives_the_same_records(name: str, tmp_path: Path) -> None:
    """Plain or compressed, with a byte order mark or CRLF, in several frames: the records are the same."""
    path = tmp_path / name
    path.write_bytes(_contents()[name])
    assert _records(path) == _ROWS


@pytest.mark.parametrize("name", list(_contents()))
def test_progress_grows_to_the_whole_file(name: str, tmp_path: Path) -> None:
    """Progress never decreases and ends with the whole file; records are numbered."""
    path = tmp_path / name
    path.write_bytes(_contents()[name])
    read = list(reader_for(path)(path))
    done = [progress.done for _, progress in read]
    assert done == sorted(done)
    assert done[-1] == read[-1][1].total
    assert [record.number for record, _ in read] == list(range(1, 301))


def test_lines_of_json_are_passed_on_as_they_are(tmp_path: Path) -> None:
    """The bytes of a line are unchanged; blank lines are skipped but counted."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"b" : 1.50}\n\n  \n not json \n')
    records = [record for record, _ in reader_for(path)(path)]
    assert [(record.value, record.number) for record in records] == [(b'{"b" : 1.50}', 1), (b" not json ", 4)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_line_without_end_is_a_faulty_record(
    name: str, end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line over the limit is reported with its beginning; the others, and one exactly at the limit, are read."""
    monkeypatch.setattr(readers, "_LONGEST_LINE", 100)
    monkeypatch.setattr(readers, "_LINES_BYTES", 64)
    monkeypatch.setattr(readers, "_SHOWN_BYTES", 10)
    large, fits, too_large = b"1" * 500, b"2" * 100 + b"\n", b"3" * 101 + end
    path = tmp_path / name
    content = b"{}\n" + large + b"\n" + fits + too_large
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    records = [record for record, _ in reader_for(path)(path)]
    assert [(record.value, record.number, record.fault is None) for record in records] == [
        (b"{}", 1, True),
        (b"1" * 10, 2, False),
        (b"2" * 100, 3, True),
        (b"3" * 10, 4, False),
    ]


@pytest.mark.parametrize("begin", [b"[", b"\xef\xbb\xbf [", b"\n  [\n"])
@pytest.mark.parametrize("name", ["a.json", "a.JSON.gz"])
def test_array_is_told_before_anything_is_read(begin: bytes, name: str, tmp_path: Path) -> None:
    """The error says how to convert it to lines. In a file named as lines, it is just one odd record."""
    content = begin + b'{"id": 1}]'
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    for read in (lambda: check_files([path]), lambda: list(reader_for(path)(path))):
        with pytest.raises(FileFormatError, match=r"one object per line is required: convert it with jq -c '\.\[\]'"):
            read()
    named_lines = path.rename(tmp_path / f"a.jsonl{path.suffix if name.endswith('.gz') else ''}")
    check_files([named_lines])


def test_values_that_json_lacks_are_written_as_text(tmp_path: Path) -> None:
    """Times and UTF-8 bytes in Parquet become text that can be decoded; other bytes cannot be mistaken for text."""
    moment = pa.scalar(1_792_324_800_000, pa.timestamp("ms", "UTC"))
    columns = {"body": ["正文".encode()], "published_at": pa.array([moment.as_py()]), "raw": [b"\x01\xff"]}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    (record,) = _records(tmp_path / "a.parquet")
    assert record["body"] == "正文"
    assert record["raw"] == {"bytes": "01ff"}
    assert str(record["published_at"]).startswith("2026-10-18T12:00:00")


def test_columns_of_parquet_with_dots_are_paths(tmp_path: Path) -> None:
    """As in CSV; structures, whose fields are nested already, work as well."""
    columns = {"content.text": ["正文", None], "content.title": ["标题", "题"], "of": [{"tenant": "甲"}, None]}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert _records(tmp_path / "a.parquet") == [
        {"content": {"text": "正文", "title": "标题"}, "of": {"tenant": "甲"}},
        {"content": {"text": None, "title": "题"}, "of": None},
    ]


def test_columns_of_parquet_that_exclude_each_other_are_no_paths(tmp_path: Path) -> None:
    """A column cannot be both a value and an object; this is no error, since perhaps neither is used."""
    parquet.write_table(pa.table({"content.text": ["正文"], "content": ["文"]}), tmp_path / "a.parquet")
    assert _records(tmp_path / "a.parquet") == [{"content.text": "正文", "content": "文"}]


def test_times_that_python_lacks_end_no_file(tmp_path: Path) -> None:
    """Nanoseconds (from pandas) are truncated; a row with a time beyond Python's is reported, the next is read."""
    moments = pa.array([1_792_324_800_123_456_789, None, -1], pa.timestamp("ns", "UTC"))
    days = pa.array([1, 2**31 - 1, None], pa.date32())
    columns = {"body": ["a", "b", "c"], "at": moments, "clock": pa.array([1, 2, None], pa.time64("ns")), "day": days}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    records = [record for record, _ in reader_for(tmp_path / "a.parquet")(tmp_path / "a.parquet")]
    first, second, third = (orjson.loads(record.value) for record in records)
    assert (first["at"], first["day"]) == ("2026-10-18T12:00:00.123456+00:00", "1970-01-02")
    assert (second["body"], second["at"], second["day"]) == ("b", None, None)
    assert third["at"].startswith("1970-01-01T00:00:00")
    assert [record.number for record in records] == [1, 2, 3]
    assert [record.fault and record.fault.partition(":")[0] for record in records] == [None, "day", None]


def test_times_within_other_values_are_cut_off_too(tmp_path: Path) -> None:
    """Nanoseconds in structures, lists, maps and durations are truncated; what Python can represent is unchanged."""
    moment = 1_792_324_800_123_456_789
    at = pa.timestamp("ns", "UTC")
    columns = {
        "inner": pa.array([{"at": moment, "n": 1}], pa.struct([("at", at), ("n", pa.int64())])),
        "list": pa.array([[moment]], pa.list_(at)),
        "pair": pa.array([[moment, moment]], pa.list_(at, 2)),
        "views": pa.array([[moment]], pa.list_view(at)),
        "days": pa.array([[1]], pa.list_(pa.date32())),
        "map": pa.array([[("a", moment)]], pa.map_(pa.string(), at)),
        "took": pa.array([1_500_000_789], pa.duration("ns")),
        "word": pa.array(["a"]).dictionary_encode(),
    }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    ((record, _),) = reader_for(tmp_path / "a.parquet")(tmp_path / "a.parquet")
    told = "2026-10-18T12:00:00.123456+00:00"
    assert record.fault is None
    assert orjson.loads(record.value) == {
        "inner": {"at": told, "n": 1},
        "list": [told],
        "pair": [told, told],
        "views": [told],
        "days": ["1970-01-02"],
        "map": [["a", told]],
        "took": "0:00:01.500000",
        "word": "a",
    }


def test_time_zone_that_python_lacks_is_utc(tmp_path: Path) -> None:
    """A moment is the same in any zone; a known zone is kept."""
    moment = 1_792_324_800_123_456
    zones = {"named": "Asia/Shanghai", "offset": "+08:00", "unknown": "Mars/Phobos"}
    columns = {name: pa.array([moment], pa.timestamp("us", zone)) for name, zone in zones.items()}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    ((record, _),) = reader_for(tmp_path / "a.parquet")(tmp_path / "a.parquet")
    local = "2026-10-18T20:00:00.123456+08:00"
    told = {"named": local, "offset": local, "unknown": "2026-10-18T12:00:00.123456+00:00"}
    assert (record.fault, orjson.loads(record.value)) == (None, told)


def test_what_can_be_read_again_is_known(tmp_path: Path) -> None:
    """A run over files alone can be resumed after its end, one that reads a pipe cannot."""
    file, pipe = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    file.touch()
    os.mkfifo(pipe)
    assert [are_regular(paths) for paths in ([file], [file, pipe], [file, Path("-")])] == [True, False, False]


def test_empty_files_have_no_records(tmp_path: Path) -> None:
    """An empty file is not an error."""
    for name, content in (
        ("a.jsonl", b""),
        ("a.csv", b""),
        ("b.csv", b"id,body\n"),
        ("a.jsonl.gz", gzip.compress(b"")),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert _records(path) == []


@pytest.mark.parametrize("name", ["a.txt", "a", "a.xlsx", "a.parquet.gz", "a.tar.gz"])
def test_unknown_suffix_is_refused_with_the_known_ones(name: str, tmp_path: Path) -> None:
    """The error names the file and the formats that can be read."""
    with pytest.raises(FileFormatError, match=r"\.jsonl, \.ndjson, \.json and \.csv") as raised:
        reader_for(tmp_path / name)
    assert str(tmp_path / name) in str(raised.value)


def _flipped(content: bytes, place: int) -> bytes:
    damaged = bytearray(content)
    damaged[place : place + 2] = bytes(byte ^ 0xFF for byte in damaged[place : place + 2])
    return bytes(damaged)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.jsonl.gz", gzip.compress(_JSON)[:-900]),
        ("cut-trailer.jsonl.gz", gzip.compress(_JSON)[:-3]),
        ("bytes.jsonl.gz", _flipped(gzip.compress(_JSON), 20)),
        ("middle.jsonl.gz", _flipped(gzip.compress(_JSON), len(gzip.compress(_JSON)) // 2)),
        ("bytes.csv.gz", _flipped(gzip.compress(_csv()), 20)),
        ("plain.jsonl.gz", _JSON),
        ("middle.jsonl.zst", _flipped(_zst(_JSON), len(_zst(_JSON)) // 2)),
        ("plain.jsonl.zst", _JSON),
        ("gbk.csv", "编号,正文\n1,你好\n".encode("gbk")),
        ("quote.csv", '"id,body\n1,你好\n'.encode()),
        ("twice.csv", b"id,body,body\n1,a,b\n"),
        ("within.csv", b"id,body,body.text\n1,a,b\n"),
        ("bytes.parquet", b"PAR1 and no more"),
        ("cut.parquet", _contents()["a.parquet"][:-50]),
        ("empty.parquet", b""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_file_is_named(name: str, content: bytes, tmp_path: Path) -> None:
    """A file that is truncated, damaged or not of its named format is a FileFormatError that names it."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileFormatError) as raised:
        list(reader_for(path)(path))  # what is decompressed before the damage need not be JSON
    assert str(path) in str(raised.value)


_SOUND = '1,"一行\n两行"\n'.encode(), '3,"又一""行"'.encode()
_CSV_FAULTS = {
    "too many fields": (b"2,a,b\n", "it has 3 fields, but the heading has 2"),
    "text behind a quote": (b'2,"x"y\n', "expected after"),
    "another encoding": ("2,你好\n".encode("gbk"), "not valid UTF-8"),
}


@pytest.mark.parametrize("fault", _CSV_FAULTS)
def test_faulty_row_is_told_and_those_around_it_are_read(fault: str, tmp_path: Path) -> None:
    """In CSV only that row is faulty, and is reported with its number and content."""
    row, reason = _CSV_FAULTS[fault]
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,body\n" + _SOUND[0] + row + _SOUND[1])
    first, faulty, last = (record for record, _ in reader_for(path)(path))
    assert [orjson.loads(one.value) for one in (first, last)] == [
        {"id": "1", "body": "一行\n两行"},
        {"id": "3", "body": '又一"行'},
    ]
    assert (faulty.number, faulty.value) == (2, row)
    assert reason in (faulty.fault or "")


@pytest.mark.parametrize("closed_by", ["", '5,"e"\n'])
def test_quote_that_is_not_closed_takes_its_line_alone(closed_by: str, tmp_path: Path) -> None:
    """This holds whether the file ends or another quote follows; later lines with all fields are rows."""
    torn = '2,"open\n'
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,body\n" + _SOUND[0] + f"{torn}3,c\nno row\n4,d\n{closed_by}".encode() + b"6\n")
    records = [record for record, _ in reader_for(path)(path)]
    sound = [orjson.loads(one.value)["id"] for one in records if one.fault is None]
    assert sound == (["1", "3", "4", "5", "6"] if closed_by else ["1", "3", "4"])
    faulty = [one.value for one in records if one.fault is not None]
    assert faulty == [torn.encode(), b"no row\n", *([] if closed_by else [b"6\n"])]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_row_that_is_too_long_is_told_by_its_beginning(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CSV line over the limit is reported, even within a multi-line text; the other rows are read."""
    monkeypatch.setattr(rows, "_LONGEST", 100)
    monkeypatch.setattr(rows, "_SKIPPED", 64)
    monkeypatch.setattr(rows, "_SHOWN", 10)
    path = tmp_path / name
    fits = b"5," + b"5" * 98
    content = b"id,body\r\n1,a\r\n" + b"2" * 500 + b'\r\n3,"b\r\n' + b"4" * 500 + b"\r\n" + fits + b"\n" + b"6" * 101
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    records = [record for record, _ in reader_for(path)(path)]
    assert [(record.value, record.fault is None) for record in records] == [
        (b'{"id":"1","body":"a"}', True),
        (b"2" * 10, False),
        (b'3,"b\r\n', False),
        (b"4" * 10, False),
        (b'{"id":"5","body":"' + b"5" * 98 + b'"}', True),
        (b"6" * 10, False),
    ]


def test_heading_of_csv_is_the_first_line_that_is_not_blank(tmp_path: Path) -> None:
    """Blank lines before the heading are skipped; otherwise every row would have too many fields."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf\r\n\r\nid,body\r\n1,a\r\n")
    assert [record.value for record, _ in reader_for(path)(path)] == [b'{"id":"1","body":"a"}']


@pytest.mark.parametrize("mark", "\t;|")
def test_csv_of_other_marks_than_commas_is_refused(mark: str, tmp_path: Path) -> None:
    """Otherwise each row would be a dead letter for lack of a body."""
    path = tmp_path / "a.csv"
    path.write_text(f"id{mark}body\n1{mark}a\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"its heading is one column, .*: separate columns by commas"):
        list(reader_for(path)(path))


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    """In Parquet as in CSV, it would be unclear which one is meant."""
    path = tmp_path / "a.parquet"
    columns = [pa.array(["1"]), pa.array(["one"]), pa.array(["two"])]
    parquet.write_table(pa.Table.from_arrays(columns, names=["id", "body", "body"]), path)
    with pytest.raises(FileFormatError, match="several columns are called 'body'"):
        list(reader_for(path)(path))


def test_many_open_quotes_take_no_longer_than_lines(tmp_path: Path) -> None:
    """Each open quote ends at the next one, so none causes a search through the whole file."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,body\n" + b'2,"open\n3,c\n' * 20_000)
    records = [record.fault is None for record, _ in reader_for(path)(path)]
    assert (sum(records), len(records)) == (20_000, 40_000)


def test_csv_names_fields_within_and_flags(tmp_path: Path) -> None:
    """Dots in a heading make a path; true and false are flags only in a column of flags; blank rows are skipped."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,content.text,content.lead,deleted,draft\n1,a,b,False,true\n\n2,c,,1,\n3,d,,maybe,\n")
    assert [orjson.loads(record.value) for record, _ in reader_for(path, {"deleted"})(path)] == [
        {"id": "1", "content": {"text": "a", "lead": "b"}, "deleted": False, "draft": "true"},
        {"id": "2", "content": {"text": "c"}, "deleted": True},
        {"id": "3", "content": {"text": "d"}, "deleted": "maybe"},
    ]


@pytest.mark.parametrize("missing", [900, 3])
def test_truncated_zst_file_is_named_and_not_taken_for_a_shorter_one(missing: int, tmp_path: Path) -> None:
    """A .zst file whose end is missing is a FileFormatError, never a silent end."""
    path = tmp_path / "cut.jsonl.zst"
    path.write_bytes(_zst(_JSON)[:-missing])
    with pytest.raises(FileFormatError, match=str(path)):
        _records(path)


@pytest.mark.parametrize("name", ["none.jsonl", "none.csv", "none.parquet", "none.jsonl.gz"])
def test_missing_file_is_named(name: str, tmp_path: Path) -> None:
    """A missing file is a FileFormatError that names it."""
    with pytest.raises(FileFormatError, match=name):
        _records(tmp_path / name)


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
    reports: dict[Path, Progress] = {}
    with engine_in(None) as engine:
        dedup_files([sample_file], tmp_path / "out", engine, Settings(), reports.__setitem__, Summary())
    assert reports == {sample_file: Progress(sample_file.stat().st_size, sample_file.stat().st_size)}


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


def test_csv_withdraws_articles(engine_in: Callable[[Path | None], Deduplicator], tmp_path: Path) -> None:
    """`deleted` set to true in CSV withdraws an article; false does not."""
    path = tmp_path / "in.csv"
    path.write_text(f"id,body,deleted\n1,{_ROWS[0]['body']},false\n1,,true\n", newline="")
    path.write_bytes(path.read_bytes().replace(str(_ROWS[0]["body"]).encode(), "石桥镇的夜市昨晚重新开张".encode()))
    assert _run([path], tmp_path / "out", engine_in(None)).outcomes == {"unique": 1, "withdrawn": 1}


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


def test_standard_input_that_is_closed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell does this with `<&-`; Python then has no standard input."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(FileFormatError, match="standard input is closed"):
        list(reader_for(Path("-"))(Path("-")))


@pytest.mark.parametrize("name", ["d.jsonl", "d"])
def test_directory_is_no_file(name: str, engine_in: Callable[[Path | None], Deduplicator], tmp_path: Path) -> None:
    """The error says so, and not that the file is missing or of unknown format."""
    (tmp_path / name).mkdir()
    with pytest.raises(FileFormatError, match="is a directory"):
        _run([tmp_path / name], tmp_path / "out", engine_in(None))
