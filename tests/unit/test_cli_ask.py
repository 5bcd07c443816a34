"""Queries to a state on the command line: what is printed, in which form, and with which exit code."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from numba.core.event import trigger_event
from typer.testing import CliRunner, Result

from stream_dedup import Article, Deduplicator
from stream_dedup.article import Origin
from stream_dedup.cli.main import app
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.settings import EngineSettings
from stream_dedup.text.normal import Normaliser
from stream_dedup.text.texts import Texts

pytestmark = pytest.mark.usefixtures("wide_terminal")

_STORY = (
    "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开，附近的居民和游客都来捧场。镇里今年把摊位费由按月收改成按天收，"
    "雨天不来不收钱。卖藕片的郑巧云说，算下来比去年同期少交了四千多元，她用这笔钱换了一台静音排烟机。"
)
_OTHER = (
    "气象台预计，明天白天晴间多云，最高气温二十六度，夜里转阴，北风三到四级，出门请带一件外套，傍晚收好晾晒的衣物。"
)
_ROOT = Path(__file__).parents[2]
_MINUTE = 60_000
_BEGIN = int(datetime(2026, 10, 15, 8, tzinfo=UTC).timestamp()) * 1000
_FORMATS = ("json", "avro", "protobuf", "json-schema")
_FIELDS = ("id", "title", "body", "url", "source", "published_at", "deleted", "scope")
Invoke = Callable[..., Result]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state of a story with two copies, and another story, as left by `stream-dedup dedup --state`."""
    directory = tmp_path_factory.mktemp("state") / "0badcafe"  # not the digest of any settings
    bodies = {"一": _STORY, "two": f"【转载】{_STORY}", "三": _STORY[:70], "else": _OTHER}
    with Deduplicator(directory) as engine:
        for minute, (name, body) in enumerate(bodies.items()):
            moment = _BEGIN + minute * _MINUTE
            origin = Origin("news.jsonl", 0, minute + 1)
            engine.add(Article(name, body, "夜市", "", f"{name}报", moment, origin))
    return directory


@pytest.fixture
def invoke(
    state: Path, cached_fingerprinter: Callable[[EngineSettings], Fingerprinter], monkeypatch: pytest.MonkeyPatch
) -> Invoke:
    """Return a function that queries that state in this process; no service runs beside it."""
    monkeypatch.setattr("stream_dedup.engine.explain.Fingerprinter", cached_fingerprinter)
    own = ("-s", f"state.directory={state}", "-s", "http.port=1", "-s", "kafka.bootstrap.servers=127.0.0.1:1")
    return lambda *arguments, **others: CliRunner().invoke(app, [*map(str, arguments), *own], input=others.get("input"))


@pytest.mark.slow
def test_status_tells_how_far_the_state_has_come(invoke: Invoke) -> None:
    """Articles, entries and stream time are those that were added; at rest the rate is 0."""
    result = invoke("status", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["articles_judged"], told["rate"], told["running"]) == (4, 0.0, False)
    assert told["stream_time"] == "2026-10-15T08:03:00Z"
    # As after a run over standard input, no file was left unfinished.
    assert (told["of_files"], told["files"]) == (True, [])
    shown = invoke("status").stdout
    assert "none, the state was made from files" in shown
    assert "2026-10-15 08:03:00" in shown
    assert re.search(rf"^steps +{told['steps']} *$", shown, re.MULTILINE)


def test_article_is_told_with_its_link(invoke: Invoke) -> None:
    """A copy's relation, its original and the position of its message are given, in JSON and in text."""
    told = json.loads(invoke("article", "三", "--json").stdout)
    assert (told["decision"], told["relation"], told["canonical"]) == ("duplicate", "contained", "一")
    assert told["message"] == {"topic": "news.jsonl", "partition": 0, "offset": 3}
    # The stream was at the third article, whenever the test runs.
    assert told["stream_time"] == told["link"]["stream_time"] == "2026-10-15T08:02:00.000Z"
    shown = invoke("article", "三").stdout
    assert "stream's time  2026-10-15 08:02:00" in shown
    assert "duplicate: contained" in shown
    assert "news.jsonl, partition 0, offset 3" in shown


def test_cluster_has_its_members_in_the_order_of_publication(invoke: Invoke) -> None:
    """A query for any of its articles lists the whole cluster in order of publication, each with its link."""
    told = json.loads(invoke("cluster", "two", "--json").stdout)
    assert [member["id"] for member in told["members"]] == ["一", "two", "三"]
    assert [member["link"] and member["link"]["relation"] for member in told["members"]] == [None, "near", "contained"]
    assert sum(moment["articles"] for moment in told["timeline"]) == 3
    assert {one["source"]: one["articles"] for one in told["sources"]} == {"一报": 1, "two报": 1, "三报": 1}
    assert (told["distinct_sources"], told["other_sources_articles"]) == (3, 0)
    # From files, articles are seen when they were published.
    assert (told["first_seen"], told["last_seen"]) == ("2026-10-15T08:00:00.000Z", "2026-10-15T08:02:00.000Z")
    assert (told["copies"], told["stretch_seconds"]) == (2, 60)


def test_cluster_is_shown_in_parts(invoke: Invoke) -> None:
    """--limit and --offset select members, and the output says what is left out."""
    shown = invoke("cluster", "一", "--limit", "1", "--offset", "1").stdout
    assert "2026-10-15 08:01:00" in shown
    assert "2026-10-15 08:02:00   三" not in shown
    assert "1 of 3 members" in shown


@pytest.mark.parametrize("source", ["file", "standard input"])
@pytest.mark.slow
def test_similar_text_is_found_and_not_remembered(source: str, invoke: Invoke, tmp_path: Path) -> None:
    """For a text from a file or a pipe, similar articles are listed, the most similar first; nothing is added."""
    text = f"本报讯：{_STORY}"
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    where = tmp_path / "text.txt" if source == "file" else "-"
    told = json.loads(invoke("similar", where, "--json", input=text).stdout)
    assert told["decision"] == "duplicate"
    assert told["articles"][0]["canonical"] == "一"
    assert told["unseen_entries"] == 0
    assert json.loads(invoke("status", "--json").stdout)["articles_judged"] == 4


def test_text_like_nothing_would_be_unique(invoke: Invoke) -> None:
    """A text of its own is reported to resemble no known article."""
    shown = invoke(
        "similar", "-", input="全新的一段文字，讲的是海边的灯塔、守塔的老人和他养的三只猫，与别的故事毫无相似之处。"
    ).stdout
    assert "would be: unique" in shown
    assert "resembles no known article" in shown


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        (("cluster", "一", "--limit"), 1_000),
        (("cluster", "一", "--offset"), 10_000),
        (("similar", "-", "--limit"), 100),
    ],
)
def test_no_more_may_be_asked_for_than_by_http(arguments: tuple[str, ...], most: int, invoke: Invoke) -> None:
    """The limits in the API's description of its paths also apply here."""
    assert invoke(*arguments, str(most), input=_STORY).exit_code == 0
    refused = invoke(*arguments, str(most + 1), input=_STORY)
    assert (refused.exit_code, f"equal to {most} " in " ".join(refused.stderr.split())) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("article", "nobody"), 1, "no article 'nobody' is known"),
        (("cluster", "nobody", "--scope", "x"), 1, "in the scope 'x'"),
        (("article", "nobody", "-s", "input.scope_header=tenant"), 1, "is known without a scope"),
        (("similar", "-"), 2, "- is blank"),
        (("similar", "/no/such/file"), 2, "error: /no/such/file: there is no such file"),
        (("similar", "/"), 2, "/ is a directory: name a file in it"),
        (("explain", "/no/such/file", "b.txt"), 2, "error: /no/such/file: there is no such file"),
        (("explain", "--id", "一"), 1, "is unique, not a copy: name an article to compare it with"),
        (("explain", "--id", "three's"), 1, 'no article "three\'s" is known'),
        (("explain", "--id", "三"), 1, "record 3 of the file news.jsonl"),
        (("explain", "a.txt"), 2, "give two files, A.txt and B.txt, or --id ID"),
        (("explain", "a.txt", "b.txt", "--other", "c"), 2, "they require --id"),
        (("explain", "a.txt", "--id", "一"), 2, "do not give files"),
        (("tail", "--relation", "nearly"), 2, "--relation nearly: choose from exact, near"),
        (("tail", "--decision", "maybe"), 2, "--decision maybe: choose from unique, duplicate"),
        (("tail", "--shadow", "--relation", "withdrawn"), 2, "--relation withdrawn: choose from exact, near"),
        (("tail", "--shadow", "--decision", "dead"), 2, "--decision dead: choose from unique, duplicate"),
        (("tail", "--last", "3", "--from-beginning"), 2, "cannot be used together"),
        (("tail", "--last", "3"), 1, "cannot read the topic articles.unique: "),
        (("tail", "--last", "3"), 1, ": see kafka.bootstrap.servers"),
        (
            ("tail", "--last", "3"),
            1,
            "`stream-dedup dedup --state` made: its decisions are in the files of its results",
        ),
    ],
)
@pytest.mark.slow
def test_error_is_one_line_with_its_exit_code(
    arguments: tuple[str, ...], code: int, message: str, invoke: Invoke
) -> None:
    """Failures are reported on standard error: exit code 2 for wrong usage, 1 for any other reason."""
    result = invoke(*arguments, input=" \n")
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in " ".join(result.stderr.split())


_NO_UTF8 = "\udcff"  # as Python reads the byte ff in an argument


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("article", ""), "it has 0 characters: 1 to 8192 are allowed"),
        (("cluster", "x" * 8_193), "it has 8193 characters"),
        (("article", _NO_UTF8), "it is not valid UTF-8"),
        (("article", "一", "--scope", "x" * 257), "it has 257 bytes, at most 256 are allowed"),
        (("article", "a\x1fb"), "U+001F"),
        (("explain", "--id", "三", "--other", ""), "it has 0 characters"),
        (("similar", "-", "--source", _NO_UTF8), "it is not valid UTF-8"),
        (("similar", "-", "--scope", "a\x1fb"), "U+001F"),
        (("tail", "--id", ""), "it has 0 characters"),
    ],
)
def test_names_that_none_can_have_are_refused(arguments: tuple[str, ...], message: str, invoke: Invoke) -> None:
    """As by HTTP, invalid ids are neither unknown articles nor internal errors."""
    result = invoke(*arguments, input=_STORY)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-s", "input.max_body_chars=100"), "- has more than 100 characters: input.max_body_chars is the limit"),
        (("--title", "长" * 2_001), "the title has 2001 characters: input.max_title_chars = 2000 is the limit"),
    ],
)
def test_text_that_would_be_no_article_is_like_none(arguments: tuple[str, ...], message: str, invoke: Invoke) -> None:
    """The stream would refuse such a text, so it must not be called unique."""
    result = invoke("similar", "-", *arguments, input=_STORY)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


def test_directory_without_a_state_is_named(tmp_path: Path) -> None:
    """Without a state, the message says where it was looked for and how to create one."""
    result = CliRunner().invoke(app, ["article", "x", "-s", f"state.directory={tmp_path}"])
    assert result.exit_code == 1
    assert str(tmp_path) in result.stderr
    assert "start the service, check state.directory" in " ".join(result.stderr.split())


def test_state_of_other_settings_is_named(state: Path) -> None:
    """With settings that are not the service's, the message names the states that exist."""
    result = CliRunner().invoke(app, ["article", "x", "-s", f"state.directory={state.parent}"])
    assert result.exit_code == 1
    assert f"there are states of other settings ({state})" in result.stderr


def test_differences_of_two_files_are_shown(invoke: Invoke, tmp_path: Path) -> None:
    """The output of `explain A B` ends with both texts merged and a swapped word marked."""
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text(_STORY, encoding="utf-8")
    second.write_text(_STORY.replace("静音排烟机", "二手冰柜"), encoding="utf-8")
    result = invoke("explain", first, second)
    assert result.exit_code == 0, result.output
    assert "[-静音排烟机-]{+二手冰柜+}" in result.stdout


@pytest.mark.parametrize("command", [("explain", "a.txt", "a.txt"), ("similar", "a.txt")], ids=lambda words: words[0])
def test_first_command_of_an_installation_says_why_it_takes_long(
    command: tuple[str, ...], invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a loop is compiled, it says so on standard error; the answer is the same."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(_STORY, encoding="utf-8")
    usual = invoke(*command)
    assert "compiling" not in usual.stderr
    normalised = Normaliser.all

    def compiled_and_normalised(*told: Any) -> Texts:  # noqa: ANN401  # passed on
        with trigger_event("numba:compile"):
            return normalised(*told)

    monkeypatch.setattr(Normaliser, "all", compiled_and_normalised)
    first = invoke(*command)
    assert (first.exit_code, first.stdout) == (0, usual.stdout)
    assert first.stderr.count("compiling, once per installation") == 1


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("tail --relation re", {"revision", "redelivery"}),
        ("tail --decision ", {"unique", "duplicate", "announcement", "dead"}),
        ("status --set api.ref", {"api.refresh_ms="}),
        ("config --set input.fields.", {f"input.fields.{name}=" for name in _FIELDS}),
        ("status --set output.format=", {f"output.format={name}" for name in _FORMATS}),
        ("status --set output.format=json", {"output.format=json", "output.format=json-schema"}),
        ("status --set output.form", {f"output.format={name}" for name in _FORMATS}),
        ("status --set api.enabled=", {"api.enabled=true", "api.enabled=false"}),
        ("status --set api.port=", set()),
        ("status --set shadow.verify.near", {"shadow.verify.near_jaccard="}),
        ("status --set shadow.verify.same_url=", {"shadow.verify.same_url=true", "shadow.verify.same_url=false"}),
        (
            "status --set verify.duplicates=near,con",
            {f"verify.duplicates=near,{name}" for name in ("contained", "contains")},
        ),
        ("clu", {"cluster"}),
    ],
)
def test_shell_completes_what_is_typed(typed: str, completed: set[str]) -> None:
    """Commands, relations, decisions, names of settings and their values are completed."""
    words = ["stream-dedup", *typed.split(" ")]
    asked = {
        "_STREAM_DEDUP_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    asked_by_bash = CliRunner().invoke(app, env=asked, prog_name="stream-dedup")
    assert set(asked_by_bash.stdout.split()) == completed


_BASH = """
eval "$(_STREAM_DEDUP_COMPLETE=source_bash stream-dedup)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_stream_dedup_completion stream-dedup
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (("status", "--set", "output.format", "="), set(_FORMATS)),
        (("status", "--set", "api.port", "=", "1", "--set", "output.format", "=", "js"), {"json", "json-schema"}),
        (("status", "--set", "=", "api.enabled", "=", "t"), {"true"}),
        (("tail", "--relation", "=", "re"), {"revision", "redelivery"}),
        (("status", "--set", "output.form"), {f"output.format={name}" for name in _FORMATS}),
    ],
)
@pytest.mark.slow
def test_bash_itself_completes_values(words: tuple[str, ...], completed: set[str], tmp_path: Path) -> None:
    """Bash splits name=value into three words and replaces only the last."""
    command = tmp_path / "stream-dedup"
    code = "from stream_dedup.cli.main import app; app(prog_name='stream-dedup')"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(_ROOT)}
    asked = ["bash", "-c", _BASH, "bash", "stream-dedup", *words]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == completed
