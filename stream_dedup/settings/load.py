"""Where settings come from: defaults < TOML file < environment < flags.

Knows precedence and how a fault is reported; knows no single setting.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from stream_dedup.settings.kinds import FileRelative, flattened
from stream_dedup.settings.redaction import is_secret
from stream_dedup.settings.schema import Settings

ENVIRONMENT_PREFIX = "STREAM_DEDUP_"
_PASSED_ON = ("kafka", "registry")  # groups of properties that are others', whose names hold dots
# What Kubernetes puts into each container about a service named stream-dedup.
_OF_KUBERNETES = re.compile(r"(?<!_)_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)?)$")
Tree = dict[str, Any]


class SettingsError(ValueError):
    """Settings that cannot be used: a line a fault, each with the setting, its value and what is allowed."""


def load_settings(
    file: Path | None = None, environment: Mapping[str, str] | None = None, flags: Sequence[str] = ()
) -> Settings:
    """Return the effective settings.

    Args:
        file: TOML, a table a group. Relative paths in it are relative to it.
        environment: `STREAM_DEDUP_GROUP__NAME=value`; for librdkafka's properties `STREAM_DEDUP_KAFKA__SASL_PASSWORD`
            stands for `sasl.password`; so for the registry's. Other variables are ignored.
        flags: `group.name=value`, the last word.

    Raises:
        SettingsError: something is unknown, of the wrong type or out of bounds; all faults are listed.
    """
    tree: Tree = {}
    for layer in (_from_file(file), _from_environment(environment or {}), _from_flags(flags)):
        _overlay(tree, layer)
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError("\n".join(describe_faults(error))) from None


def _from_file(file: Path | None) -> Tree:
    if file is None:
        return {}
    try:
        tree = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"settings file {file}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {file} is not TOML: {error}") from None
    for group, name in _path_settings():
        table = tree.get(group)
        if isinstance(table, dict) and isinstance(table.get(name), str):
            table[name] = str(file.parent / table[name])
    return _with_flat_properties(tree)


def _path_settings() -> Iterator[tuple[str, str]]:
    for group, group_field in Settings.model_fields.items():
        kind = group_field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            for name, field in kind.model_fields.items():
                if FileRelative.__name__ in repr(field):
                    yield group, name


def _from_environment(environment: Mapping[str, str]) -> Tree:
    tree: Tree = {}
    for variable, value in environment.items():
        if variable.startswith(ENVIRONMENT_PREFIX) and not _OF_KUBERNETES.search(variable):
            path = variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
            if path[0] in _PASSED_ON:
                path = [path[0], ".".join(path[1:]).replace("_", ".")]
            _put(tree, path, value)
    return tree


def _from_flags(flags: Sequence[str]) -> Tree:
    tree: Tree = {}
    for flag in flags:
        name, equals, value = flag.partition("=")
        if not equals:
            raise SettingsError(f"{flag!r} is not of the form group.name=value")
        group, _, rest = name.strip().partition(".")
        _put(tree, [group, rest] if group in _PASSED_ON else name.strip().split("."), value)
    return tree


def _put(tree: Tree, path: Sequence[str], value: str) -> None:
    for part in path[:-1]:
        inner = tree.setdefault(part, {})
        if not isinstance(inner, dict):
            raise SettingsError(f"{'.'.join(path)}: {part} is a setting, not a group")
        tree = inner
    tree[path[-1]] = value


def _overlay(tree: Tree, layer: Tree) -> None:
    for name, value in layer.items():
        if isinstance(value, dict) and isinstance(tree.get(name), dict):
            _overlay(tree[name], value)
        else:
            tree[name] = value


def _with_flat_properties(tree: Tree) -> Tree:
    for group in _PASSED_ON:
        if isinstance(tree.get(group), dict):
            tree[group] = dict(flattened(tree[group]))
    return tree


def describe_faults(error: ValidationError) -> Iterator[str]:
    """Yield a line a fault: the setting, its value, what is wrong, and what the setting is for."""
    for fault in error.errors(include_url=False):
        path = [str(part) for part in fault["loc"]]
        if fault["type"] == "extra_forbidden":
            yield f"{'.'.join(path)}: no such setting{_hint(path)}"
        else:
            reason = fault["msg"].removeprefix("Value error, ")  # pydantic's name for a fault that we found
            yield f"{'.'.join(path) or 'settings'}{_value(path, fault)}: {reason}{_purpose(path)}"


def _value(path: Sequence[str], fault: ErrorDetails) -> str:
    if not path or isinstance(fault["input"], (dict, BaseModel)):
        return ""
    return "" if is_secret(path[-1]) else f" = {fault['input']!r}"


def _group(path: Sequence[str]) -> type[BaseModel] | None:
    model: type[BaseModel] = Settings
    for part in path:
        field = model.model_fields.get(part)
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            return None
        model = field.annotation
    return model


def _hint(path: Sequence[str]) -> str:
    group = _group(path[:-1])
    if group is None:
        return ""
    near = difflib.get_close_matches(path[-1], list(group.model_fields), n=1)
    allowed = ", ".join(group.model_fields)
    return f"; did you mean {'.'.join([*path[:-1], near[0]])}?" if near else f"; there are: {allowed}"


def _purpose(path: Sequence[str]) -> str:
    for stop in range(len(path), 0, -1):
        group = _group(path[: stop - 1])
        if group is not None and path[stop - 1] in group.model_fields:
            text = group.model_fields[path[stop - 1]].description
            return f" ({text.rstrip('.')})" if text else ""
    return ""
