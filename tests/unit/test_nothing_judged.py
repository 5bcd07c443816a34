"""What is told of a file that holds no articles.

Knows files of each kind of fault; the commands that tell it have their own tests.
"""

import os
from pathlib import Path

import pytest

from stream_dedup.files.nothing_judged import no_articles
from stream_dedup.settings import InputSettings

_GBK = "records must be in UTF-8: convert GBK with iconv -f gb18030 -t utf-8, UTF-16 with iconv -f utf-16 -t utf-8"
_LINES = "one object per line is required: convert an array with jq -c '.[]'"


@pytest.mark.parametrize(
    ("name", "content", "first", "advice"),
    [
        ("in.jsonl", '{"text": "今天下雨。"}\n'.encode(), "record 1: ", "; for other field names, set input.fields"),
        ("in.jsonl", '[\n{"body": "今天下雨。"},\n'.encode(), "record 1: ", f"; {_LINES}"),
        ("in.jsonl", '\n{"body": "今天下雨。"}\n'.encode("gb18030"), "record 2: ", f"; {_GBK}"),
        ("in.csv", "body\n今天下雨。\n".encode("gb18030"), "record 1: ", f"; {_GBK}"),
        ("in.csv", b'body\n"a"b\n', "record 1: ", ""),
        ("in.jsonl", b'{"body": ""}\n', "record 1: ", ""),
    ],
)
def test_first_fault_is_told_with_what_to_do(
    name: str, content: bytes, first: str, advice: str, tmp_path: Path
) -> None:
    """Many remedies are possible, but only one is right for a file."""
    path = tmp_path / name
    path.write_bytes(content)
    told = str(no_articles(path, InputSettings()))
    assert told.startswith(f"{path}: no articles in it: {first}")
    assert told.endswith(advice)
    assert told.count(";") == advice.count(";")


@pytest.mark.parametrize("content", [b"", b'{"id": "a", "deleted": true}\n'])
def test_file_without_a_fault_is_only_named(content: bytes, tmp_path: Path) -> None:
    """It is empty, or has only withdrawals."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    assert str(no_articles(path, InputSettings())) == f"{path}: no articles in it"


def test_pipe_is_not_read_again(tmp_path: Path) -> None:
    """It would be waited for without an end."""
    path = tmp_path / "in.jsonl"
    os.mkfifo(path)
    assert str(no_articles(path, InputSettings())) == f"{path}: no articles in it"
