"""What all commands share: the terminal, settings from options, errors as one line and an exit code.

Knows options, consoles and exit codes; knows no command.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from stream_dedup.files.readers import FileFormatError
from stream_dedup.index.changelog import ChangelogError
from stream_dedup.index.store import StoreError, StoreLockedError
from stream_dedup.observe.logs import configure_logs
from stream_dedup.settings import Settings, SettingsError, load_settings
from stream_dedup.stream.clients import BrokerError, check_properties
from stream_dedup.stream.writer import FencedError
from stream_dedup.text.lexicon import read_words
from stream_dedup.text.user_words import read_user_dictionary

EXIT_FAILED, EXIT_USAGE, EXIT_LOCKED, EXIT_FENCED = 1, 2, 3, 4

errors = Console(stderr=True, highlight=False, soft_wrap=True)
out = Console(highlight=False)

ConfigOption = Annotated[Path | None, typer.Option("--config", "-c", help="Settings file, TOML.", metavar="FILE")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="A setting, as group.name=value. May be repeated.", metavar="NAME=VALUE"),
]


def settings_of(config: Path | None, flags: list[str] | None) -> Settings:
    """Load the settings and check all that can be checked before anything starts."""
    try:
        settings = load_settings(config, os.environ, flags or [])
        configure_logs(settings.log)
        _check_files(settings)
        check_properties(settings)
    except SettingsError as error:
        fail(str(error), EXIT_USAGE)
    return settings


def _check_files(settings: Settings) -> None:
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
            raise SettingsError(f"text.{name} = '{path}': there is no such file")
        try:
            reader(path)
        except (OSError, ValueError) as error:
            raise SettingsError(f"text.{name} = '{path}': {error}") from None


def guarded(work: Callable[[], None]) -> None:
    """Do the work of a command; turn what users can mend into one line and an exit code."""
    try:
        work()
    except StoreLockedError as error:
        fail(str(error), EXIT_LOCKED)
    except FencedError as error:
        fail(str(error), EXIT_FENCED)
    except FileExistsError as error:
        fail(f"{error.filename} is there already: choose another --out, or move it away", EXIT_USAGE)
    except (SettingsError, FileFormatError) as error:
        fail(str(error), EXIT_USAGE)
    except (BrokerError, ChangelogError, StoreError, OSError, ValueError) as error:
        fail(str(error), EXIT_FAILED)
    except KeyboardInterrupt:
        fail("interrupted", 128 + signal.SIGINT)


def fail(message: str, code: int) -> NoReturn:
    """End with a message, a line for each of its lines."""
    for line in message.splitlines():
        errors.print(f"[bold red]error[/]: {escaped(line)}")
    raise typer.Exit(code)


def escaped(text: str) -> str:
    """Return a text that rich shows as it is."""
    return text.replace("[", r"\[")
