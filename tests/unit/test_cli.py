"""The command line: exit codes, what goes to which stream, and messages that a user can act on."""

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import stream_dedup
from stream_dedup.cli.main import app
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.engine.explain import explain
from stream_dedup.files.run_positions import RunPositions
from stream_dedup.fingerprint.features import Fingerprinter
from stream_dedup.index.records.ledger import Positions
from stream_dedup.index.stores.rocks import RocksStore
from stream_dedup.index.stores.store import Family, Put
from stream_dedup.settings import EngineSettings, Settings
from stream_dedup.settings.reference import settings_markdown
from stream_dedup.version import __version__

pytestmark = pytest.mark.usefixtures("wide_terminal")

_ROOT = Path(__file__).parents[2]
_BODY = "石桥镇的夜市昨晚重新开张，三十多个摊位沿河一字排开，附近的居民和游客都来捧场。"
Invoke = Callable[..., Result]


@pytest.fixture
def invoke(cached_fingerprinter: Callable[[EngineSettings], Fingerprinter], monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return a function that runs a command in this process, without settings in the environment."""
    for module in ("parts", "explain"):
        monkeypatch.setattr(f"stream_dedup.engine.{module}.Fingerprinter", cached_fingerprinter)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    """Return a file of three records: an article, its copy, and a broken one."""
    path = tmp_path / "articles.jsonl"
    rows = [{"id": "a", "body": _BODY}, {"id": "b", "body": _BODY.replace("，", " ")}, {"id": "c"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _texts(directory: Path) -> tuple[Path, Path]:
    first, second = directory / "a.txt", directory / "b.txt"
    first.write_text(_BODY, encoding="utf-8")
    second.write_text(_BODY[:20], encoding="utf-8")
    return first, second


def _one_line(text: str) -> str:
    return " ".join(text.split())


def test_config_prints_the_effective_settings(invoke: Invoke) -> None:
    """`config --print` prints the settings as JSON on standard output, without secrets."""
    result = invoke("config", "--print", "-s", "commit.articles=7", "-s", "kafka.sasl.password=hunter2")
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    assert (shown["commit"]["articles"], shown["kafka"]["sasl.password"]) == (7, "[redacted]")
    assert "hunter2" not in result.output


def test_config_reads_file_and_environment(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file comes from --config, the environment from the process, and flags override both."""
    file = tmp_path / "s.toml"
    file.write_text("[commit]\narticles = 1\ninterval_ms = 2\n[http]\nport = 3\n")
    monkeypatch.setenv("STREAM_DEDUP_COMMIT__INTERVAL_MS", "22")
    monkeypatch.setenv("STREAM_DEDUP_HTTP__PORT", "33")
    shown = json.loads(invoke("config", "-c", file, "-s", "http.port=333").stdout)
    assert (shown["commit"]["articles"], shown["commit"]["interval_ms"], shown["http"]["port"]) == (1, 22, 333)


def test_config_check_says_that_settings_are_valid(invoke: Invoke) -> None:
    """`config --check` exits with 0 and reports on standard error, with nothing on standard output."""
    result = invoke("config", "--check", "-c", _ROOT / "config" / "stream-dedup.toml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "valid" in result.stderr


@pytest.mark.parametrize("command", ["config", "dedup", "explain", "run"])
@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("commit.articles=0", "commit.articles = '0'"),
        ("commit.articels=1", "did you mean commit.articles?"),
        ("kafka.no.such=1", "no.such"),
        ("kafka.enable.auto.commit=true", "the service requires 'false'"),
        ("text.stop_words=nowhere.txt", "text.stop_words = 'nowhere.txt': there is no such file"),
        ("nonsense", "group.name=value"),
    ],
)
def test_wrong_settings_exit_with_2(command: str, flag: str, message: str, invoke: Invoke, articles: Path) -> None:
    """Every command refuses invalid settings before doing anything, with one line per fault."""
    arguments = {"dedup": [articles, "-o", articles.parent / "out"], "explain": _texts(articles.parent)}
    result = invoke(command, *arguments.get(command, []), "-s", flag)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in _one_line(result.stderr)
    assert not (articles.parent / "out").exists()


def test_wrong_regular_expression_exits_with_2(invoke: Invoke) -> None:
    """A topic pattern that does not compile is an invalid setting like any other."""
    result = invoke("config", "--check", "-s", "input.topics=^news(")
    assert result.exit_code == 2
    assert "input.topics" in result.stderr


def test_every_fault_has_its_line(invoke: Invoke) -> None:
    """Several faults are reported at once."""
    result = invoke("config", "--check", "-s", "commit.articles=0", "-s", "http.port=-1")
    assert result.exit_code == 2
    assert result.stderr.count("error:") == 2


def test_faults_beyond_bounds_have_their_lines_too(invoke: Invoke) -> None:
    """Missing files and properties refused by any library are all reported at once."""
    flags = ("text.stop_words=nowhere.txt", "text.boilerplate=nowhere.txt", "kafka.acks=1", "kafka.nonsense=1")
    result = invoke("config", "--check", *(argument for flag in flags for argument in ("-s", flag)))
    assert result.exit_code == 2
    lines = [line for line in result.stderr.splitlines() if line.startswith("error:")]
    assert [line.split()[:2] for line in sorted(lines)] == [
        ["error:", flag.partition("=")[0]] for flag in sorted(flags)
    ]


def test_reference_is_the_page_of_all_settings(invoke: Invoke) -> None:
    """`config --reference` prints the Markdown page."""
    result = invoke("config", "--reference")
    assert (result.exit_code, result.stdout) == (0, settings_markdown())


@pytest.mark.parametrize(("name", "kind"), [("avro", "AVRO"), ("protobuf", "PROTOBUF"), ("json-schema", "JSON")])
def test_config_prints_what_registers_a_schema(name: str, kind: str, invoke: Invoke) -> None:
    """It prints the body of the registry's request; if the format needs no schema, the command says so."""
    flags = ("--set", f"output.format={name}", "--set", "registry.url=http://r:8081")
    printed = json.loads(invoke("config", *flags, "--schema", "cluster").stdout)
    assert (printed.keys(), printed["schemaType"]) == ({"schema", "schemaType"}, kind)
    refused = invoke("config", "--schema", "link")
    assert (refused.exit_code, "output.format = json" in _one_line(refused.stderr)) == (2, True)


@pytest.mark.slow
def test_formats_without_their_packages_name_the_extra() -> None:
    """The error comes before anything starts, and only if a setting needs the packages."""
    code = "import sys; sys.modules['fastavro'] = None; from stream_dedup.cli.main import main; main()"

    def check(*flags: str) -> "subprocess.CompletedProcess[str]":
        arguments = [argument for flag in flags for argument in ("--set", flag)]
        command = [sys.executable, "-c", code, "config", "--check", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    refused = check("input.format=json-schema", "registry.url=http://r:8081")
    assert (refused.returncode, "pip install 'stream-dedup[registry]'" in _one_line(refused.stderr)) == (2, True)
    assert check("input.cloudevents=accept", "registry.url=http://r:8081").returncode == 0


@pytest.mark.slow
def test_service_of_json_loads_no_package_of_a_format() -> None:
    """They are an extra and take half a second to load; the API runs in a process of its own."""
    code = (
        "import sys, stream_dedup.api.process, stream_dedup.stream.service, stream_dedup.settings as s; "
        "import stream_dedup.stream.formats as w; w.Formats(s.Settings()).decoder(); "
        "print({'fastapi', 'fastavro', 'google.protobuf', 'jsonschema', 'httpx2', 'cachetools'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_help_is_shown_as_it_is_written(invoke: Invoke) -> None:
    """Brackets are not interpreted as markup, and paragraphs are reflowed."""
    assert "[default: the sample's, or 0.55]" in _one_line(invoke("plan", "--help").stdout.replace("│", " "))
    assert "Filters may be repeated: a decision must" in invoke("tail", "--help").stdout


@pytest.mark.slow
def test_help_and_completion_load_no_engine() -> None:
    """Completion, help and misspelt settings must not wait for compiled loops or clients to load."""
    code = """
import sys
from typer.main import get_command
from typer.testing import CliRunner
from stream_dedup.cli.main import app

def told(command, *names):
    assert CliRunner().invoke(app, [*names, "--help"]).exit_code == 0, names
    for name, inner in getattr(command, "commands", {}).items():
        told(inner, *names, name)

told(get_command(app))
assert CliRunner().invoke(app, ["run", "--set", "no.such=1"]).exit_code == 2
line = {"_STREAM_DEDUP_COMPLETE": "complete_bash", "COMP_WORDS": "stream-dedup\\ntail\\n--set\\nout", "COMP_CWORD": "3"}
completed = CliRunner().invoke(app, prog_name="stream-dedup", env=line).stdout
assert "output.format=" in completed, completed
engine = {"confluent_kafka", "fastapi", "numba", "numpy", "rocksdict", "stream_dedup.engine.dedup"}
print(sorted(engine & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_package_gives_the_engine_when_it_is_asked_for() -> None:
    """`from stream_dedup import Deduplicator` gives the engine's class; it is listed, and unknown names are refused."""
    assert stream_dedup.Deduplicator is Deduplicator
    assert set(stream_dedup.__all__) <= set(dir(stream_dedup))
    with pytest.raises(AttributeError, match="'stream_dedup' has no attribute 'Dedupe'"):
        stream_dedup.Dedupe  # noqa: B018  # the access is the test


def test_dedup_writes_results_and_a_summary(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """`dedup` writes the three files and prints how many records became what."""
    result = invoke("dedup", articles, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    lines = {path.name: len(path.read_text().splitlines()) for path in (tmp_path / "out").iterdir()}
    assert lines == {"unique.jsonl": 1, "links.jsonl": 1, "dead.jsonl": 1}
    assert "3 records" in result.stdout
    assert "exact" in result.stdout


def test_dedup_goes_on_from_its_state(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """With --state, a second run knows the articles of the first."""
    for name in ("1", "2"):
        assert invoke("dedup", articles, "-o", tmp_path / name, "--state", tmp_path / "state").exit_code == 0
    assert (tmp_path / "2" / "unique.jsonl").read_text() == ""


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
    assert "choose another --out" in _one_line(result.stderr)


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
    assert "in use by another process" in _one_line(result.stderr)


def test_dedup_on_a_state_of_other_settings_exits_with_1(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """Fingerprints of other settings are not comparable; the message names the setting and both values."""
    invoke("dedup", articles, "-o", tmp_path / "1", "--state", tmp_path / "state")
    result = invoke("dedup", articles, "-o", tmp_path / "2", "--state", tmp_path / "state", "-s", "sketch.gram=4")
    assert result.exit_code == 1
    assert "sketch.gram = 5 in the state, 4 in the settings" in _one_line(result.stderr)


def test_state_of_files_can_be_looked_at_checked_and_copied(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """`status`, `state stats`, `verify` and `snapshot` accept a state made by `dedup`; the copy can be continued."""
    invoke("dedup", articles, "-o", tmp_path / "out", "--state", tmp_path / "state")
    flags = ("--set", f"state.directory={tmp_path / 'state'}")
    stats = json.loads(invoke("state", "stats", "--json", *flags).stdout)
    lines = len(articles.read_bytes().splitlines())
    run = {"results": str(tmp_path / "out"), "finished": True, "file": str(articles), "lines": lines}
    assert (stats["directory"], stats["changelog"], stats["runs"]) == (str(tmp_path / "state"), None, [run])
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


def test_fault_in_a_state_of_files_is_mended_from_them(invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """There is no changelog for `state restore` to use, so the advice is to run `dedup --state` again."""
    invoke("dedup", articles, "-o", tmp_path / "out", "--state", tmp_path / "state")
    with RocksStore(tmp_path / "state") as store:
        key, _ = next(store.items(Family.ENTRIES))
        store.write([Put(Family.ENTRIES, key, None)])
    result = invoke("state", "verify", "--set", f"state.directory={tmp_path / 'state'}")
    assert result.exit_code == 1
    assert "dedup --state" in _one_line(result.stderr)
    assert "restore" not in result.stderr


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
    assert f"{state} holds a state without a changelog" in _one_line(result.stderr)
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


def test_explain_as_json_is_what_explain_computes(invoke: Invoke, tmp_path: Path) -> None:
    """`explain --json` prints the rounded fields of the explanation."""
    result = invoke("explain", *_texts(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    shown, expected = json.loads(result.stdout), explain(_BODY, _BODY[:20], Settings())
    assert shown["relation"] == expected.relation
    assert shown["fingerprints"] == [f"{value:016x}" for value in expected.fingerprints]
    assert (shown["hamming"], shown["differing_bits"]) == (expected.hamming, expected.differing_bits)
    assert shown["jaccard"] == pytest.approx(expected.jaccard, abs=5e-5)
    assert shown["containment"] == pytest.approx(expected.containment, abs=5e-5)
    assert shown["cosine"] == pytest.approx(expected.cosine, abs=5e-5)
    assert [word["word"] for word in shown["shared_words"]] == [word.word for word in expected.shared_words]


def test_explain_for_people_shows_verdict_and_bits(invoke: Invoke, tmp_path: Path) -> None:
    """Without --json, the verdict, both fingerprints in binary and the heaviest words are shown."""
    result = invoke("explain", *reversed(_texts(tmp_path)))
    expected = explain(_BODY[:20], _BODY, Settings())
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{expected.relation}  ")
    assert all(f"{value:064b}" in result.stdout for value in expected.fingerprints)
    assert "heaviest shared words" in result.stdout


@pytest.mark.slow
def test_explain_in_a_pipe_has_lines_of_any_length(tmp_path: Path) -> None:
    """If output is not a terminal, a name of 100 letters is printed in full beside its fingerprint."""
    paths = _texts(tmp_path)
    names = ["a" * 100, "b" * 100]
    files = [path.rename(tmp_path / name) for path, name in zip(paths, names, strict=True)]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "stream_dedup", "explain", *map(str, files)]
    done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=True)
    for fingerprint, name in zip(explain(_BODY, _BODY[:20], Settings()).fingerprints, names, strict=True):
        assert f"{fingerprint:064b}  {fingerprint:016x}  {name}" in done.stdout.splitlines()


def test_explain_names_texts_that_it_cannot_read(invoke: Invoke, tmp_path: Path) -> None:
    """A missing file, a text that is not UTF-8 and a missing state directory are named."""
    first, second = _texts(tmp_path)
    result = invoke("explain", first, tmp_path / "none.txt")
    assert (result.exit_code, "none.txt: there is no such file" in _one_line(result.stderr)) == (2, True)
    second.write_bytes("你好".encode("gbk"))
    result = invoke("explain", first, second)
    assert (result.exit_code, "b.txt is not valid UTF-8" in _one_line(result.stderr)) == (2, True)
    (tmp_path / "blank.txt").write_text(" \n\u3000", "utf-8")
    result = invoke("explain", first, tmp_path / "blank.txt")
    assert (result.exit_code, "blank.txt is blank" in " ".join(result.stderr.split())) == (2, True)
    result = invoke("explain", first, first, "--state", tmp_path / "nowhere")
    assert (result.exit_code, _one_line(result.stderr).find("nowhere is not a state directory: name one") > 0) == (
        1,
        True,
    )


def test_explain_does_not_write_into_a_directory_that_is_no_state(invoke: Invoke, tmp_path: Path) -> None:
    """A directory passed by mistake as --state is refused and left unchanged."""
    first, second = _texts(tmp_path)
    mistaken = tmp_path / "documents"
    mistaken.mkdir()
    result = invoke("explain", first, second, "--state", mistaken)
    assert list(mistaken.iterdir()) == []
    assert result.exit_code != 0


def test_version_is_shown(invoke: Invoke) -> None:
    """`--version` prints the package's version."""
    assert invoke("--version").stdout == f"stream-dedup {__version__}\n"


def test_unknown_option_exits_with_2(invoke: Invoke) -> None:
    """A misspelt option is a usage error."""
    assert invoke("config", "--chekc").exit_code == 2


@pytest.mark.parametrize("name", [r"a\[/b].jsonl", "[bold]a.jsonl", ":smile:.jsonl", "a[/].txt"])
def test_names_are_shown_as_they_are(name: str, invoke: Invoke, tmp_path: Path) -> None:
    """Nothing in a name is interpreted by rich as markup or emoji."""
    result = invoke("dedup", name, "-o", tmp_path / "out")
    assert (result.exit_code, result.stderr.startswith(f"error: {name}: ")) == (2, True)


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


@pytest.mark.parametrize("option", ["--out", "--state"])
def test_empty_path_is_refused(option: str, invoke: Invoke, articles: Path, tmp_path: Path) -> None:
    """An unset shell variable gives an empty path, which would mean the current directory."""
    command = {"--out": tmp_path / "out", "--state": tmp_path / "state", option: ""}
    result = invoke("dedup", articles, *(part for pair in command.items() for part in pair))
    assert result.exit_code == 2
    assert "the path is empty; for the current directory, write `.`" in _one_line(result.stderr)


@pytest.mark.parametrize(("directory", "told"), [("", "the path is empty"), ("\udcff", "it is not valid UTF-8")])
def test_snapshot_into_what_is_no_path_is_refused(directory: str, told: str, invoke: Invoke) -> None:
    """As for `dedup`: an empty path would copy the state to the current directory, and RocksDB requires UTF-8."""
    result = invoke("state", "snapshot", directory)
    assert (result.exit_code, told in _one_line(result.stderr)) == (2, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux, on which nothing can be written")
@pytest.mark.parametrize("arguments", [("--help",), ("config", "--print"), ("config", "--reference")])
def test_output_that_cannot_be_written_is_told_in_a_line(arguments: tuple[str, ...]) -> None:
    """The exit code is set too, even where output is written outside of a command's own error handling."""
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "stream_dedup", *arguments]
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (run.returncode, run.stderr) == (1, "error: standard output: No space left on device\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("config", "--print"), ("config", "--reference"), ("plan", "--articles=5", "--recall=0.9")],
)
def test_whoever_reads_along_may_go(arguments: tuple[str, ...]) -> None:
    """A closed pipe is not an error: the command exits silently, with the usual exit code of SIGPIPE."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "stream_dedup", *arguments]
    with os.fdopen(writing, "w") as pipe:
        run = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (128 + signal.SIGPIPE, "")


_DRAWING = """
import threading, time
from stream_dedup.signals import exit_at_once_on_signals
from stream_dedup.cli.terminal import errors
exit_at_once_on_signals()
held = threading.Event()
def draw():
    with errors._lock:
        held.set()
        time.sleep(60)
threading.Thread(target=draw, daemon=True).start()
held.wait()
print("drawing", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_signal_waits_for_nobody_who_is_drawing() -> None:
    """A thread that draws bars may be waiting for a lock of the interrupted one, so neither is waited for."""
    command = [sys.executable, "-c", _DRAWING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "drawing\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert (process.returncode, told) == (130, "error: interrupted\n")


def test_module_runs_as_the_command() -> None:
    """`python -m stream_dedup` is the command line."""
    command = [sys.executable, "-m", "stream_dedup", "--version"]
    done = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == f"stream-dedup {__version__}\n"


_INTERRUPTED = """
import os, signal, sys, time
from stream_dedup.cli.main import main
from stream_dedup.stream.service import Service

class Finalised:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)

def run(service):
    Finalised()
    time.sleep(60)

Service.run = run
sys.argv = ["stream-dedup", "run"]
main()
"""


@pytest.mark.slow
def test_sigterm_is_heard_amid_a_finalizer_while_the_service_starts(tmp_path: Path) -> None:
    """Python drops exceptions raised in a finalizer, so the signal must not rely on one."""
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


_OPENING = """
import os, sys, time
from stream_dedup.cli.main import main
from stream_dedup.engine import dedup

number = int(sys.argv.pop())

class Finalised:
    def __del__(self):
        os.kill(os.getpid(), number)
        time.sleep(0.1)

def open_engine(*_, **__):
    Finalised()
    time.sleep(60)

dedup.Deduplicator.__init__ = open_engine
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "command", [("dedup", "--out", "results"), ("plan", "--articles=1M", "--recall=0.9", "--sample")]
)
def test_signal_is_heard_while_an_engine_is_opened(
    command: tuple[str, ...], number: signal.Signals, tmp_path: Path
) -> None:
    """An exception there could be lost or crash, so the command exits at once, with the exit code of the signal."""
    file = tmp_path / "in.jsonl"
    file.write_text("".join(f'{{"id": "{number}", "body": "正文{number}"}}\n' for number in range(100)), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _OPENING, *command, str(file), str(int(number))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    told = "error: interrupted\n" if number == signal.SIGINT else ""
    assert (done.returncode, done.stderr.endswith(told), "Traceback" in done.stderr) == (128 + number, True, False)
