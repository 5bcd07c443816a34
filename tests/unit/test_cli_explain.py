"""`stream-dedup explain`: what it shows people and programs, and texts that it cannot read.

Knows streams and exit codes; what is explained is tested in test_explain.
"""

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from stream_dedup.engine.explain import explain
from stream_dedup.settings import Settings
from tests.unit.commands import BODY, Invoke, one_line, write_texts

pytestmark = pytest.mark.usefixtures("wide_terminal")

_ROOT = Path(__file__).parents[2]


def test_explain_as_json_is_what_explain_computes(invoke: Invoke, tmp_path: Path) -> None:
    """`explain --json` prints the rounded fields of the explanation."""
    result = invoke("explain", *write_texts(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    shown, expected = json.loads(result.stdout), explain(BODY, BODY[:20], Settings())
    assert shown["relation"] == expected.relation
    assert shown["fingerprints"] == [f"{value:016x}" for value in expected.fingerprints]
    assert (shown["hamming"], shown["differing_bits"]) == (expected.hamming, expected.differing_bits)
    assert shown["jaccard"] == pytest.approx(expected.jaccard, abs=5e-5)
    assert shown["containment"] == pytest.approx(expected.containment, abs=5e-5)
    assert shown["cosine"] == pytest.approx(expected.cosine, abs=5e-5)
    assert [word["word"] for word in shown["shared_words"]] == [word.word for word in expected.shared_words]


def test_explain_for_people_shows_verdict_and_bits(invoke: Invoke, tmp_path: Path) -> None:
    """Without --json, the verdict, both fingerprints in binary and the heaviest words are shown."""
    result = invoke("explain", *reversed(write_texts(tmp_path)))
    expected = explain(BODY[:20], BODY, Settings())
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{expected.relation}  ")
    assert all(f"{value:064b}" in result.stdout for value in expected.fingerprints)
    assert "heaviest shared words" in result.stdout


@pytest.mark.slow
def test_explain_in_a_pipe_has_lines_of_any_length(tmp_path: Path) -> None:
    """If output is not a terminal, a name of 100 letters is printed in full beside its fingerprint."""
    paths = write_texts(tmp_path)
    names = ["a" * 100, "b" * 100]
    files = [path.rename(tmp_path / name) for path, name in zip(paths, names, strict=True)]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "stream_dedup", "explain", *map(str, files)]
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=True)
    for fingerprint, name in zip(explain(BODY, BODY[:20], Settings()).fingerprints, names, strict=True):
        assert f"{fingerprint:064b}  {fingerprint:016x}  {name}" in done.stdout.splitlines()


def test_explain_names_texts_that_it_cannot_read(invoke: Invoke, tmp_path: Path) -> None:
    """A missing file, a text that is not UTF-8 and a missing state directory are named."""
    first, second = write_texts(tmp_path)
    result = invoke("explain", first, tmp_path / "none.txt")
    assert (result.exit_code, "none.txt: there is no such file" in one_line(result.stderr)) == (2, True)
    second.write_bytes("你好".encode("gbk"))
    result = invoke("explain", first, second)
    told = "b.txt is not valid UTF-8: convert GBK with iconv -f gb18030 -t utf-8, UTF-16 with iconv -f utf-16 -t utf-8"
    assert (result.exit_code, told in one_line(result.stderr)) == (2, True)
    for blank in (" \n\u3000", "<p>&nbsp;</p>\u200b"):
        (tmp_path / "blank.txt").write_text(blank, "utf-8")
        result = invoke("explain", first, tmp_path / "blank.txt")
        assert (result.exit_code, "blank.txt is blank" in " ".join(result.stderr.split())) == (2, True)
    result = invoke("explain", first, first, "--state", tmp_path / "nowhere")
    assert (result.exit_code, one_line(result.stderr).find("nowhere is not a state directory: name one") > 0) == (
        1,
        True,
    )


@pytest.mark.parametrize(("mark", "character"), [("", "a"), ("", "字"), ("\ufeff", "𠮷")])
def test_explain_refuses_a_text_that_is_too_long_to_be_judged(
    mark: str, character: str, invoke: Invoke, tmp_path: Path
) -> None:
    """One character more than a body may have is too many, whatever its length in bytes."""
    first, second = write_texts(tmp_path)
    second.write_text(mark + 100 * character, encoding="utf-8")
    assert invoke("explain", first, second, "-s", "input.max_body_chars=100").exit_code == 0
    second.write_text(mark + 101 * character, encoding="utf-8")
    result = invoke("explain", first, second, "-s", "input.max_body_chars=100")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "b.txt has more than 100 characters: input.max_body_chars is the limit" in one_line(result.stderr)


def test_explain_does_not_read_a_large_file_into_memory(invoke: Invoke, tmp_path: Path) -> None:
    """It reads no more than is needed to see that the text is too long."""
    first, second = write_texts(tmp_path)
    with second.open("wb") as file:
        file.truncate(200_000_000)
    tracemalloc.start()
    try:
        result = invoke("explain", first, second)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (result.exit_code, result.stdout) == (2, "")
    assert most_bytes < 100_000_000


def test_explain_does_not_read_standard_input_twice(invoke: Invoke, tmp_path: Path) -> None:
    """There is one text in it; it would seem to be blank. A file may be compared with itself."""
    first, _ = write_texts(tmp_path)
    result = invoke("explain", "-", "-")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "- cannot be read more than once: name a file" in one_line(result.stderr)
    same = invoke("explain", first, first).stdout
    assert "the two texts are identical" in same
    assert "heaviest shared words" in same
    assert "heaviest differing words" not in same, "a table without rows says nothing"


def test_mark_at_the_beginning_of_a_file_is_no_difference(invoke: Invoke, tmp_path: Path) -> None:
    """Windows editors put it there; it is not part of the text, and alone it is none."""
    first, second = write_texts(tmp_path)
    second.write_text(BODY, encoding="utf-8-sig")
    assert "\ufeff" not in invoke("explain", first, second).stdout
    second.write_text("", encoding="utf-8-sig")
    result = invoke("explain", first, second)
    assert (result.exit_code, "b.txt is blank" in one_line(result.stderr)) == (2, True)


def test_explain_does_not_write_into_a_directory_that_is_no_state(invoke: Invoke, tmp_path: Path) -> None:
    """A directory passed by mistake as --state is refused and left unchanged."""
    first, second = write_texts(tmp_path)
    mistaken = tmp_path / "documents"
    mistaken.mkdir()
    result = invoke("explain", first, second, "--state", mistaken)
    assert list(mistaken.iterdir()) == []
    assert result.exit_code != 0
