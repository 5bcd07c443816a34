"""Columns whose names contain dots: such a name is a path into nested objects.

Knows names; knows nothing of formats.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import cast


class ColumnsError(Exception):
    """Columns conflict. The message says which."""


def check_names(names: Iterable[str]) -> None:
    """Check that no two columns have the same name.

    Raises:
        ColumnsError: two have.
    """
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ColumnsError(f"several columns are called {', '.join(map(repr, twice))}")


def check_paths(names: Collection[str]) -> None:
    """Check that no column's name is a path that leads to another column.

    Raises:
        ColumnsError: one is.
    """
    for name in names:
        parts = name.split(".")
        for inner in (".".join(parts[:count]) for count in range(1, len(parts))):
            if inner in names:
                raise ColumnsError(f"the columns {inner!r} and {name!r} exclude each other: a dot means a nested field")


def nested(values: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return values, by names whose paths were checked, as a nested object."""
    row: dict[str, object] = {}
    for name, value in values:
        *outer, last = name.split(".")
        fields = row
        for part in outer:
            fields = cast("dict[str, object]", fields.setdefault(part, {}))
        fields[last] = value
    return row
