"""What all commands share: the terminal, settings from options, errors as one line and an exit code.

Knows options, consoles and exit codes; knows no command.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from stream_dedup.cli.completion import complete_setting, join_words
from stream_dedup.settings import Settings, SettingsError, load_settings
from stream_dedup.settings.kinds import in_utf_8, no_empty_path

EXIT_FAILED, EXIT_USAGE, EXIT_LOCKED, EXIT_FENCED = 1, 2, 3, 4
_EXIT_UNREAD = 128 + signal.SIGPIPE

# No markup and no emoji: names and texts from outside are shown as they are.
_plain_console = partial(Console, markup=False, emoji=False, highlight=False)
errors = _plain_console(stderr=True, soft_wrap=True)
# A pipe or a file takes lines of any length, of which rich knows nothing.
_ENDLESS = 1 << 20
# It may be closed.
_endless = (sys.stdout is None or not sys.stdout.isatty()) and "COLUMNS" not in os.environ
out = _plain_console(width=_ENDLESS if _endless else None)


# Before typer reads the line, of which bash has made other words.
_typed_setting = join_words(os.environ)


def _complete_setting(begun: str) -> list[str]:
    """Return what a setting that is being typed may become, for completion in the shell."""
    return complete_setting(begun, _typed_setting)


_Parsed = TypeVar("_Parsed")


def as_option(parse: Callable[[str], _Parsed]) -> Callable[[str], _Parsed]:
    """Return a parser of an option whose errors are told in their own words: typer would put its own before these.

    Args:
        parse: raises a `ValueError`.
    """

    def parsed(text: str) -> _Parsed:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return parsed


def _directory(text: str) -> Path:
    path = Path(no_empty_path(text))
    if path.exists() and not path.is_dir():
        raise ValueError(f"{text!r} is a file, where a directory is wanted")
    return path


named_path = as_option(lambda text: Path(no_empty_path(text)))
directory_path = as_option(_directory)
database_path = as_option(lambda text: Path(in_utf_8(no_empty_path(text))))  # RocksDB takes no other

Fail = Callable[[str, int], NoReturn]

ConfigOption = Annotated[Path | None, typer.Option("--config", "-c", help="Settings file, TOML.", metavar="FILE")]
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
    """Load the settings and check all that can be checked before anything starts."""
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
    """Yield what is wrong with settings that are within their bounds: with files, clients and packages."""
    from stream_dedup.stream.kafka.clients import check_properties
    from stream_dedup.stream.watching.traced import check_tracing
    from stream_dedup.stream.wire import Wire

    checks: tuple[Callable[[Settings], object], ...] = (check_properties, check_tracing, Wire)
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
        if not path.is_file():
            yield f"text.{name} = '{path}': there is no such file"
            continue
        try:
            reader(path)
        except (OSError, ValueError) as error:
            yield f"text.{name} = '{path}': {error}"


def tell(heading: str, line: str) -> None:
    """Print a line on standard error, with what it is in front."""
    errors.print(Text.assemble((heading, "bold red"), f": {line}"))


def fail(message: str, code: int) -> NoReturn:
    """End with a message, a line for each of its lines."""
    for line in message.splitlines():
        tell("error", line)
    raise typer.Exit(code)


def failing(settings: Settings) -> Fail:
    """Return how a service ends with a message: as an event where its log is for machines, else as commands do."""
    return _fail_in_log if settings.log.format == "json" else fail


def _fail_in_log(message: str, code: int) -> NoReturn:
    import structlog

    log = structlog.get_logger()
    log.error("failed", error=message, exit_code=code)
    raise typer.Exit(code)


def guarded(work: Callable[[], None], fail: Fail = fail) -> None:
    """Do the work of a command; turn what users can mend into one line and an exit code.

    Args:
        work: raises what has gone wrong.
        fail: tells it and ends.
    """
    try:
        work()
    except BrokenPipeError:
        raise  # whoever read along has gone, see `told_in_full`
    except FileExistsError as error:
        fail(f"{error.filename} is there already: choose another --out, or move it away", EXIT_USAGE)
    except KeyboardInterrupt:
        fail("interrupted", 128 + signal.SIGINT)
    except Exception as error:
        code = _exit_code(error)
        if code is None:
            raise
        fail(str(error), code)


@contextmanager
def told_in_full() -> Iterator[None]:
    """Fail where what a command shows cannot be written, as on a full disk, be it help or settings.

    Where whoever read along has gone it ends as what a closed pipe ends, without a word.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as end:
        # rich and typer make one of the other, and the exit code of any failure of it.
        if not isinstance(end, BrokenPipeError) and not isinstance(end.__context__, BrokenPipeError):
            raise
        _let_go()
        sys.exit(_EXIT_UNREAD)
    except OSError as error:
        _let_go()
        tell("error", f"standard output: {error.strerror}")
        sys.exit(EXIT_FAILED)


def _let_go() -> None:
    """Let what is left to write go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(error: Exception) -> int | None:
    """Return how a command ends by an error that users can mend; None for all others."""
    from stream_dedup.ask.bounds import TooLongError
    from stream_dedup.ask.desk import NoReasonError
    from stream_dedup.ask.lookup import UnknownArticleError
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


def text_of(path: Path) -> str:
    """Return the text of a file that is to be compared, or of standard input for `-`.

    Raises:
        FileFormatError: there is none, it is no UTF-8 or it is blank.
        OSError: it cannot be read.
    """
    from stream_dedup.files.readers import FileFormatError

    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is no UTF-8: {error}") from None
    except FileNotFoundError:
        raise FileFormatError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise FileFormatError(f"{path} is a directory: give a file with a text") from None
    if not text.strip():
        raise FileFormatError(f"{path} is blank: there is nothing to compare")
    return text


def json_line(line: str) -> None:
    """Print JSON as one line, however wide the terminal is."""
    sys.stdout.write(f"{line}\n")
