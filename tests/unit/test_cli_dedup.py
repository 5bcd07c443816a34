"""`stream-dedup dedup`, and the other commands on the state that it leaves.

Knows streams, exit codes and files; the runs themselves are tested in test_files.
"""

import errno
import gzip
import json
import re
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from stream_dedup.article import Article
from stream_dedup.cli.terminal import out
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.files.run_positions import RunPositions
from stream_dedup.index.records.ledger import ChangelogPosition, Positions
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Family, Put, StoreFullError
from tests.unit.commands import BODY, Invoke, one_line, write_articles

pytestmark = pytest.mark.usefixtures("wide_terminal")

_CUT_OFF = gzip.compress(b"id,body\n" + b"\n" * 10_000)[:-1]  # it begins well, so that is only found when it is read


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    """Return a file of three records: an article, its copy, and a broken one."""
    return write_articles(tmp_path)


def test_dedup_writes_results_and_a_summary(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """`dedup` writes the three files and prints how many records became what."""
    result = invoke("dedup", articles, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    lines = {path.name: len(path.read_text().splitlines()) for path in (tmp_path / "out").iterdir()}
    assert lines == {"unique.jsonl": 1, "links.jsonl": 1, "dead.jsonl": 1}
    assert "3 records" in result.stdout
    assert "exact" in result.stdout


def test_one_progress_bar_is_for_all_files(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """Hundreds of bars would outgrow the terminal, and drawing them would take most of the time."""
    files = [articles.rename(tmp_path / "0.jsonl"), *(tmp_path / f"{number}.jsonl" for number in (1, 2))]
    for file in files[1:]:
        file.write_bytes(files[0].read_bytes())
    result = invoke("dedup", *files, "--out", tmp_path / "out")
    (bar,) = result.stderr.splitlines()
    assert "100%" in bar
    assert bar.rstrip().endswith("3/3 2.jsonl")
    assert "%" not in invoke("dedup", *files, "--out", tmp_path / "out").stderr, "a run that is refused has none"


def test_summary_counts_records_by_outcome(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """Of all files together, the most frequent outcome first."""
    again = tmp_path / "again.jsonl"
    again.write_bytes(articles.read_bytes() * 2)
    result = invoke("dedup", articles, again, "--out", tmp_path / "out")
    rows = [line.strip("│ ").split() for line in result.stdout.splitlines() if "│" in line]
    assert [[name, int(count)] for name, _, count in rows if count.isdecimal()] == [
        ["redelivery", 4],
        ["dead", 3],
        ["missing_field", 3],
        ["unique", 1],
        ["exact", 1],
    ]
    assert "9 records" in result.stdout


def test_reasons_are_listed_below_the_dead_letters(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """They are not taken for kinds of another outcome, however many records that has."""
    result = invoke("dedup", articles, "--out", tmp_path / "out")
    words = [line.strip("│ ").split() for line in result.stdout.splitlines()]
    assert words[words.index(["missing_field", "│", "1"]) - 1] == ["dead", "│", "1"]


def test_dedup_goes_on_from_its_state(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """With --state, a second run knows the articles of the first."""
    for name in ("1", "2"):
        assert invoke("dedup", articles, "-o", tmp_path / name, "--state", tmp_path / "state").exit_code == 0
    assert (tmp_path / "2" / "unique.jsonl").read_text() == ""


def test_state_named_as_for_other_commands_is_not_left_out(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """A run would know nothing of earlier ones, and leave nothing to later ones, without a word."""
    state = tmp_path / "state"
    result = invoke("dedup", articles, "-o", tmp_path / "out", "--set", f"state.directory={state}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "name the directory with --state" in result.stderr
    assert not (tmp_path / "out").exists()


def test_dedup_tells_that_there_were_no_records(invoke: Invoke, tmp_path: Path) -> None:
    """An empty file is not an error, but it is reported, and the result files exist."""
    (tmp_path / "empty.jsonl").write_bytes(b"")
    result = invoke("dedup", tmp_path / "empty.jsonl", "-o", tmp_path / "out")
    assert result.exit_code == 0
    assert f"no records; results in {tmp_path / 'out'}" in result.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"unique.jsonl", "links.jsonl", "dead.jsonl"}


def test_dedup_tells_that_nothing_was_left(
    invoke: Invoke, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a run fails after writing everything but before recording that, the same command finds nothing left to do."""
    command = ("dedup", articles, "-o", tmp_path / "out", "--state", tmp_path / "state")
    with monkeypatch.context() as ended:
        ended.setattr("stream_dedup.files.run_positions.RunPositions.finished", _full)
        assert invoke(*command).exit_code == 1
    result = invoke(*command)
    assert result.exit_code == 0
    assert f"no more records; results in {tmp_path / 'out'}" in result.stdout


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_dedup_refuses_to_overwrite(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """If results already exist, the command exits with 2 and suggests another directory."""
    invoke("dedup", articles, "-o", tmp_path / "out")
    result = invoke("dedup", articles, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "choose another --out" in one_line(result.stderr)


def test_dedup_names_results_that_it_cannot_make(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """The error is the system's, in words."""
    (tmp_path / "file").touch()
    result = invoke("dedup", articles, "-o", tmp_path / "file" / "out")
    assert result.exit_code == 1
    assert f"error: {tmp_path / 'file' / 'out'}: Not a directory" in one_line(result.stderr)


@pytest.mark.parametrize(("name", "content"), [("a.txt", b"{}"), ("none.jsonl", None), ("a.parquet", b"no")])
def test_dedup_names_a_file_that_it_cannot_read(
    name: str, content: bytes | None, invoke: Invoke, tmp_path: Path
) -> None:
    """An unknown format, a missing file and a broken one exit with 2 and the file's name."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = invoke("dedup", tmp_path / name, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert name in result.stderr


def test_dedup_on_a_state_in_use_exits_with_3(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """A state in use by another process has its own exit code."""
    with Deduplicator(tmp_path / "state"):
        result = invoke("dedup", articles, "-o", tmp_path / "out", "--state", tmp_path / "state")
    assert result.exit_code == 3
    assert "in use by another process" in one_line(result.stderr)
    assert "--state" in one_line(result.stderr)


def test_dedup_on_a_state_of_other_settings_exits_with_1(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """Fingerprints of other settings are not comparable; the message names the setting and both values."""
    invoke("dedup", articles, "-o", tmp_path / "1", "--state", tmp_path / "state")
    result = invoke("dedup", articles, "-o", tmp_path / "2", "--state", tmp_path / "state", "-s", "sketch.gram=4")
    assert result.exit_code == 1
    assert "sketch.gram = 5 in the state, 4 in the settings" in one_line(result.stderr)


@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
def test_state_of_a_service_is_refused(invoke: Invoke, articles: Path, tmp_path: Path, *, running: bool) -> None:
    """Named as `state.directory` or itself, nothing in it changes: its changelog would lack what is judged."""
    directory = tmp_path / "state"
    state = directory / "0123abcd"
    with ExitStack() as service:
        engine = service.enter_context(Deduplicator(state))
        judged = engine.decide([Article("1", BODY)])
        engine.apply(judged.change, {("in", 0): 1}, ChangelogPosition("stream-dedup.changelog.0123abcd/id", 1))
        if not running:
            service.close()
        before = _content(directory)
        for named in (directory, state):
            result = invoke("dedup", articles, "-o", tmp_path / "out", "--state", named)
            assert result.exit_code == 1
            assert one_line(result.stderr) == (
                f"error: {named} holds the state of a service, whose changelog would not know of what is judged here: "
                "name another directory"
            )
            assert _content(directory) == before
        assert not (tmp_path / "out").exists()


def _content(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_state_of_files_can_be_looked_at_checked_and_copied(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """`status`, `state stats`, `verify` and `snapshot` accept a state made by `dedup`; the copy can be continued."""
    invoke("dedup", articles, "-o", tmp_path / "out", "--state", tmp_path / "state")
    flags = ("--set", f"state.directory={tmp_path / 'state'}")
    stats = json.loads(invoke("state", "stats", "--json", *flags).stdout)
    lines = len(articles.read_bytes().splitlines())
    run = {"results": str(tmp_path / "out"), "finished": True, "file": str(articles), "lines": lines}
    assert (stats["directory"], stats["changelog"], stats["runs"]) == (str(tmp_path / "state"), None, [run])
    assert (stats["articles_judged"], stats["idf_epoch"], stats["other_states"]) == (2, 0, [])
    status = json.loads(invoke("status", "--json", *flags).stdout)
    assert (status["files"], status["input"]) == ([run], [])
    shown = invoke("status", *flags).stdout
    assert f"{articles}, {lines} lines, the run is finished" in shown.replace("\n", " ")
    assert "partition" not in shown
    assert "None" not in invoke("state", "stats", *flags).stdout
    assert invoke("state", "verify", *flags).exit_code == 0
    assert "--state" in invoke("state", "snapshot", tmp_path / "copy", *flags).stdout
    again = invoke("dedup", articles, "-o", tmp_path / "again", "--state", tmp_path / "copy")
    assert ("redelivery" in again.stdout, "unique" in again.stdout) == (True, False)


def test_files_of_an_earlier_run_with_the_same_results_are_not_shown(
    invoke: Invoke, articles: Path, tmp_path: Path
) -> None:
    """Its results were moved away, and whoever looks at the state wants to know of the last run."""
    second = tmp_path / "second.jsonl"
    second.write_text('{"id": "d", "body": "今天下雨。"}\n', encoding="utf-8")
    out, state = tmp_path / "out", tmp_path / "state"
    for number, files in enumerate([(articles, second), (second,)]):
        assert invoke("dedup", *files, "-o", out, "--state", state).exit_code == 0
        out.rename(tmp_path / f"moved-{number}")
    run = {"results": str(out), "finished": True, "file": str(second), "lines": 1}
    flags = ("--json", "--set", f"state.directory={state}")
    assert json.loads(invoke("state", "stats", *flags).stdout)["runs"] == [run]
    assert json.loads(invoke("status", *flags).stdout)["files"] == [run]


def test_stats_are_whole_on_a_narrow_terminal(
    invoke: Invoke, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long paths take several lines, what a terminal would obey is shown, and figures without a value are left out."""
    file = articles.rename(tmp_path / "\x1b[2J.jsonl")
    invoke("dedup", file, "-o", tmp_path / "out", "--state", tmp_path / "state")
    monkeypatch.setattr(out, "width", 40)
    shown = invoke("state", "stats", "--set", f"state.directory={tmp_path / 'state'}").stdout
    assert f"file{tmp_path}/␛[2J.jsonl,lines" in "".join(shown.split())
    assert "other states" not in shown


def test_fault_in_a_state_of_files_is_mended_from_them(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """There is no changelog for `state restore` to use, so the advice is to run `dedup --state` again."""
    invoke("dedup", articles, "-o", tmp_path / "out", "--state", tmp_path / "state")
    with RocksStore(tmp_path / "state") as store:
        key, _ = next(store.items(Family.ENTRIES))
        store.write([Put(Family.ENTRIES, key, None)])
    result = invoke("state", "verify", "--set", f"state.directory={tmp_path / 'state'}")
    assert result.exit_code == 1
    assert "dedup --state" in one_line(result.stderr)
    assert "restore" not in result.stderr


def test_no_more_faults_are_listed_than_anyone_reads(
    invoke: Invoke, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them are counted, and how many are not listed is told."""
    monkeypatch.setattr("stream_dedup.cli.state._MOST_FAULTS", 1)
    invoke("dedup", articles, "-o", tmp_path / "out", "--state", tmp_path / "state")
    with RocksStore(tmp_path / "state") as store:
        store.write([Put(Family.ENTRIES, key, None) for key, _ in [*store.items(Family.ENTRIES)]])
    told = invoke("state", "verify", "--set", f"state.directory={tmp_path / 'state'}").stderr.splitlines()
    assert len([line for line in told if line.startswith("fault: ")]) == 1
    counted = re.match(r"error: (\d+) faults, (\d+) of them not shown: recreate the state", told[-1])
    assert counted is not None
    assert int(counted[1]) - int(counted[2]) == 1


@pytest.mark.parametrize("command", ["restore", "rebuild"])
def test_no_state_of_a_service_is_made_in_one_of_files(
    command: str, invoke: Invoke, articles: Path, tmp_path: Path
) -> None:
    """No service could start from it, so it is refused as `run` would, before a broker is contacted."""
    state = tmp_path / "state"
    invoke("dedup", articles, "-o", tmp_path / "out", "--state", state)
    before = sorted(state.iterdir())
    nowhere = ("--set", f"state.directory={state}", "--set", "kafka.bootstrap.servers=127.0.0.1:9")
    result = invoke("state", command, *nowhere)
    assert result.exit_code == 1
    assert f"{state} is a state that `stream-dedup dedup --state` made, without a changelog" in one_line(result.stderr)
    assert sorted(state.iterdir()) == before


def test_dedup_makes_no_state_for_files_that_it_cannot_read(invoke: Invoke, tmp_path: Path) -> None:
    """A misspelt file name is reported before anything is created."""
    result = invoke("dedup", tmp_path / "none.jsonl", "-o", tmp_path / "out", "--state", tmp_path / "state")
    assert (result.exit_code, "none.jsonl" in result.stderr) == (2, True)
    assert not (tmp_path / "state").exists()


def test_dedup_counts_what_it_wrote_before_it_failed(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """If a compressed file is truncated, the summary counts what is in the results, beside the error."""
    packed = gzip.compress(b"".join(articles.read_bytes() for _ in range(50)), 0)
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    result = invoke("dedup", tmp_path / "cut.jsonl.gz", "-o", tmp_path / "out")
    assert (result.exit_code, "cut.jsonl.gz" in result.stderr, "records" in result.stdout) == (2, True, True)


def test_article_from_a_file_has_no_time_of_arrival(invoke: Invoke, tmp_path: Path) -> None:
    """Its publication time must not pass for one, neither of the article nor of the cluster's member."""
    file, state = tmp_path / "dated.jsonl", tmp_path / "state"
    file.write_text(json.dumps({"id": "a", "body": BODY, "published_at": "2026-10-18T12:00:00Z"}), encoding="utf-8")
    assert invoke("dedup", file, "-o", tmp_path / "out", "--state", state).exit_code == 0
    asked = [invoke(name, "a", "--json", "--set", f"state.directory={state}").stdout for name in ("article", "cluster")]
    article, (member,) = json.loads(asked[0]), json.loads(asked[1])["members"]
    for told in (article, member):
        assert (told["published_at"], told["received_at"]) == ("2026-10-18T12:00:00.000Z", None)


def test_state_that_cannot_be_closed_is_no_unfinished_run(
    invoke: Invoke, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is judged, and the results are complete: the same command would find them in its way."""

    def full(_: RocksStore) -> None:
        raise StoreFullError("cannot close the state directory: its disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(RocksStore, "close", full)
        told = invoke("dedup", articles, "-o", tmp_path / "out", "--state", tmp_path / "state")
    assert told.exit_code == 1
    assert "finished: all records are judged, only closing the state has failed" in one_line(told.stderr)
    assert "not finished" not in told.stderr


def test_damaged_file_can_be_repaired_and_the_run_resumed(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """The hint says so, and the same command judges just the rest; without a state there is nothing to resume."""
    damaged = tmp_path / "more.csv.gz"
    damaged.write_bytes(_CUT_OFF)
    command = ("dedup", articles, damaged, "-o", tmp_path / "out", "--state", tmp_path / "state")
    told = invoke(*command)
    assert (told.exit_code, "3 records" in told.stdout, "more.csv.gz" in told.stderr) == (2, True, True)
    assert "not finished: once all files can be read, run the same command again to resume" in one_line(told.stderr)
    assert "not finished" not in invoke("dedup", articles, damaged, "-o", tmp_path / "other").stderr
    damaged.write_bytes(gzip.compress("id,body\nd,今天下雨。\n".encode()))
    resumed = invoke(*command)
    assert (resumed.exit_code, "1 record" in resumed.stdout) == (0, True)
    assert len((tmp_path / "out" / "unique.jsonl").read_bytes().splitlines()) == 2


@pytest.mark.parametrize("name", ["more.csv.gz", "more.jsonl.zst"])
def test_file_that_cannot_be_read_ends_a_run_before_it_begins(
    name: str, invoke: Invoke, articles: Path, tmp_path: Path
) -> None:
    """Not after the hours that the files before it take; and with no results in the way, the same command runs."""
    (tmp_path / name).write_bytes(b"neither")
    told = invoke("dedup", articles, tmp_path / name, "-o", tmp_path / "out")
    assert (told.exit_code, told.stdout, name in told.stderr) == (2, "", True)
    assert not (tmp_path / "out").exists()


def test_unfinished_run_is_shown_with_how_far_it_has_got(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """In each of its files: also in one that could not be read."""
    damaged, state = tmp_path / "more.csv.gz", tmp_path / "state"
    damaged.write_bytes(_CUT_OFF)
    assert invoke("dedup", articles, damaged, "-o", tmp_path / "out", "--state", state).exit_code == 2
    status = json.loads(invoke("status", "--json", "--set", f"state.directory={state}").stdout)
    run = {"results": str(tmp_path / "out"), "finished": False}
    assert status["files"] == [{**run, "file": str(articles), "lines": 3}, {**run, "file": str(damaged), "lines": 0}]


@pytest.mark.parametrize("name", [r"a\[/b].jsonl", "[bold]a.jsonl", ":smile:.jsonl", "a[/].txt"])
def test_names_are_shown_as_they_are(name: str, invoke: Invoke, tmp_path: Path) -> None:
    """Nothing in a name is interpreted by rich as markup or emoji."""
    result = invoke("dedup", name, "-o", tmp_path / "out")
    assert (result.exit_code, result.stderr.startswith(f"error: {name}: ")) == (2, True)


def test_commands_to_the_terminal_in_names_are_shown(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """A file from elsewhere may have any name, and one in an error could clear the screen, or hide the error."""
    file = articles.rename(tmp_path / "\x1b[2J.jsonl")
    told = invoke("dedup", file, "-o", tmp_path / "\x1b[3J")
    refused = invoke("dedup", file.with_name("\x1b[2J.txt"), "-o", tmp_path / "other")
    assert "\x1b" not in told.output + refused.output
    assert f"results in {tmp_path}/␛[3J" in told.stdout
    assert "␛[2J.jsonl" in told.stderr
    assert "␛[2J.txt: there is no such file" in refused.stderr


def test_run_that_goes_on_with_nothing_but_dead_letters_ends_well(invoke: Invoke, tmp_path: Path) -> None:
    """A resumed run counts what was judged before; a run of nothing but dead letters fails."""
    file, out, state = tmp_path / "in.jsonl", tmp_path / "out", tmp_path / "state"
    file.write_text('{"id": "a", "body": "今天下雨。"}\n{"id": "b"}\n', encoding="utf-8")
    command = ["dedup", file, "-o", out, "--state", state, "-s", "commit.articles=1"]
    whole = RunPositions.after

    def interrupted(
        place: RunPositions, lengths: Mapping[str, int], file: int | None = None, record: int = 0
    ) -> Positions:
        if record > 1:
            raise KeyboardInterrupt
        return whole(place, lengths, file, record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunPositions, "after", interrupted)
        assert invoke(*command).exit_code == 128 + signal.SIGINT
    assert invoke(*command).exit_code == 0
    assert [len((out / name).read_bytes().splitlines()) for name in ("unique.jsonl", "dead.jsonl")] == [1, 1]
    file.write_text('{"id": "b"}\n', encoding="utf-8")
    assert invoke("dedup", file, "-o", tmp_path / "other").exit_code == 2


_NOT_UTF8 = (
    "; records must be in UTF-8: convert GBK with iconv -f gb18030 -t utf-8, UTF-16 with iconv -f utf-16 -t utf-8"
)

_NO_LINES = "; one object per line is required: convert an array with jq -c '.[]'"


@pytest.mark.parametrize(
    ("name", "content", "encoding", "advice"),
    [
        ("in.jsonl", '{"text": "今天下雨。"}', "utf-8", "; for other field names, set input.fields"),
        ("in.jsonl", '{"body": {"text": "今天下雨。"}}', "utf-8", "; for other field names, set input.fields"),
        ("in.jsonl", '{"body": "今天下雨。"}', "gb18030", _NOT_UTF8),
        ("in.csv", "id,body\n1,今天下雨。", "gb18030", _NOT_UTF8),
        ("in.jsonl", '{"body": "今天下雨。"', "utf-8", _NO_LINES),
        ("in.jsonl", '[{"body": "今天下雨。"}]', "utf-8", _NO_LINES),
        ("in.jsonl", '{"body": ""}', "utf-8", ""),
    ],
)
def test_run_of_nothing_but_dead_letters_tells_what_its_reasons_ask_for(
    name: str, content: str, encoding: str, advice: str, invoke: Invoke, tmp_path: Path
) -> None:
    """Other field names are no remedy for another encoding."""
    file = tmp_path / name
    file.write_text(f"{content}\n", encoding=encoding)
    result = invoke("dedup", file, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert one_line(result.stderr).endswith(f"error: no record could be judged: see dead.jsonl{advice}")


def test_heading_in_gbk_is_refused_with_the_way_out(invoke: Invoke, tmp_path: Path) -> None:
    """A Chinese heading as older Windows programs write it is told with the command that converts the file."""
    file = tmp_path / "in.csv"
    file.write_text("编号,正文\n1,今天下雨。\n", encoding="gb18030")
    result = invoke("dedup", file, "-o", tmp_path / "out")
    told = "its heading is not valid UTF-8: convert GBK with iconv -f gb18030 -t utf-8, UTF-16 with iconv"
    assert (result.exit_code, told in one_line(result.stderr)) == (2, True)


def test_state_that_is_a_file_is_refused(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """It is wrong usage, told by the option's name before anything is read."""
    result = invoke("dedup", articles, "-o", tmp_path / "out", "--state", articles)
    assert result.exit_code == 2
    assert "Invalid value for '--state'" in one_line(result.stderr)
    assert "is a file, not a directory" in one_line(result.stderr)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--out", "--state"])
def test_empty_path_is_refused(option: str, invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """An unset shell variable gives an empty path, which would mean the current directory."""
    command = {"--out": tmp_path / "out", "--state": tmp_path / "state", option: ""}
    result = invoke("dedup", articles, *(part for pair in command.items() for part in pair))
    assert result.exit_code == 2
    assert "the path is empty; for the current directory, write `.`" in one_line(result.stderr)
