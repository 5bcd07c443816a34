"""Whether what a caller hands in is of the types that it has to be, told in words where it is not.

Knows types and values as messages show them; knows nothing of what is done with them.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

_LONGEST = 80  # characters of a value


def check_texts(of: object, names: Sequence[str]) -> None:
    """Check that attributes are texts.

    Args:
        of: what has them, and an attribute `id`.
        names: of the attributes.

    Raises:
        TypeError: one is none.
    """
    for name in names:
        if not isinstance(getattr(of, name), str):
            raise TypeError(f"{_field(of, name)}: a text is wanted, a str")


def check_type(of: object, name: str, kind: type, wanted: str) -> None:
    """Check that an attribute is None or of a type.

    Args:
        of: what has it, and an attribute `id`.
        name: of the attribute.
        kind: the type.
        wanted: the same in words.

    Raises:
        TypeError: it is neither.
    """
    value = getattr(of, name)
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{_field(of, name)}: {wanted} is wanted, or None")


def check_whole(of: object, name: str, wanted: str) -> None:
    """Check that an attribute is None or a whole number, Python's or NumPy's; see `check_type`."""
    if type(getattr(of, name)) is not int:
        check_type(of, name, Integral, wanted)


def check_encodable(of: object, names: Sequence[str]) -> None:
    """Check that attributes can be UTF-8.

    Args:
        of: what has them, and an attribute `id`.
        names: of the attributes, which are texts.

    Raises:
        ValueError: one cannot.
    """
    for name in names:
        try:
            getattr(of, name).encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{_field(of, name)} cannot be UTF-8: {error.reason}") from None


def check_items(items: object, kinds: tuple[type, ...], wanted: str) -> None:
    """Check that items are a sequence of some types.

    Args:
        items: whatever came.
        kinds: the types.
        wanted: one of them in words.

    Raises:
        TypeError: it is no sequence, or an item is of none of the types.
    """
    if isinstance(items, str | bytes) or not isinstance(items, Sequence):
        several = (
            "put a single one into a list" if isinstance(items, kinds) else "make a list of what can be gone through"
        )
        raise TypeError(f"{shown(items)}: a sequence is wanted, of which each is {wanted}; {several}")
    for place, item in enumerate(items):
        if not isinstance(item, kinds):
            raise TypeError(f"item {place} is {shown(item)}: {wanted} is wanted")


def shown(value: Any) -> str:  # noqa: ANN401  # whatever came
    """Return a value as a message shows it, not too long, with its type."""
    return f"{_short(value)}, of the type {type(value).__name__}"


def _short(value: Any) -> str:  # noqa: ANN401  # whatever came
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _field(of: Any, name: str) -> str:  # noqa: ANN401  # whatever has the attribute
    """Return which field of which article or withdrawal it is, and its value."""
    kind = type(of).__name__.lower()
    which = f"an {kind}" if name == "id" else f"the {kind} {_short(of.id)}"
    return f"{name} of {which} is {shown(getattr(of, name))}"
