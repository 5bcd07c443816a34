"""Where settings come from: defaults < TOML file < environment < flags.

Knows precedence and how each source is written; knows no individual setting.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stream_dedup.settings.faults import describe_faults, shown
from stream_dedup.settings.kinds import PASSTHROUGH_GROUPS, flattened, is_path, required_utf8, settings_in
from stream_dedup.settings.redaction import REDACTED, is_secret, resembles_secret
from stream_dedup.settings.schema import Settings

ENVIRONMENT_PREFIX = "STREAM_DEDUP_"
# Variables that Kubernetes sets in each container for services whose names begin with stream-dedup, up to the value: of
# ..._PORT that is a URL, and a mere number is a setting with one underscore too few.
_OF_KUBERNETES = re.compile(
    r"[A-Z0-9_]+(?<!_)_(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)=|PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?=|PORT=[a-z]+://)"
)
_TWO_UNDERSCORES = f"write two underscores between the parts, as in {ENVIRONMENT_PREFIX}WINDOW__DAYS"
Tree = dict[str, Any]


class SettingsError(ValueError):
    """Settings are invalid: one line per fault, each with the setting, its value and what is allowed."""


def load_settings(
    file: Path | str | None = None, environment: Mapping[str, str] | None = None, flags: Sequence[str] = ()
) -> Settings:
    """Return the effective settings.

    Args:
        file: TOML, one table per group. Relative paths in it are relative to the file.
        environment: `STREAM_DEDUP_GROUP__NAME=value`; in librdkafka's and the registry's properties, `_` stands for a
            dot: `STREAM_DEDUP_KAFKA__SASL_PASSWORD` is `sasl.password`. Other variables are ignored.
        flags: `group.name=value`; they take precedence.

    Raises:
        TypeError: `flags` is a single text.
        SettingsError: the file cannot be read, or settings are unknown, of the wrong type or out of bounds; all of
            these are listed.
    """
    if isinstance(flags, str | bytes):  # not shown: the value may be a secret
        raise TypeError(
            f"flags is of type {type(flags).__name__}: a sequence of settings is expected, each group.name=value; wrap "
            "a single one in a list"
        )
    tree: Tree = {}
    faults: list[str] = []
    # A file that cannot be read is the only fault reported: without its contents the other settings may seem wrong.
    path = Path(file) if file is not None else None
    for layer in (_from_file(path), _from_environment(environment or {}, faults), _from_flags(flags, faults)):
        _overlay(tree, layer)
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        faults += describe_faults(error)
    if faults:
        raise SettingsError("\n".join(faults))
    return settings


def redacted_flag(flag: str) -> str:
    """Return a valid flag, `group.name=value`, as it may be shown: with the value replaced if it is a secret."""
    name = flag.partition("=")[0]
    return f"{name}={REDACTED}" if is_secret(name.strip().partition(".")[2]) else flag


def _from_file(file: Path | None) -> Tree:
    if file is None:
        return {}
    try:
        tree = tomllib.loads(file.read_text(encoding="utf-8-sig"))  # Windows editors put a mark at the beginning
    except OSError as error:
        raise SettingsError(f"settings file {file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"settings file {file} is not valid UTF-8: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"settings file {file} is not valid TOML: {error}") from None
    for path in (name for name, field in settings_in(Settings) if is_path(field)):
        group, _, name = path.partition(".")
        table = tree.get(group)
        if isinstance(table, dict) and isinstance(table.get(name), str) and table[name]:
            table[name] = str(file.parent / table[name])
    return _with_flat_properties(tree)


def _from_environment(environment: Mapping[str, str], faults: list[str]) -> Tree:
    tree: Tree = {}
    for variable, value in environment.items():
        if variable.startswith(ENVIRONMENT_PREFIX) and not _OF_KUBERNETES.match(f"{variable}={value}"):
            path = variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
            if path[0] in PASSTHROUGH_GROUPS:
                path = [path[0], ".".join(path[1:]).replace("_", ".")]
            elif len(path) == 1 and path[0] not in Settings.model_fields:
                faults.append(f"{variable}: no such setting; {_TWO_UNDERSCORES}")
                continue
            _put(tree, path, value, faults)
    return tree


def _from_flags(flags: Sequence[str], faults: list[str]) -> Tree:
    tree: Tree = {}
    for flag in flags:
        name, equals, value = flag.partition("=")
        if not equals:
            told = REDACTED if resembles_secret(flag) else repr(flag)
            faults.append(f"{told} is not of the form group.name=value")
            continue
        group, _, rest = name.strip().partition(".")
        _put(tree, [group, rest] if group in PASSTHROUGH_GROUPS else name.strip().split("."), value, faults)
    return tree


def _put(tree: Tree, path: Sequence[str], value: str, faults: list[str]) -> None:
    try:
        required_utf8("".join((*path, value)))
    except ValueError as error:
        faults.append(f"{'.'.join(path)} = {shown(path, value)}: {error}")
        return
    for part in path[:-1]:
        inner = tree.setdefault(part, {})
        if not isinstance(inner, dict):
            faults.append(f"{'.'.join(path)} = {shown(path, value)}: {part} already has a value, so it is not a group")
            return
        tree = inner
    tree[path[-1]] = value


def _overlay(tree: Tree, layer: Tree) -> None:
    for name, value in layer.items():
        if isinstance(value, dict) and isinstance(tree.get(name), dict):
            _overlay(tree[name], value)
        else:
            tree[name] = value


def _with_flat_properties(tree: Tree) -> Tree:
    for group in PASSTHROUGH_GROUPS:
        if isinstance(tree.get(group), dict):
            tree[group] = dict(flattened(tree[group]))
    return tree
