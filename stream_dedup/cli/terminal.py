"""What all commands share: the terminal, settings from options, errors as one line with an exit code.

Knows options, consoles and exit codes; knows no command.
"""

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from stream_dedup.cli.completion import complete_setting, join_words
from stream_dedup.paths import is_there
from stream_dedup.rendering.plain import plain
from stream_dedup.settings import Settings, SettingsError, load_settings
from stream_dedup.settings.kinds import required_path, required_utf8

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

EXIT_FAILED, EXIT_USAGE, EXIT_LOCKED, EXIT_FENCED = 1, 2, 3, 4
_STDOUT, _STDERR = 1, 2
_STANDARD_OUTPUT = "standard output"
_EXIT_UNREAD = 128 + signal.SIGPIPE
_BYTES_OF_A_CHARACTER = 4  # in UTF-8, at most

# As for curses, a width of 0 is none; rich would print nothing.
if not os.environ.get("COLUMNS", "").strip("0"):
    os.environ.pop("COLUMNS", None)
# No markup and no emoji: untrusted names and texts are shown as they are.
_plain_console = partial(Console, markup=False, emoji=False, highlight=False)
errors = _plain_console(stderr=True, soft_wrap=True)
# A pipe or a file takes lines of any length, but rich assumes a width.
_ENDLESS = 1 << 20
# Standard output may be closed.
_endless = (sys.stdout is None or not sys.stdout.isatty()) and "COLUMNS" not in os.environ
out = _plain_console(width=_ENDLESS if _endless else None)


# Before typer reads the line, which bash splits differently.
_typed_setting = join_words(os.environ)


def _complete_setting(begun: str) -> list[str]:
    """Return the completions of a setting that is being typed, for the shell."""
    return complete_setting(begun, _typed_setting)


_Parsed = TypeVar("_Parsed")


def option_parser(parse: Callable[[str], _Parsed]) -> Callable[[str], _Parsed]:
    """Return a parser of an option whose errors keep their own wording: typer would put its own before them.

    Args:
        parse: raises a `ValueError`, or an `OSError` for a path that cannot be looked up.
    """

    def parsed(text: str) -> _Parsed:
        try:
            return parse(text)
        except (OSError, ValueError) as error:
            raise typer.BadParameter(str(error)) from None

    return parsed


def _directory(text: str) -> Path:
    path = Path(required_path(text))
    if is_there(path) and not path.is_dir():
        raise ValueError(f"{text!r} is a file, not a directory")
    return path


def _file(text: str) -> Path:
    if not text:
        raise ValueError("the path is empty: name a file")
    return Path(required_path(text))


file_path = option_parser(_file)
named_path = option_parser(lambda text: Path(required_path(text)))
directory_path = option_parser(_directory)
database_path = option_parser(lambda text: _directory(required_utf8(text)))  # RocksDB accepts no other

Fail = Callable[[str, int], NoReturn]

ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="Settings file, TOML.", metavar="FILE", parser=file_path)
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        help="A setting, as group.name=value. May be repeated.",
        metavar="NAME=VALUE",
        autocompletion=_complete_setting,
    ),
]


def settings_of(config: Path | None, flags: list[str] | None) -> Settings:
    """Load the settings and check everything that can be checked before anything starts."""
    try:
        settings = load_settings(config, os.environ, flags or [])
    except SettingsError as error:
        fail(str(error), EXIT_USAGE)
    from stream_dedup.observe.logs import configure_logs

    configure_logs(settings.log, settings.secrets())
    faults = list(_faults(settings))
    if faults:
        fail("\n".join(faults), EXIT_USAGE)
    return settings


def _faults(settings: Settings) -> Iterator[str]:
    """Yield the faults of settings that are within their bounds: in files, clients and packages."""
    from stream_dedup.stream.formats import check_formats
    from stream_dedup.stream.kafka.clients import check_properties
    from stream_dedup.stream.watching.traced import check_tracing

    checks: tuple[Callable[[Settings], object], ...] = (check_properties, check_tracing, check_formats)
    yield from _faults_of_files(settings)
    for check in checks:
        try:
            check(settings)
        except SettingsError as error:
            yield str(error)


def _faults_of_files(settings: Settings) -> Iterator[str]:
    from stream_dedup.text.lexicon import read_words
    from stream_dedup.text.user_words import read_user_dictionary

    readers = {
        "user_dictionary": read_user_dictionary,
        "stop_words": read_words,
        "marker_words": read_words,
        "boilerplate": read_words,
    }
    for name, reader in readers.items():
        path = getattr(settings.text, name)
        if path is None:
            continue
        try:
            if not is_there(path):
                yield f"text.{name} = '{path}': there is no such file"
            elif not path.is_file():
                yield f"text.{name} = '{path}': it is no file"
            else:
                reader(path)
        except (OSError, ValueError) as error:
            yield f"text.{name} = '{path}': {error}"


def tell(heading: str, line: str) -> None:
    """Print a line on standard error, after a heading in colour; what a terminal would obey is shown."""
    errors.print(Text.assemble((heading, "bold red"), ": ", plain(line)))


def telling_of_compiling() -> AbstractContextManager[None]:
    """Return a context that says so when loops are compiled: a command is then silent for long, as if it hung."""
    from stream_dedup.compiled.kernel import hearing_of_compiling

    return hearing_of_compiling(lambda: errors.print("compiling, once per installation: this takes a minute or two"))


def fail(message: str, code: int) -> NoReturn:
    """End with an error message, each of its lines printed as one error."""
    for line in message.splitlines():
        tell("error", line)
    raise typer.Exit(code)


def failure_reporter(settings: Settings) -> Fail:
    """Return how a service fails: with an event if its log is for machines, else with a message as commands do."""
    return _fail_in_log if settings.log.format == "json" else fail


def _fail_in_log(message: str, code: int) -> NoReturn:
    import structlog

    log = structlog.get_logger()
    log.error("failed", error=message, exit_code=code)
    raise typer.Exit(code)


def run_reporting_errors(work: Callable[[], None], fail: Fail = fail) -> None:
    """Do the work of a command; turn errors that users can fix into one line and an exit code.

    Args:
        work: raises the errors.
        fail: reports an error and ends.
    """
    try:
        work()
    except BrokenPipeError:
        raise  # the reader of the output has gone, see `reporting_output_errors`
    except FileExistsError as error:
        fail(f"{error.filename} already exists: choose another --out, or move it away", EXIT_USAGE)
    except KeyboardInterrupt:
        fail("interrupted", 128 + signal.SIGINT)
    except Exception as error:
        code = _exit_code(error)
        if code is None or (isinstance(error, OSError) and error.filename == _STANDARD_OUTPUT):
            raise  # the latter is told once, however often it recurs, see `reporting_output_errors`
        fail(_told(error), code)


def _told(error: Exception) -> str:
    """Return an error's message; that of a file without the system's number for it."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def open_closed_streams() -> None:
    """Open the standard streams that are closed (`2>&-`), to discard what is written to them.

    Else the next file to be opened, such as one of the state, would take the place of one and receive it. `sys.stdin`
    remains None, for those who would read it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(_STDOUT, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(_STDERR, "w")


class _StandardOutput(io.FileIO):
    """Standard output, whose errors name it: they could come from any file that a command writes."""

    def write(self, content: "ReadableBuffer", /) -> int:
        """Write some of the content and return how much.

        Raises:
            OSError: it cannot be written.
        """
        try:
            return super().write(content)
        except OSError as error:
            error.filename = _STANDARD_OUTPUT
            raise


def name_standard_output() -> None:
    """Have errors of standard output name it."""
    before = sys.stdout
    is_unbuffered = isinstance(before.buffer, io.RawIOBase)  # PYTHONUNBUFFERED: somebody reads each line as it comes
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_StandardOutput(before.fileno(), "wb", closefd=False)),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=is_unbuffered or before.isatty(),
    )


@contextmanager
def reporting_output_errors() -> Iterator[None]:
    """Fail if a command's output (even help or settings) cannot be written, as on a full disk.

    If the reader has gone, end silently, with the exit code of a process ended by a closed pipe.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as end:
        # rich and typer turn a BrokenPipeError into a SystemExit with the exit code of any failure.
        if not isinstance(end, BrokenPipeError) and not isinstance(end.__context__, BrokenPipeError):
            raise
        _let_go()
        sys.exit(_EXIT_UNREAD)
    except OSError as error:
        _let_go()
        tell("error", _told(error))
        sys.exit(EXIT_FAILED)


def _let_go() -> None:
    """Discard what is left to write."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(error: Exception) -> int | None:
    """Return the exit code for an error that users can fix; None for all others."""
    from stream_dedup.ask.bounds import TooLongError
    from stream_dedup.ask.lookup import UnknownArticleError
    from stream_dedup.ask.query_service import NoReasonError
    from stream_dedup.ask.texts import LostTextError
    from stream_dedup.files.readers import FileFormatError
    from stream_dedup.index.changelog import ChangelogError
    from stream_dedup.index.stores.store import StoreError, StoreLockedError
    from stream_dedup.registry import RegistryError
    from stream_dedup.stream.kafka.clients import BrokerError
    from stream_dedup.stream.output.errors import FencedError

    asked = (UnknownArticleError, NoReasonError, LostTextError)
    ends: tuple[tuple[tuple[type[Exception], ...], int], ...] = (
        ((StoreLockedError,), EXIT_LOCKED),
        ((FencedError,), EXIT_FENCED),
        ((SettingsError, FileFormatError, TooLongError), EXIT_USAGE),
        ((*asked, BrokerError, RegistryError, ChangelogError, StoreError, OSError, ValueError), EXIT_FAILED),
    )
    return next((code for kinds, code in ends if isinstance(error, kinds)), None)


def text_of(path: Path, most: int) -> str:
    """Return the text to compare from a file, or from standard input for `-`.

    Args:
        path: of the file.
        most: limit of `input.max_body_chars`; no more is read into memory.

    Raises:
        FileFormatError: there is no such file, or it is a directory, not valid UTF-8 or blank.
        TooLongError: it is longer than an article's body may be.
        OSError: it cannot be read.
    """
    from stream_dedup.ask.bounds import TooLongError
    from stream_dedup.files.readers import STANDARD_INPUT, FileFormatError, check_exists
    from stream_dedup.text.blank import is_blank
    from stream_dedup.text.utf8 import TO_UTF8

    check_exists(path)
    bytes_at_most = _BYTES_OF_A_CHARACTER * (most + 1)  # one for the mark that Windows editors put at the beginning
    with nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else path.open("rb") as file:
        content = file.read(bytes_at_most + 1)
    too_long = TooLongError(f"{path} has more than {most} characters: input.max_body_chars is the limit")
    if len(content) > bytes_at_most:
        raise too_long
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not valid UTF-8: {TO_UTF8}; {error}") from None
    if len(text) > most:
        raise too_long
    if is_blank(text):
        raise FileFormatError(f"{path} is blank: there is nothing to compare")
    return text


def json_line(line: str) -> None:
    """Print JSON as one line, however wide the terminal is."""
    sys.stdout.write(f"{line}\n")
