"""Messages about invalid settings: a line each with the setting, its value, what is allowed and similar names.

Knows pydantic's errors; knows nothing of where values come from.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from stream_dedup.settings.kinds import (
    PASSTHROUGH_GROUPS,
    NestedSettingsError,
    group_of,
    number_wanted,
    settings_in,
    told_of,
)
from stream_dedup.settings.redaction import REDACTED, resembles_secret
from stream_dedup.settings.schema import Settings

_NEAR = 0.75  # similarity of whole names, by difflib: less is coincidence
_MOST_NEAR = 3  # names suggested
_NO_TABLE = ("model_type", "dict_type")  # pydantic's errors for a value where a table is expected
_NO_NUMBER = ("int_", "float_", "finite_", "greater_", "less_")  # how pydantic's errors about numbers begin
_Path = tuple[str, ...]


def describe_faults(error: ValidationError) -> Iterator[str]:
    """Yield one line per fault: the setting, its value, what is wrong, and what the setting is for."""
    yield from _described((), error)


def _described(prefix: _Path, error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        path = (*prefix, *map(str, fault["loc"]))
        below = fault.get("ctx", {}).get("error")
        if isinstance(below, NestedSettingsError):
            yield from _described(below.path, below.faults)
        elif fault["type"] == "extra_forbidden":
            yield from _unknown(path, fault["input"])
        elif fault["type"] == "value_error" and _group(path) is not None:
            yield _reason(path, fault)  # of a check of several settings, which names them
        else:
            yield f"{'.'.join(path)}{_value(path, fault)}: {_reason(path, fault)}{_purpose(path)}"


def shown(names: Sequence[str], value: object) -> str:
    """Return a value as it is written, or a placeholder if a part of its name suggests a secret.

    Args:
        names: parts of the setting's name.
        value: of the setting.
    """
    if any(map(resembles_secret, names)):
        return REDACTED
    return str(value).lower() if isinstance(value, bool) else repr(value)


def in_our_words(message: str) -> str:
    """Return a message of pydantic as a part of a sentence that began with the value."""
    message = message.removeprefix("Value error, ")  # its prefix for errors of our own validators
    return re.sub(r"^(Input|List|String) should ", "it must ", message)


def _unknown(path: _Path, value: object) -> Iterator[str]:
    """Yield a line for each setting that does not exist: a group that does not exist may contain many."""
    leaves = list(_leaves(path, value))
    for names, leaf in leaves:
        yield f"{'.'.join(names)} = {shown(names, leaf)}: no such setting{_hint(names)}"
    if not leaves:
        yield f"{'.'.join(path)}: no such group{_hint(path)}"


def _leaves(path: _Path, value: object) -> Iterator[tuple[_Path, object]]:
    """Yield the values in tables, and in lists of tables, with their full names."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves((*path, str(name)), inner)
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for place, item in enumerate(value):
            yield from _leaves((*path, str(place)), item)
    else:
        yield path, value


def _value(path: _Path, fault: ErrorDetails) -> str:
    if not path or isinstance(fault["input"], (dict, BaseModel)):
        return ""
    # In place of a table there may be a name and its value in one text, such as "token=...".
    within = (str(fault["input"]),) if fault["type"] in _NO_TABLE else ()
    return f" = {shown((*path, *within), fault['input'])}"


def _reason(path: _Path, fault: ErrorDetails) -> str:
    field = _field(path)
    if fault["type"] == "string_pattern_mismatch" and field is not None and (words := told_of(field, "form")):
        return f"it must be {words}"
    if fault["type"].startswith(_NO_NUMBER) and field is not None and (words := number_wanted(field)):
        return f"it must be {words}"
    if fault["type"].startswith("bool_"):
        return "it must be true or false"
    if fault["type"] in _NO_TABLE:
        group = _group(path)
        inside = (
            f" with any of {', '.join('.'.join([*path, name]) for name in group.model_fields)}"
            if group is not None
            else ""
        )
        return f"it must be a table{inside}"
    return in_our_words(fault["msg"])


def _field(path: _Path) -> FieldInfo | None:
    group = _group(path[:-1]) if path else None
    return group.model_fields.get(path[-1]) if group is not None else None


def _group(path: _Path) -> type[BaseModel] | None:
    model: type[BaseModel] = Settings
    for part in path:
        field = model.model_fields.get(part)
        group = group_of(field) if field is not None else None
        if group is None:
            return None
        model = group
    return model


def _hint(path: _Path) -> str:
    near = _near(path)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    depth = next(depth for depth in range(len(path) - 1, -1, -1) if _group(path[:depth]) is not None)
    group = _group(path[:depth]) or Settings
    return f"; available{' groups' if group is Settings else ''}: {', '.join(group.model_fields)}"


def _near(path: _Path) -> list[str]:
    """Return the names that may have been meant, the likeliest first."""
    group, known = _group(path[:-1]), [name for name, _ in settings_in(Settings)]
    if group is not None and (inside := get_close_matches(path[-1], group.model_fields, n=1)):
        return [".".join([*path[:-1], *inside])]
    if path[0] not in Settings.model_fields and (groups := get_close_matches(path[0], Settings.model_fields, n=1)):
        meant = ".".join([*groups, *path[1:]])
        return [meant] if groups[0] in PASSTHROUGH_GROUPS else get_close_matches(meant, known, n=1) or groups
    elsewhere = [name for name in known if name.rpartition(".")[2] == path[-1]]
    return elsewhere[:_MOST_NEAR] or get_close_matches(".".join(path), known, n=_MOST_NEAR, cutoff=_NEAR)


def _purpose(path: _Path) -> str:
    for stop in range(len(path), 0, -1):
        field = _field(path[:stop])
        if field is not None:
            return f" ({field.description.rstrip('.')})" if field.description else ""
    return ""
