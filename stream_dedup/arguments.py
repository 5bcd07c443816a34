"""Checks of the types of what callers pass in, with messages that name the value and what is expected.

Knows types, and how messages show values; knows nothing of what the values are for.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

_LONGEST = 80  # characters of a value


def check_texts(of: object, names: Sequence[str]) -> None:
    """Check that attributes are strings; one of a subclass, such as an enumeration's, becomes a plain one.

    Args:
        of: the object, which may have an attribute `id`.
        names: of the attributes.

    Raises:
        TypeError: one is not a string.
    """
    for name in names:
        value = getattr(of, name)
        if type(value) is str:
            continue
        if not isinstance(value, str):
            raise TypeError(f"{_field(of, name)}: it must be a string (str)")
        object.__setattr__(of, name, str.__str__(value))


def check_type(of: object, name: str, kind: type, wanted: str) -> None:
    """Check that an attribute is None or of a type.

    Args:
        of: the object, which may have an attribute `id`.
        name: of the attribute.
        kind: the type.
        wanted: the type in words.

    Raises:
        TypeError: it is neither.
    """
    value = getattr(of, name)
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{_field(of, name)}: it must be {wanted} or None")


def check_whole(of: object, name: str, wanted: str, *, optional: bool = True) -> None:
    """Check that an attribute is an integer; NumPy's becomes Python's.

    Args:
        of: the object, which may have an attribute `id`.
        name: of the attribute.
        wanted: what it must be, in words.
        optional: whether it may be None.

    Raises:
        TypeError: it is neither.
    """
    value = getattr(of, name)
    if type(value) is int or (optional and value is None):
        return
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{_field(of, name)}: it must be {wanted}{' or None' if optional else ''}")
    object.__setattr__(of, name, int(value))


def check_encodable(of: object, names: Sequence[str]) -> None:
    """Check that attributes can be encoded as UTF-8.

    Args:
        of: the object, which may have an attribute `id`.
        names: of the attributes, which are strings.

    Raises:
        ValueError: one cannot.
    """
    for name in names:
        try:
            getattr(of, name).encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{_field(of, name)}: it cannot be encoded as UTF-8: {error.reason}") from None


def check_items(items: object, kinds: tuple[type, ...], wanted: str) -> None:
    """Check that an argument is a sequence whose items have one of some types.

    Args:
        items: the argument.
        kinds: the types.
        wanted: what an item must be, in words.

    Raises:
        TypeError: it is not a sequence, or an item has none of the types.
    """
    if isinstance(items, str | bytes) or not isinstance(items, Sequence):
        several = "wrap a single item in a list" if isinstance(items, kinds) else "turn an iterable into a list first"
        raise TypeError(f"{shown(items)}: expected a sequence in which each item is {wanted}; {several}")
    for place, item in enumerate(items):
        if not isinstance(item, kinds):
            raise TypeError(f"item {place} is {shown(item)}: {wanted} is expected")


def shown(value: Any) -> str:  # noqa: ANN401  # whatever came
    """Return a value as messages show it: shortened, with its type."""
    return f"{_short(value)}, of type {type(value).__name__}"


def _short(value: Any) -> str:  # noqa: ANN401  # whatever came
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _field(of: Any, name: str) -> str:  # noqa: ANN401  # whatever has the attribute
    """Return the name and value of a field, and what it belongs to: the article or withdrawal by its id."""
    kind = type(of).__name__.lower()
    which = f"an {kind}" if name == "id" or not hasattr(of, "id") else f"the {kind} {_short(of.id)}"
    return f"{name} of {which} is {shown(getattr(of, name))}"
