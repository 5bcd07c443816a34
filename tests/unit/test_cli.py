"""The command line as a whole: help, version, what it loads, and output that cannot be written.

Knows streams and exit codes; each command has a module of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import stream_dedup
from stream_dedup.engine.dedup import Deduplicator
from stream_dedup.version import __version__
from tests.unit.commands import Invoke, one_line

pytestmark = pytest.mark.usefixtures("wide_terminal")

_ROOT = Path(__file__).parents[2]


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
    assert "[default: the sample's, or 0.55]" in one_line(invoke("plan", "--help").stdout.replace("│", " "))
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


@pytest.mark.parametrize("name", ["article.Withdrawal", "settings.SettingsError", "Deduplicator", "Settings"])
def test_package_alone_gives_what_is_in_it(name: str) -> None:
    """`import stream_dedup` is enough for the full names in the documentation."""
    code = f"import stream_dedup; print(stream_dedup.{name}.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{name.rpartition('.')[2]}\n", "")


def test_version_is_shown(invoke: Invoke) -> None:
    """`--version` prints the package's version."""
    assert invoke("--version").stdout == f"stream-dedup {__version__}\n"


def test_unknown_option_exits_with_2(invoke: Invoke) -> None:
    """A misspelt option is a usage error."""
    assert invoke("config", "--chekc").exit_code == 2


@pytest.mark.parametrize(("directory", "told"), [("", "the path is empty"), ("\udcff", "it is not valid UTF-8")])
def test_snapshot_into_what_is_no_path_is_refused(directory: str, told: str, invoke: Invoke) -> None:
    """As for `dedup`: an empty path would copy the state to the current directory, and RocksDB requires UTF-8."""
    result = invoke("state", "snapshot", directory)
    assert (result.exit_code, told in one_line(result.stderr)) == (2, True)


_TAKE_FILES = [
    ("dedup", "", "-o", "out"),
    ("explain", "", "a.txt"),
    ("explain", "a.txt", ""),
    ("similar", ""),
    ("config", "-c", ""),
    ("plan", "--articles=1M", "--recall=0.9", "--sample", ""),
    ("evaluate", "run", "", "-o", "out"),
    ("evaluate", "make", "", "-o", "out.jsonl"),
    ("evaluate", "run", "a.jsonl", "-o", "out", "--pairs", ""),
]


@pytest.mark.parametrize("arguments", _TAKE_FILES, ids=" ".join)
def test_empty_name_of_a_file_is_told_so(arguments: tuple[str, ...], invoke: Invoke) -> None:
    """An unset shell variable is not taken for the current directory."""
    result = invoke(*arguments)
    assert (result.exit_code, "the path is empty: name a file" in one_line(result.stderr)) == (2, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux, on which nothing can be written")
@pytest.mark.parametrize(
    "arguments", [("--help",), ("config", "--print"), ("config", "--reference"), ("state", "stats")]
)
def test_output_that_cannot_be_written_is_told_in_a_line(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """The exit code is set too, whether output is written inside or outside of a command's own error handling."""
    Deduplicator(tmp_path).close()
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "stream_dedup", *arguments]
        environment = {**os.environ, "STREAM_DEDUP_STATE__DIRECTORY": str(tmp_path)}
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, text=True, check=False)

    assert (run.returncode, run.stderr) == (1, "error: standard output: No space left on device\n")


@pytest.mark.parametrize("closing", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("arguments", ["config --print", "config --reference"])
def test_closed_streams_are_like_none_that_anybody_reads(closing: str, arguments: str) -> None:
    """What is written to them is lost, but the command does its work."""
    command = ["sh", "-c", f'exec "$0" -m stream_dedup {arguments} {closing}', sys.executable]
    done = subprocess.run(command, cwd=_ROOT, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("verify" in done.stdout) is (" >&-" not in f" {closing}")


@pytest.mark.parametrize("arguments", ["dedup - --out out", "explain - pyproject.toml"])
def test_standard_input_that_is_closed_is_told(arguments: str, tmp_path: Path) -> None:
    """It is not taken for an empty one."""
    command = ["sh", "-c", f'exec "$0" -m stream_dedup {arguments} <&-', sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: -: standard input is closed" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("columns", ["80", "0", ""])
def test_module_runs_as_the_command(columns: str) -> None:
    """`python -m stream_dedup` is the command line; a terminal that is said to be 0 columns wide has no known width."""
    command = [sys.executable, "-m", "stream_dedup", "--version"]
    environment = {**os.environ, "COLUMNS": columns}
    done = subprocess.run(command, cwd=_ROOT, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == f"stream-dedup {__version__}\n"
