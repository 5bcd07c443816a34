"""CSV files: a row that is faulty is reported alone, and those around it are read.

Knows quotes, headings and limits; what all formats have in common is tested in test_readers.
"""

import csv
import gzip
from pathlib import Path

import orjson
import pytest

from stream_dedup.files import rows
from stream_dedup.files.readers import FileFormatError, reader_for

_SOUND = '1,"一行\n两行"\n'.encode(), '3,"又一""行"'.encode()
_CSV_FAULTS = {
    "too many fields": (b"2,a,b\n", "it has 3 fields, but the heading has 2"),
    "text behind a quote": (b'2,"x"y\n', "expected after"),
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


def test_row_in_another_encoding_is_passed_on_as_it_is(tmp_path: Path) -> None:
    """As for a line of JSON, what decodes it tells what is wrong; the rows around it are read."""
    row = "2,你好\n".encode("gbk")
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,body\n" + _SOUND[0] + row + _SOUND[1])
    records = [record for record, _ in reader_for(path)(path)]
    assert [(record.number, record.fault) for record in records] == [(1, None), (2, None), (3, None)]
    assert records[1].value == row


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


def test_long_text_is_a_field_like_others(tmp_path: Path) -> None:
    """The csv module by itself refuses more than 128 KiB, which is less than an article may have."""
    csv.field_size_limit(128 << 10)  # as at the start of a process
    path, text = tmp_path / "a.csv", "长" * 200_000
    path.write_text(f'id,body\n1,{text}\n2,"{text}"\n', encoding="utf-8")
    records = [record for record, _ in reader_for(path)(path)]
    assert [record.fault for record in records] == [None, None]
    assert {orjson.loads(record.value)["body"] for record in records} == {text}


def test_heading_of_csv_is_the_first_line_that_is_not_blank(tmp_path: Path) -> None:
    """Blank lines before the heading are skipped; otherwise every row would have too many fields."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf\r\n\r\nid,body\r\n1,a\r\n")
    assert [record.value for record, _ in reader_for(path)(path)] == [b'{"id":"1","body":"a"}']


def test_columns_without_a_name_are_no_fault(tmp_path: Path) -> None:
    """A spreadsheet writes one for each column that was once used, here and there with something in it."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,body,,\r\n1,a,,\r\n2,b,,note\r\n")
    assert [record.value for record, _ in reader_for(path)(path)] == [
        b'{"id":"1","body":"a"}',
        b'{"id":"2","body":"b","":"note"}',
    ]


@pytest.mark.parametrize("mark", "\t;|")
def test_csv_of_other_marks_than_commas_is_refused(mark: str, tmp_path: Path) -> None:
    """Otherwise each row would be a dead letter for lack of a body."""
    path = tmp_path / "a.csv"
    path.write_text(f"id{mark}body\n1{mark}a\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"its heading is one column, .*: separate columns by commas"):
        list(reader_for(path)(path))


def test_many_open_quotes_take_no_longer_than_lines(tmp_path: Path) -> None:
    """Each open quote ends at the next one, so none causes a search through the whole file."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,body\n" + b'2,"open\n3,c\n' * 20_000)
    records = [record.fault is None for record, _ in reader_for(path)(path)]
    assert (sum(records), len(records)) == (20_000, 40_000)


def test_lines_that_leave_a_quote_open_however_they_are_read_take_no_longer(tmp_path: Path) -> None:
    """Such a line opens a quote as a row, and closes one and opens another within a text: all rows reach the end."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,body\n1,a\n" + b'a","b\n' * 40_000 + b"2,b\n")
    records = [record for record, _ in reader_for(path)(path)]
    assert [record.number for record in records if record.fault is None] == [1, 40_002]
    assert {record.fault for record in records} == {None, "unexpected end of data"}


def test_csv_names_fields_within_and_flags(tmp_path: Path) -> None:
    """Dots in a heading make a path; true and false are flags only in a column of flags; blank rows are skipped."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,content.text,content.lead,deleted,draft\n1,a,b,False,true\n\n2,c,,1,\n3,d,,maybe,\n")
    assert [orjson.loads(record.value) for record, _ in reader_for(path, {"deleted"})(path)] == [
        {"id": "1", "content": {"text": "a", "lead": "b"}, "deleted": False, "draft": "true"},
        {"id": "2", "content": {"text": "c"}, "deleted": True},
        {"id": "3", "content": {"text": "d"}, "deleted": "maybe"},
    ]
