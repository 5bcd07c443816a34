"""`stream-dedup config`, and settings that any command refuses: one line for each fault.

Knows streams and exit codes; what each setting means is tested in test_settings.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stream_dedup.settings.reference import settings_markdown
from tests.unit.commands import Invoke, one_line, write_articles, write_texts

pytestmark = pytest.mark.usefixtures("wide_terminal")

_ROOT = Path(__file__).parents[2]
_TOO_LONG = "x" * 300  # for a file's name: looking it up fails, as it does in a directory that is closed to the user


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
        ("text.stop_words=/", "text.stop_words = '/': it is no file"),
        (f"text.stop_words={_TOO_LONG}", f"text.stop_words = '{_TOO_LONG}': [Errno 36] File name too long"),
        ("nonsense", "group.name=value"),
    ],
)
def test_wrong_settings_exit_with_2(command: str, flag: str, message: str, invoke: Invoke, tmp_path: Path) -> None:
    """Every command refuses invalid settings before doing anything, with one line per fault."""
    arguments = {"dedup": [write_articles(tmp_path), "-o", tmp_path / "out"], "explain": write_texts(tmp_path)}
    result = invoke(command, *arguments.get(command, []), "-s", flag)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in one_line(result.stderr)
    assert not (tmp_path / "out").exists()


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
    assert refused.exit_code == 2
    assert "output.format = json has no schema to register: set it to avro" in one_line(refused.stderr)


@pytest.mark.slow
def test_formats_without_their_packages_name_the_extra() -> None:
    """The error comes before anything starts, and only if a setting needs the packages."""
    code = "import sys; sys.modules['fastavro'] = None; from stream_dedup.cli.main import main; main()"

    def check(*flags: str) -> "subprocess.CompletedProcess[str]":
        arguments = [argument for flag in flags for argument in ("--set", flag)]
        command = [sys.executable, "-c", code, "config", "--check", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    refused = check("input.format=json-schema", "registry.url=http://r:8081")
    assert (refused.returncode, "pip install 'stream-dedup[registry]'" in one_line(refused.stderr)) == (2, True)
    assert check("input.cloudevents=accept", "registry.url=http://r:8081").returncode == 0
