"""How the values of settings are written and checked: lists, tables, paths, patterns, URLs.

Knows forms of values; knows nothing of which settings there are.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, JsonValue

TOPIC = r"^[a-zA-Z0-9._-]{1,249}$"


class Group(BaseModel):
    """Settings that belong together."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class FileRelative:
    """Marks a path which, where a settings file names it, is relative to that file."""


SettingPath = Annotated[Path, FileRelative()]


def unit(name: str) -> dict[str, JsonValue]:
    """Return what tells the unit of a setting, for the reference page."""
    return {"unit": name}


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
    return {name.strip(): item.strip() for name, _, item in pairs}


def as_text(value: object) -> object:
    """Take properties of a client as text, as the environment and flags hold them."""
    if not isinstance(value, Mapping):
        return value
    return {name: str(item).lower() if isinstance(item, bool) else str(item) for name, item in value.items()}


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
