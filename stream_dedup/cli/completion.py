"""Shell completion of `--set`: names of settings, and the values of those that have a fixed choice.

Knows settings, and how bash splits a line into words; knows no command.
"""

import re
from collections.abc import Iterator, MutableMapping
from typing import NamedTuple, get_origin

from stream_dedup.settings import Settings
from stream_dedup.settings.kinds import choices_of, settings_in

_ASKED, _BY_BASH = "_STREAM_DEDUP_COMPLETE", "complete_bash"


class _Choice(NamedTuple):
    """The values that a setting may have; empty if they cannot be listed."""

    values: list[str]
    several: bool = False


def complete_setting(begun: str, setting: str = "") -> list[str]:
    """Return the completions of a setting that is being typed.

    Args:
        begun: the beginning of `group.name=value`, or of the value alone.
        setting: name of the setting in the latter case.
    """
    choices = dict(_choices())
    if setting:
        return _values(choices.get(setting, _Choice([])), begun)
    name, equals, value = begun.partition("=")
    names = [name] if equals else [known for known in choices if known.startswith(name)]
    if len(names) == 1:
        # After an only completion the shell ends the word, so a name without a value would be useless.
        found = [f"{names[0]}={one}" for one in _values(choices.get(names[0], _Choice([])), value)]
        return found if found or equals else [f"{names[0]}="]
    return [f"{known}=" for known in names]


def join_words(environ: MutableMapping[str, str]) -> str:
    """Rejoin the words of a line that bash wants completed: bash splits `name=value` into three.

    Args:
        environ: the environment of this process, where typer reads the words; changed in place.

    Returns:
        Name of the setting whose value is being typed: the last word is then the value alone, since that is all that
        bash completes. Otherwise empty.
    """
    if environ.get(_ASKED) != _BY_BASH:
        return ""
    at = int(environ["COMP_CWORD"])
    words = [*environ["COMP_WORDS"].split("\n"), ""][: at + 1]
    line, setting = "\n".join(words), ""
    if pair := re.search(r"\n([^-\n][^\n]*)\n=(?:\n([^\n]*))?$", line):
        setting = pair[1]
        line = f"{line[: pair.start()]}\n{pair[2] or ''}"
    line = re.sub(r"\n=(?:\n|$)", "=", line)
    environ.update({"COMP_WORDS": line, "COMP_CWORD": str(line.count("\n"))})
    return setting


def _values(choice: _Choice, begun: str) -> list[str]:
    head, comma, last = begun.rpartition(",") if choice.several else ("", "", begun)
    return [f"{head}{comma}{value}" for value in choice.values if value.startswith(last)]


def _choices() -> Iterator[tuple[str, _Choice]]:
    """Yield each setting with its choice."""
    for name, field in settings_in(Settings):
        # Those without a group, `kafka` and `registry`, are tables of properties.
        if "." in name:
            yield name, _Choice(choices_of(field.annotation), get_origin(field.annotation) is list)
