"""How the values of settings are written and checked: lists, tables, paths, patterns, URLs.

Knows forms of values; knows nothing of which settings there are.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo

from stream_dedup.picklable import PicklableError

PASSTHROUGH_GROUPS = ("kafka", "registry")  # groups of other libraries' properties, whose names contain dots
# Kafka rejects the names `.` and `..`.
TOPIC = r"^(?:[a-zA-Z0-9._-]{3,249}|[a-zA-Z0-9._-]?[a-zA-Z0-9_-]|[a-zA-Z0-9_-]\.)$"
# An IPv6 address has at least two colons: one is before a port, which has a setting of its own.
HOST = r"^(?:[^\s/:\[\]]+|[0-9a-fA-F]*:[0-9a-fA-F.]*:[0-9a-fA-F:.]*(?:%[a-zA-Z0-9]+)?)$"


class Group(BaseModel):
    """Settings that belong together."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_no_truths(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, bool) and _number_kinds(cls.model_fields[info.field_name or ""]):
            raise ValueError("it must be a number, not true or false")
        return value


@dataclass(frozen=True, slots=True)
class SubsetOf:
    """Marks a table that contains some of a group's settings, under the names that they have there."""

    group: type[Group]


class NestedSettingsError(PicklableError, ValueError):
    """Settings in such a table are invalid.

    Args:
        path: parts of the table's name.
        faults: what is wrong in it.
    """

    def __init__(self, path: tuple[str, ...], faults: ValidationError) -> None:
        super().__init__(f"{'.'.join(path)}: {faults}")
        self.path = path
        self.faults = faults


def group_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the group that a field is, or that it contains settings of; None for a setting."""
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((mark.group for mark in field.metadata if isinstance(mark, SubsetOf)), None)


def settings_in(group: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield each setting of a group and of the groups in it, with its full name."""
    for name, field in group.model_fields.items():
        inner = group_of(field)
        if inner is None:
            yield prefix + name, field
        else:
            yield from settings_in(inner, f"{prefix}{name}.")


def choices_of(kind: Any) -> list[str]:  # noqa: ANN401  # whatever a field's annotation may be
    """Return the values that a type of setting, or each item of a list, may have; empty if they cannot be listed."""
    if get_origin(kind) is list:
        return choices_of(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return [str(choice) for choice in get_args(kind)]
    if kind is bool:
        return ["true", "false"]
    return [str(member) for member in kind] if isinstance(kind, type) and issubclass(kind, StrEnum) else []


class FileRelative:
    """Marks a path that, if a settings file contains it, is relative to that file."""


def is_path(field: FieldInfo) -> bool:
    """Tell whether a setting is a path, or a path or None."""
    of_parts = (getattr(part, "__metadata__", ()) for part in get_args(field.annotation))
    return any(isinstance(mark, FileRelative) for marks in (field.metadata, *of_parts) for mark in marks)


_Value = TypeVar("_Value")


def required_path(value: _Value) -> _Value:
    """Return the value of a path, unless it is empty: an unset shell variable would mean the current directory.

    Raises:
        ValueError: it is empty, or the system takes none like it.
    """
    if value == "":
        raise ValueError("the path is empty; for the current directory, write `.`")
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a path cannot contain the character U+0000")
    return value


def required_utf8(value: _Value) -> _Value:
    """Return a value that is UTF-8 if it is text: JSON, logs and Kafka clients take no other bytes.

    Raises:
        ValueError: it is not; Python represents other bytes from the system as lone surrogates.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("it is not valid UTF-8") from None
    return value


SettingPath = Annotated[Path, BeforeValidator(required_path), BeforeValidator(required_utf8), FileRelative()]


def unit(name: str) -> dict[str, JsonValue]:
    """Return the unit of a setting as its schema holds it, for the reference page."""
    return {"unit": name}


def form(words: str) -> dict[str, JsonValue]:
    """Return a description of what the pattern of a setting allows, as its schema holds it."""
    return {"form": words}


TOPIC_FORM = form("1 to 249 characters out of a-z, A-Z, 0-9, dot, underscore and hyphen, and neither . nor ..")
HOST_FORM = form("a host's name or an IP address without brackets, and without a port")


def told_of(field: FieldInfo, what: str) -> str:
    """Return the `unit` of a setting, or the `form` that its pattern allows; empty if it has none."""
    extra = field.json_schema_extra
    return str(extra.get(what, "")) if isinstance(extra, dict) else ""


_BOUNDS = {
    "ge": "at least",
    "gt": "more than",
    "le": "at most",
    "lt": "less than",
    "min_length": "length at least",
}


def bounds_of(field: FieldInfo) -> Iterator[tuple[str, object]]:
    """Yield the bounds of a setting, each in words and as a value: `("at least", 1)`."""
    for rule in field.metadata:
        for name, words in _BOUNDS.items():
            if (bound := getattr(rule, name, None)) is not None:
                yield words, bound


def _number_kinds(field: FieldInfo) -> set[type]:
    """Return which of int and float a setting may be."""
    return {int, float} & {field.annotation, *get_args(field.annotation)}


def number_wanted(field: FieldInfo) -> str:
    """Return what number a setting must be, in words; empty if it need not be one."""
    kinds = _number_kinds(field)
    if not kinds:
        return ""
    bounds = " and ".join(f"{words} {bound}" for words, bound in bounds_of(field))
    return f"a {'' if float in kinds else 'whole '}number{bounds and f', {bounds}'}"


def split_commas(value: object) -> object:
    """Treat `a, b` as a list: the environment and flags contain only text."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def flattened(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Undo what TOML makes of unquoted dots: `security.protocol = ...` is one property, not a table."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def split_pairs(value: object) -> object:
    """Treat `a = b, c = d` as a table: the environment contains only text."""
    if isinstance(value, Mapping):
        return dict(flattened(value))
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    for name, equals, _ in pairs:
        if not equals:
            raise ValueError(f"{name.strip()!r} is not a pair: write name=value, name=value")
    return {name.strip(): item.strip() for name, _, item in pairs}


def as_text(value: object) -> object:
    """Turn a client's properties into text, as in the environment and flags; list items are joined with commas."""
    if not isinstance(value, Mapping):
        return value
    return {name: as_property(item) for name, item in value.items()}


def as_property(value: object) -> str:
    """Return a value as text, as in the environment and flags."""
    if isinstance(value, list):
        return ",".join(map(as_property, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_property_names(names: Iterable[str], example: str) -> None:
    """Check that a client's properties have names: a value for the whole group has none.

    Args:
        names: of the properties.
        example: a property as it is set, for the message.

    Raises:
        ValueError: one has none.
    """
    if not all(map(str.strip, names)):
        raise ValueError(f"a value is set without the name of its property: write it as in {example}")


def check_pattern(pattern: str) -> None:
    """Check a regular expression.

    Raises:
        ValueError: it is not valid.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a valid regular expression: {error}") from None


def check_url(setting: str, url: str, credentials: str) -> None:
    """Check that a URL is an HTTP URL without credentials.

    Args:
        setting: its name.
        url: its value.
        credentials: the setting or variable where credentials belong.

    Raises:
        ValueError: it is not.
    """
    # The messages leave out the URL, which may contain secrets.
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{setting} must begin with http:// or https://")
    if "@" in re.split("[/?#]", url)[2]:
        raise ValueError(f"{setting} contains credentials: move them to {credentials}")
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        named = False
    if not named:
        raise ValueError(f"{setting} names no host, or no valid port: write it as in http://host:8081")
