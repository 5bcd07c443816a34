"""How the values of settings are written and checked: lists, tables, paths, patterns, URLs.

Knows forms of values; knows nothing of which settings there are.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args
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

PASSED_ON = ("kafka", "registry")  # groups of properties that are others', whose names hold dots
# Kafka refuses a dot alone, and two.
TOPIC = r"^(?:[a-zA-Z0-9._-]{3,249}|[a-zA-Z0-9._-]?[a-zA-Z0-9_-]|[a-zA-Z0-9_-]\.)$"


class Group(BaseModel):
    """Settings that belong together."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_no_truths(cls, value: object, info: ValidationInfo) -> object:
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and {int, float} & {kind, *get_args(kind)}:
            raise ValueError("a number is wanted, not true or false")
        return value


@dataclass(frozen=True, slots=True)
class SomeOf:
    """Marks a table that holds some settings of a group, under their names there."""

    group: type[Group]


class FaultsBelowError(ValueError):
    """Settings in such a table are wrong.

    Args:
        path: names of the table.
        faults: what is wrong in it.
    """

    def __init__(self, path: tuple[str, ...], faults: ValidationError) -> None:
        super().__init__(f"{'.'.join(path)}: {faults}")
        self.path = path
        self.faults = faults


def group_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the group that a field is, or some settings of which it holds; None for a setting."""
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((mark.group for mark in field.metadata if isinstance(mark, SomeOf)), None)


class FileRelative:
    """Marks a path which, where a settings file names it, is relative to that file."""


def is_path(field: FieldInfo) -> bool:
    """Tell whether a setting is a path, or none."""
    of_parts = (getattr(part, "__metadata__", ()) for part in get_args(field.annotation))
    return any(isinstance(mark, FileRelative) for marks in (field.metadata, *of_parts) for mark in marks)


_Value = TypeVar("_Value")


def no_empty_path(value: _Value) -> _Value:
    """Return a value that is to be a path: a variable that is not set would be the directory where one is.

    Raises:
        ValueError: it is empty.
    """
    if value == "":
        raise ValueError("a path is wanted; `.` is the directory where you are")
    return value


def in_utf_8(value: _Value) -> _Value:
    """Return a value that is UTF-8 if it is text: other bytes fit into no JSON, no log and no client of Kafka.

    Raises:
        ValueError: it is not: Python has such bytes of the system as lone surrogates.
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("it is no UTF-8") from None
    return value


SettingPath = Annotated[Path, BeforeValidator(no_empty_path), BeforeValidator(in_utf_8), FileRelative()]


def unit(name: str) -> dict[str, JsonValue]:
    """Return what tells the unit of a setting, for the reference page."""
    return {"unit": name}


def form(words: str) -> dict[str, JsonValue]:
    """Return what tells in words which texts the pattern of a setting allows."""
    return {"form": words}


TOPIC_FORM = form("1 to 249 characters out of a-z, A-Z, 0-9, dot, underscore and hyphen, and neither . nor ..")


def form_of(field: FieldInfo) -> str:
    """Return in words which texts the pattern of a setting allows, empty where nothing is said."""
    extra = field.json_schema_extra
    return str(extra.get("form", "")) if isinstance(extra, dict) else ""


def split_commas(value: object) -> object:
    """Take `a, b` for a list: the environment and flags hold text only."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def flattened(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Undo what TOML makes of unquoted dots: `security.protocol = ...` is one property, not a table."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def split_pairs(value: object) -> object:
    """Take `a = b, c = d` for a table: the environment holds text only."""
    if isinstance(value, Mapping):
        return dict(flattened(value))
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    for name, equals, _ in pairs:
        if not equals:
            raise ValueError(f"{name.strip()!r} is no pair: write name=value, name=value")
    return {name.strip(): item.strip() for name, _, item in pairs}


def as_text(value: object) -> object:
    """Take properties of a client as text, as the environment and flags hold them; the items of a list with commas."""
    if not isinstance(value, Mapping):
        return value
    return {name: _as_property(item) for name, item in value.items()}


def _as_property(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(_as_property, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_property_names(names: Iterable[str]) -> None:
    """Check that a client's properties have names: a value for the whole group has none.

    Raises:
        ValueError: one has none.
    """
    for name in names:
        if not name.strip():
            raise ValueError(f"{name!r} is no name of a property")


def check_pattern(pattern: str) -> None:
    """Check a regular expression.

    Raises:
        ValueError: it is none.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


def check_url(setting: str, url: str, credentials: str) -> None:
    """Check that a URL is one of HTTP and holds no credentials.

    Args:
        setting: its name.
        url: its value.
        credentials: where these belong.

    Raises:
        ValueError: it is not.
    """
    # The url itself may hold what must not be shown.
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{setting} must begin with http:// or https://")
    if "@" in urlsplit(url).netloc:
        raise ValueError(f"{setting} holds credentials: these belong into {credentials}")
