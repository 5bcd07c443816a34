"""The `evaluate` commands: what goes to which stream, exit codes, and messages that a user can act on."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from numba.core.event import trigger_event
from typer.testing import CliRunner, Result

from stream_dedup.cli.main import app
from stream_dedup.evaluate.algorithm import Features
from stream_dedup.evaluate.comparison import Comparison
from stream_dedup.text.normal import Normaliser

pytestmark = pytest.mark.usefixtures("wide_terminal")

_ROOT = Path(__file__).parents[2]
Invoke = Callable[..., Result]


@pytest.fixture
def invoke() -> Invoke:
    """Return a function that runs an `evaluate` command in this process."""
    return lambda *arguments: CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


@pytest.fixture
def articles(tmp_path: Path, bodies: list[str]) -> Path:
    """Return a file of thirty articles without labels."""
    rows = [{"id": str(n), "body": body} for n, body in enumerate(sorted(bodies, key=len)[-30:])]
    path = tmp_path / "news.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _plain(result: Result) -> str:
    return " ".join(result.output.split())


@pytest.mark.slow
def test_run_makes_reposts_and_writes_a_report(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """Tables go to the terminal; CSV, JSON, a page and Markdown to files; the exit code is 0."""
    out, markdown = tmp_path / "out", tmp_path / "markdown"
    names = ("-a", "chars/5-grams/jaccard", "-a", "rjieba/none/cosine")
    result = invoke("run", articles, "-o", out, *names, "--replaced", 0, "-j", 1, "--markdown", markdown)
    assert result.exit_code == 0, result.output
    assert "rjieba/none/cosine" in result.stdout
    assert "of them reposts made here" in result.stderr
    names_written = {path.name for path in out.iterdir()}
    assert {"report.html", "evaluation.json", "algorithms.csv", "kinds.csv", "sweep.csv"} <= names_written
    assert (markdown / "report.md").is_file()
    evaluation = json.loads((out / "evaluation.json").read_bytes())
    assert {one["named"]["name"] for one in evaluation["measured"]} == {"chars/5-grams/jaccard", "rjieba/none/cosine"}


def test_first_run_of_an_installation_says_why_it_takes_long(
    invoke: Invoke, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often loops are compiled, while articles are read or in a run, it says so once."""
    normalised = Normaliser.__call__

    def compiled_and_normalised(*told: Any) -> str:  # noqa: ANN401  # passed on
        with trigger_event("numba:compile"):
            return normalised(*told)

    run = ("run", articles, "-a", "jieba-precise/none/jaccard", "--replaced", 0, "-j", 1, "-o")
    invoke(*run, tmp_path / "before")  # compiles what nothing has needed before
    assert "compiling" not in invoke(*run, tmp_path / "usual").stderr
    monkeypatch.setattr(Normaliser, "__call__", compiled_and_normalised)
    first = invoke(*run, tmp_path / "first")
    assert first.exit_code == 0, first.output
    assert first.stderr.count("compiling, once per installation") == 1


def test_what_was_made_is_run_again_as_it_is(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """`make` writes the set that `run` would make: both give the same scores and share their results."""
    labelled = tmp_path / "labelled.jsonl"
    options = ("--seed", 3, "-e", "truncate:0.5,0.7", "-e", "retitle")
    assert invoke("make", articles, "-o", labelled, *options).exit_code == 0
    lines = [json.loads(line) for line in labelled.read_text().splitlines()]
    assert {line["kind"] for line in lines if "kind" in line} == {"truncate", "retitle"}
    run = ("-a", "chars/5-grams/jaccard", "--replaced", 0, "-j", 1, "-o")
    for file, out in ((labelled, "one"), (articles, "two")):
        assert invoke("run", file, *run, tmp_path / out, *options).exit_code == 0
    one, two = (json.loads((tmp_path / out / "evaluation.json").read_bytes()) for out in ("one", "two"))
    assert [m["given"] for m in one["measured"]] == [m["given"] for m in two["measured"]]


def test_options_of_a_run_are_kept_to(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """The threshold and the number of articles are as asked for, and the articles and reposts are counted."""
    out = tmp_path / "out"
    options = ("--threshold", 0.9, "--limit", 10, "--findings", "--replaced", 0, "-j", 1)
    result = invoke("run", articles, "-o", out, "-a", "jieba-precise/none/jaccard", *options)
    assert result.exit_code == 0, result.output
    evaluation = json.loads((out / "evaluation.json").read_bytes())
    assert {one["given"]["score"]["threshold"] for one in evaluation["measured"]} == {0.9}
    count, made = evaluation["articles"]["articles"], sum(one["copies"] for one in evaluation["articles"]["kinds"])
    assert (count - made, f"news: {count} articles, {made} of them reposts made here" in result.stderr) == (10, True)
    assert "Findings of the studies" in result.stdout


def test_records_that_are_no_articles_are_counted(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """And of the others, no more are used than asked for."""
    articles.write_text(f"{{}}\n{articles.read_text()}")
    result = invoke("make", articles, "-o", tmp_path / "made.jsonl", "--limit", 5)
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in (tmp_path / "made.jsonl").read_text().splitlines()]
    assert sum("original" not in line for line in lines) == 5
    assert "1 record skipped: not articles, or repeated ids" in _plain(result)


def test_options_of_reposts_are_told_where_none_are_made(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """On labelled articles a note names those that the user has set; otherwise there is none."""
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"a": "1", "b": "2"}\n')
    run = ("-a", "chars/5-grams/jaccard", "--replaced", 0, "-j", 1, "-o", tmp_path / "out")
    options = ("--limit", 20, "--seed", 0, "-e", "retitle")
    labelled = invoke("run", articles, *run, "--pairs", pairs, *options)
    assert labelled.exit_code == 0
    assert "--seed, --limit, --edit ignored: the articles are labelled, so no reposts are made" in labelled.stderr
    assert "ignored" not in invoke("run", articles, *run, "--pairs", pairs).stderr
    assert "ignored" not in invoke("run", articles, *run[:-1], tmp_path / "made", *options).stderr


@pytest.mark.slow
def test_engine_runs_with_the_settings_of_the_user(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """Of a file and of flags; each report names them, and a note those that no configuration takes."""
    (tmp_path / "settings.toml").write_text("[verify]\nmin_grams = 12\n[window]\ndays = 7\n")
    settings = ("--config", tmp_path / "settings.toml", "-s", "verify.near_jaccard=0.95")
    out = tmp_path / "out"
    run = ("run", articles, "-o", out, "--replaced", 0, *settings, "--markdown", out)
    result = invoke(*run, "-a", "engine/default", "-a", "engine/threshold-0.4", "-j", 2)
    assert result.exit_code == 0, result.output
    evaluation = json.loads((out / "evaluation.json").read_bytes())
    thresholds = {one["named"]["name"]: one["given"]["score"]["threshold"] for one in evaluation["measured"]}
    assert thresholds == {"engine/default": 0.95, "engine/threshold-0.4": 0.4}
    told = ["verify.near_jaccard=0.95", "verify.min_grams=12"]
    assert evaluation["engine_settings"] == told
    assert "window.days ignored: no configuration of the engine that is run takes the value" in _plain(result)
    for shown in (result.stdout, (out / "report.html").read_text(), (out / "report.md").read_text()):
        assert all(change in shown for change in told)
        assert "not as shipped" in shown
    assert "not as shipped" in invoke("report", out).stdout


def test_settings_of_the_engine_are_told_where_they_have_no_effect(
    invoke: Invoke, articles: Path, tmp_path: Path
) -> None:
    """A note names those that have been changed if no configuration of the engine is run; otherwise there is none."""
    run = ("run", articles, "-a", "chars/5-grams/jaccard", "--replaced", 0, "-j", 1, "-o", tmp_path / "out")
    changed = invoke(*run, "-s", "verify.near_jaccard=0.95", "-s", "window.days=7")
    assert changed.exit_code == 0
    assert "verify.near_jaccard, window.days ignored: " in _plain(changed)
    assert "shipped" not in changed.stdout
    assert "ignored" not in invoke(*run, "-s", "input.fields.title=title").stderr


def test_command_is_kept_without_secrets(
    invoke: Invoke, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of the results has the value of a secret setting, however it is written; other settings are shown."""
    typed = {
        ("-s", "kafka.sasl.username=me"): "-s kafka.sasl.username=me",
        ("-s", "kafka.sasl.password=hunter"): "-s 'kafka.sasl.password=[redacted]'",
        ("-skafka.sasl.password=hunter2",): "'-skafka.sasl.password=[redacted]'",
        ("--set", " kafka.ssl.key.pem =a\nhunter2=="): "--set ' kafka.ssl.key.pem =[redacted]'",
        ("--set=registry.proxy=http://me:hunter2@h",): "'--set=registry.proxy=[redacted]'",
        ("--set", "api.token=hunter2hunter2hunter2"): "--set 'api.token=[redacted]'",
    }
    (tmp_path / "pairs.jsonl").write_text('{"a": "1", "b": "2"}\n')
    out = tmp_path / "out"
    names = ("--pairs", f"{tmp_path}/pairs.jsonl", "-a", "chars/5-grams/jaccard", "--replaced", "0", "-j", "1")
    arguments = ("run", str(articles), "-o", str(out), *names, "--markdown", str(out / "markdown"), *chain(*typed))
    monkeypatch.setattr(sys, "argv", ["stream-dedup", "evaluate", *arguments])
    assert invoke(*arguments).exit_code == 0
    assert json.loads((out / "evaluation.json").read_bytes())["command"].endswith(
        f"markdown {' '.join(typed.values())}"
    )
    assert not [path for path in out.rglob("*") if path.is_file() and b"hunter" in path.read_bytes()]


def test_failed_algorithm_is_told_by_the_exit_code(
    invoke: Invoke, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one algorithm fails, the exit code is 1 and its message is shown, but there is still a report."""
    whole = Comparison.similarities

    def broken(self: Comparison, features: Features, rows: slice) -> object:
        if self.name == "chars/2-grams/jaccard":
            raise ArithmeticError("it broke")
        return whole(self, features, rows)

    monkeypatch.setattr(Comparison, "similarities", broken)
    names = ("-a", "chars/2-grams/jaccard", "-a", "chars/5-grams/jaccard")
    result = invoke("run", articles, "-o", tmp_path / "out", *names, "--replaced", 0, "-j", 1)
    assert result.exit_code == 1
    assert "chars/2-grams/jaccard: ArithmeticError: it broke" in _plain(result)
    assert (tmp_path / "out" / "report.html").is_file()


def test_missing_segmenter_is_no_failure(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """What is not installed is told at once and listed, with how to install it; the exit code is 0."""
    result = invoke("run", articles, "-o", tmp_path / "out", "-a", "hanlp-crf/none/jaccard", "--replaced", 0, "-j", 1)
    assert result.exit_code == 0
    assert "hanlp-crf not available: " in result.stderr
    assert "not available" in result.stdout
    assert all("HANLP_CRF_MODEL" in told for told in (result.stdout, result.stderr))


def test_findings_are_shown_of_a_kept_run(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """`report` shows a finished run without recomputing it."""
    invoke("run", articles, "-o", tmp_path / "out", "-a", "chars/5-grams/jaccard", "--replaced", 0, "-j", 1)
    result = invoke("report", tmp_path / "out", "--findings")
    assert result.exit_code == 0
    assert "not checked" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-a", "chars/5-gram/jacard"), "matches no algorithm; closest: chars/5-grams/jaccard"),
        (("-a", "nosuch/*"), "'nosuch/*' matches no algorithm"),
        (("-m", "jacard"), "'jacard' matches no similarity; closest: jaccard"),
        (("-w", "chars", "-f", "tfidf"), "no algorithm matches all of [['chars'], ['tfidf']]"),
        (("--jobs", -1), "'--jobs'"),
        (("-e", "truncat"), "'truncat' is not an edit operator; choose from verbatim"),
        (("-e", "truncate:7"), "truncate cannot have the strength 7: share of the characters kept, above 0, up to 1"),
        (("-e", "places:0.5"), "places cannot have the strength 0.5: names changed, a whole number above 0, up to 10"),
        (("-e", "drop:"), "drop cannot have the strength ''"),
        (("--copies", 0), "--copies 0.0: it must be a number, at least 1 and at most 100"),
        (("--pairs", "none.jsonl"), "none.jsonl: there is no such file"),
        (("--pairs", _ROOT / "tests"), "is a directory: name a file in it"),
        (("--pairs", "-"), "- cannot be read more than once: name a file"),
        (("--markdown", __file__), "is a file, not a directory"),
        (("--markdown", ""), "the path is empty"),
        (("-o", ""), "the path is empty"),
        (("-o", __file__), "is a file, not a directory"),
        (("-o", "x" * 300), "'--out' / '-o': [Errno 36] File name too long"),
    ],
)
def test_mistakes_are_told_in_a_line(
    invoke: Invoke, articles: Path, tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    """The wrong value, what is allowed, the exit code of wrong usage, and nothing written."""
    result = invoke("run", articles, "-o", tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert message in _plain(result)
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_wrong_label_is_told_with_its_line(invoke: Invoke, tmp_path: Path) -> None:
    """The message names the file, the line and the fault."""
    path = tmp_path / "labelled.jsonl"
    path.write_text('{"id": "a", "body": "新闻", "cluster": "k"}\n{"id": "a", "body": "消息", "cluster": "k"}\n')
    result = invoke("run", path, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "line 2: the id 'a' is already in line 1" in _plain(result)


@pytest.mark.slow
def test_report_is_written_though_nobody_reads_the_tables(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """If standard output closes early (`| head`), the page and the Markdown are written all the same."""
    out = tmp_path / "out"
    assert invoke("run", articles, "-o", out, "-a", "chars/5-grams/jaccard", "--replaced", 0, "-j", 1).exit_code == 0
    (out / "report.html").unlink()
    reading, writing = os.pipe()
    os.close(reading)
    command = [
        sys.executable,
        "-m",
        "stream_dedup",
        "evaluate",
        "report",
        str(out),
        "--markdown",
        f"{tmp_path}/markdown",
    ]
    with os.fdopen(writing, "w") as pipe:
        subprocess.run(command, stdout=pipe, check=False)
    assert (out / "report.html").is_file()
    assert (tmp_path / "markdown" / "report.md").is_file()


def test_other_directory_is_refused(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """Neither `run` nor `make` overwrites existing files."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("dear")
    result = invoke("run", articles, "-o", tmp_path / "out", "-a", "chars/5-grams/jaccard")
    assert result.exit_code == 2
    assert "not the directory of an evaluation" in _plain(result)
    assert invoke("make", articles, "-o", articles).exit_code == 2
    shown = invoke("report", tmp_path / "out")
    assert shown.exit_code == 2
    assert "holds no evaluation" in _plain(shown)


def test_too_few_articles_for_reposts_are_the_file_s_fault(invoke: Invoke, tmp_path: Path) -> None:
    """The exit code is that of wrong files, and nothing is written."""
    path = tmp_path / "one.jsonl"
    path.write_text('{"id": "a", "body": "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开。"}\n', encoding="utf-8")
    result = invoke("run", path, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "reposts are made from two or more" in _plain(result)
    assert not (tmp_path / "out").exists()


def test_list_shows_what_there_is(invoke: Invoke) -> None:
    """Segmenters with what is missing, operators and configurations; algorithms by pattern."""
    listed = _plain(invoke("list"))
    for name in ("jieba-precise", "hanlp-crf", "HANLP_CRF_MODEL", "truncate", "engine/default", "kgram-improved"):
        assert name in listed
    assert "rjieba/tfidf/cosine" in invoke("list", "-w", "rjieba", "-f", "tfidf").stdout
    similarities = invoke("list", "similarities").stdout
    assert ("kgram-improved" in similarities, "jieba-precise" in similarities) == (True, False)


def test_name_that_no_labelled_set_may_have_is_wrong_usage(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """The message says which names are allowed."""
    result = invoke("make", articles, "-o", tmp_path / "labelled.txt")
    assert result.exit_code == 2
    assert "labelled sets are written to .jsonl" in _plain(result)
    assert not (tmp_path / "labelled.txt").exists()


def test_file_that_cannot_be_written_is_told_before_the_work(
    invoke: Invoke, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To make reposts of many articles takes minutes."""
    monkeypatch.setattr("stream_dedup.evaluate.source.make", lambda _: pytest.fail("it has begun"))
    (tmp_path / "there.jsonl").touch()
    for name, told in (("there.jsonl", "already exists"), ("no/where.jsonl", "no such directory"), ("a.csv", ".jsonl")):
        result = invoke("make", articles, "-o", tmp_path / name)
        assert (result.exit_code > 0, told in _plain(result)) == (True, True), result.output


def test_patterns_are_refused_where_they_choose_nothing(invoke: Invoke) -> None:
    """A filter that is ignored would be taken for one that matches everything."""
    result = invoke("list", "features", "-f", "nonsense")
    assert result.exit_code == 2
    assert "use `list algorithms`" in _plain(result)


def test_patterns_that_match_nothing_cannot_be_listed(invoke: Invoke) -> None:
    """The message and exit code are the same as when running them."""
    result = invoke("list", "-a", "nosuch/*")
    assert result.exit_code == 2
    assert "'nosuch/*' matches no algorithm" in _plain(result)


@pytest.mark.slow
def test_service_starts_without_the_extra() -> None:
    """Neither the command line nor the service imports a package that only `evaluate` needs."""
    code = "import sys, stream_dedup.cli.main, stream_dedup.stream.service; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=_ROOT).stdout
    # numba checks whether scipy exists, and nothing more.
    assert not {"scipy.sparse", "sklearn", "joblib", "matplotlib", "jinja2", "pypinyin"} & set(loaded.split())


def test_missing_extra_is_told(invoke: Invoke, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without scipy, the message is the command that installs it."""
    for name in [name for name in sys.modules if name.startswith("stream_dedup.evaluate")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    result = invoke("run", articles, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "pip install 'stream-dedup[evaluate]'" in _plain(result)
