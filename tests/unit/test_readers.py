"""Every format gives the same records, and a file that is broken or no such file is named.

Knows files in all formats; what is special to CSV and Parquet is tested in test_csv and test_parquet.
"""

import csv
import gzip
import io
import os
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from pyarrow import parquet

from stream_dedup.files import readers
from stream_dedup.files.readers import FileFormatError, reader_for
from stream_dedup.files.run import check_files
from stream_dedup.zstandard import zstd
from tests.unit.read_files import records_in

_ROWS = [
    {
        "id": f"n-{number}",
        "title": f'第{number}条, "引号"',
        "body": f"第一行\n第二行，{number}号\t👍" * (number % 5 + 1),
    }
    for number in range(300)
]
_JSON = b"".join(orjson.dumps(row) + b"\n" for row in _ROWS)


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


@pytest.mark.parametrize("name", list(_contents()))
def test_every_format_gives_the_same_records(name: str, tmp_path: Path) -> None:
    """Plain or compressed, with a byte order mark or CRLF, in several frames: the records are the same."""
    path = tmp_path / name
    path.write_bytes(_contents()[name])
    assert records_in(path) == _ROWS


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
        with pytest.raises(
            FileFormatError, match=r"one object per line is required: convert an array with jq -c '\.\[\]'"
        ):
            read()
    named_lines = path.rename(tmp_path / f"a.jsonl{path.suffix if name.endswith('.gz') else ''}")
    check_files([named_lines])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_can_be_read_once_is_not_named_twice(tmp_path: Path) -> None:
    """Standard input would be empty the second time, and a named pipe would be waited for."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "file.jsonl").touch()
    check_files([Path("-"), tmp_path / "pipe.jsonl", *2 * [tmp_path / "file.jsonl"]])
    for once in (Path("-"), tmp_path / "pipe.jsonl"):
        with pytest.raises(FileFormatError, match=f"{once} cannot be read more than once: name a file"):
            check_files([once, tmp_path / "file.jsonl", once])


def test_empty_files_have_no_records(tmp_path: Path) -> None:
    """An empty file is not an error, unless it should be compressed: then it is one that was cut."""
    for name, content in (
        ("a.jsonl", b""),
        ("a.csv", b""),
        ("b.csv", b"id,body\n"),
        ("a.jsonl.gz", gzip.compress(b"")),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert records_in(path) == []


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
        ("empty.jsonl.gz", b""),
        ("empty.jsonl.zst", b""),
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


@pytest.mark.parametrize("missing", [900, 3])
def test_truncated_zst_file_is_named_and_not_taken_for_a_shorter_one(missing: int, tmp_path: Path) -> None:
    """A .zst file whose end is missing is a FileFormatError, never a silent end."""
    path = tmp_path / "cut.jsonl.zst"
    path.write_bytes(_zst(_JSON)[:-missing])
    with pytest.raises(FileFormatError, match=str(path)):
        records_in(path)


def _zst_frame(window_log: int) -> bytes:
    """Return a frame of RFC 8878 with a window of that size and one raw block, which ends it."""
    content = b'{"id":1}'
    last_raw_block = (len(content) << 3 | 1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd" + b"\0" + bytes([(window_log - 10) << 3]) + last_raw_block + content


def test_window_of_zst_that_takes_much_memory_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """128 MiB, as the program zstd accepts by default, is read; with `--long=28` and more, a small file may take it."""
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(_zst_frame(27))
    assert records_in(path) == [{"id": 1}]
    path.write_bytes(_zst_frame(28))
    with pytest.raises(FileFormatError, match=r"a\.jsonl\.zst: .* memory .*: decompress it with `zstd -d --long=31`$"):
        records_in(path)


@pytest.mark.parametrize("name", ["none.jsonl", "none.csv", "none.parquet", "none.jsonl.gz"])
def test_missing_file_is_named(name: str, tmp_path: Path) -> None:
    """A missing file is a FileFormatError that names it."""
    with pytest.raises(FileFormatError, match=name):
        records_in(tmp_path / name)
