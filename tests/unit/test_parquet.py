"""Parquet files: columns become fields, and values that JSON or Python lacks become text.

Knows Arrow's types; what all formats have in common is tested in test_readers.
"""

import tracemalloc
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from pyarrow import parquet

from stream_dedup.files.readers import FileFormatError, reader_for
from tests.unit.read_files import records_in


def test_values_that_json_lacks_are_written_as_text(tmp_path: Path) -> None:
    """Times and UTF-8 bytes in Parquet become text that can be decoded; other bytes cannot be mistaken for text."""
    moment = pa.scalar(1_792_324_800_000, pa.timestamp("ms", "UTC"))
    columns = {"body": ["正文".encode()], "published_at": pa.array([moment.as_py()]), "raw": [b"\x01\xff"]}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    (record,) = records_in(tmp_path / "a.parquet")
    assert record["body"] == "正文"
    assert record["raw"] == {"bytes": "01ff"}
    assert str(record["published_at"]).startswith("2026-10-18T12:00:00")


def test_columns_of_parquet_with_dots_are_paths(tmp_path: Path) -> None:
    """As in CSV; structures, whose fields are nested already, work as well."""
    columns = {"content.text": ["正文", None], "content.title": ["标题", "题"], "of": [{"tenant": "甲"}, None]}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert records_in(tmp_path / "a.parquet") == [
        {"content": {"text": "正文", "title": "标题"}, "of": {"tenant": "甲"}},
        {"content": {"text": None, "title": "题"}, "of": None},
    ]


def test_columns_of_parquet_that_exclude_each_other_are_no_paths(tmp_path: Path) -> None:
    """A column cannot be both a value and an object; this is no error, since perhaps neither is used."""
    parquet.write_table(pa.table({"content.text": ["正文"], "content": ["文"]}), tmp_path / "a.parquet")
    assert records_in(tmp_path / "a.parquet") == [{"content.text": "正文", "content": "文"}]


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


def test_large_rows_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """Reading a table of large rows takes less memory than all of them do."""
    columns = {"body": [str(number) + "x" * (4 << 20) for number in range(64)]}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet", use_dictionary=False, compression="zstd")
    tracemalloc.start()
    try:
        numbers = [record.number for record, _ in reader_for(tmp_path / "a.parquet")(tmp_path / "a.parquet")]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert numbers == [*range(1, 65)]
    assert most < 64 * (4 << 20)


def test_rows_that_share_a_large_text_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """A file of some kilobytes, whose rows have one text of 200 KB in common, does not take their hundreds of MB."""
    path, rows, text = tmp_path / "a.parquet", 1_500, "a" * 200_000
    parquet.write_table(pa.table({"body": [text] * rows}), path, compression="zstd")
    assert path.stat().st_size < 10_000
    tracemalloc.start()
    try:
        assert all(len(record.value) > len(text) for record, _ in reader_for(path)(path))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 0.1 * rows * len(text)


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
        "map": {"a": told},
        "took": "0:00:01.500000",
        "word": "a",
    }


def test_maps_are_objects_if_their_keys_are_texts(tmp_path: Path) -> None:
    """Of a key that occurs twice the last value counts. Maps with other keys are lists of pairs."""
    names = pa.map_(pa.string(), pa.string())
    columns = {
        "content": pa.array([[("text", "甲"), ("text", "乙")]], names),
        "inner": pa.array([[{"of": [("a", "b")]}]], pa.list_(pa.struct([("of", names)]))),
        "counts": pa.array([[(1, "a")]], pa.map_(pa.int32(), pa.string())),
        "raw": pa.array([[{"of": [(b"a", "b")]}]], pa.list_(pa.struct([("of", pa.map_(pa.binary(), pa.string()))]))),
        "empty": pa.array([None], names),
    }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    ((record, _),) = reader_for(tmp_path / "a.parquet")(tmp_path / "a.parquet")
    assert (record.fault, orjson.loads(record.value)) == (
        None,
        {
            "content": {"text": "乙"},
            "inner": [{"of": {"a": "b"}}],
            "counts": [[1, "a"]],
            "raw": [{"of": [["a", "b"]]}],
            "empty": None,
        },
    )


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


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    """In Parquet as in CSV, it would be unclear which one is meant."""
    path = tmp_path / "a.parquet"
    columns = [pa.array(["1"]), pa.array(["one"]), pa.array(["two"])]
    parquet.write_table(pa.Table.from_arrays(columns, names=["id", "body", "body"]), path)
    with pytest.raises(FileFormatError, match="several columns are called 'body'"):
        list(reader_for(path)(path))
