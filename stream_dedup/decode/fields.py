"""Fields of an object by their paths: texts, names and flags, or an error that says what they are instead.

Knows paths and types; knows nothing of what a field means.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from stream_dedup.decode.parse import kind_of
from stream_dedup.decode.reason import Reason, UndecodableError
from stream_dedup.scope import SEPARATOR, name_fault

Fields = Mapping[str, Any]


class NameRule(NamedTuple):
    """What an id or a scope must be.

    Attributes:
        field: which of the two it is.
        reason: why a message cannot be judged if it is not valid.
        most_bytes: maximum length in UTF-8.
        setting: name of the setting that sets the limit; empty if it is fixed.
    """

    field: str
    reason: Reason
    most_bytes: int
    setting: str = ""


class Paths:
    """Where each field is.

    Args:
        paths: dotted, by the name of the field; a field with an empty one is always missing.
    """

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = {name: tuple(path.split(".")) for name, path in paths.items() if path}
        self._outer = {name: path[0] for name, path in self._paths.items() if len(path) == 1}

    def path(self, field: str) -> str:
        """Return the dotted path of a field."""
        return ".".join(self._paths.get(field, ()))

    def value(self, fields: Fields, field: str) -> object:
        """Return the value of a field, None if it is missing."""
        if outer := self._outer.get(field):
            return fields.get(outer)
        return self._inner_value(fields, self._paths.get(field, ()))

    def _inner_value(self, fields: Fields, path: tuple[str, ...]) -> object:
        value: object = fields if path else None
        for part in path:
            if not isinstance(value, Mapping):
                return None
            value = value.get(part)
        return value

    def text(self, fields: Fields, field: str) -> str | None:
        """Return a field that is a string, None if it is missing.

        Raises:
            UndecodableError: it is of another type.
        """
        value = self.value(fields, field)
        if value is None or isinstance(value, str):
            return value
        return self._text_of(field, value)

    def flag(self, fields: Fields, field: str) -> bool:
        """Return a field that is a boolean, False if it is missing.

        Raises:
            UndecodableError: it is of another type.
        """
        value = self.value(fields, field)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self._wrong_type(field, value, "a boolean")

    def name(self, fields: Fields, rule: NameRule) -> str:
        """Return a field that names something, a string or an integer, without blanks around it; empty if missing.

        Args:
            fields: the object.
            rule: which field it is, and what it must be.

        Raises:
            UndecodableError: it is of another type, or not a valid name; see `checked_name`.
        """
        value = self.value(fields, rule.field)
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            value = self._name_of(rule.field, value)
        return checked_name(str(value), rule)

    def _text_of(self, field: str, value: object) -> str:
        """Return a text from a value of a typed format."""
        if not isinstance(value, bytes):
            raise self._wrong_type(field, value, "a string")
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise UndecodableError(Reason.INVALID_UTF8, f"{self.path(field)}: {error}") from None

    def _name_of(self, field: str, value: object) -> str:
        """Return a name from a value of a typed format."""
        if isinstance(value, UUID):
            return str(value)
        if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
            return f"{value:.0f}"
        if isinstance(value, bytes):
            return self._text_of(field, value)
        raise self._wrong_type(field, value, "a string or an integer")

    def _wrong_type(self, field: str, value: object, wanted: str) -> UndecodableError:
        return UndecodableError(Reason.WRONG_TYPE, f"{self.path(field)} is {kind_of(value)}, not {wanted}")


def checked_name(name: str, rule: NameRule) -> str:
    """Return an id or a scope without blanks around it, if it is valid.

    Args:
        name: the id or scope; may be empty or blank.
        rule: which of the two it is, and what it must be.

    Raises:
        UndecodableError: it is too long, cannot be encoded as UTF-8, or contains the separator of scope and id.
    """
    if SEPARATOR not in name:  # `strip` would take it for a blank
        name = name.strip()
    if name != encodable(name):
        raise UndecodableError(rule.reason, f"the {rule.field} contains half a surrogate pair")
    if fault := name_fault(name, rule.most_bytes, rule.setting):
        raise UndecodableError(rule.reason, f"the {rule.field} {fault}")
    return name


def encodable(text: str) -> str:
    """Return a text with lone surrogates replaced, so that it can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text
