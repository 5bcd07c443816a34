"""Layout by the available width: tables whose columns are narrowed or left out where there is no room.

Knows widths, and which columns matter more; knows nothing of what is in them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from stream_dedup.rendering.plain import fitted, plain

_BETWEEN = 3  # cells between two columns


class ByWidth:
    """Something that is built once the width is known.

    Args:
        build: returns it for a width in cells.
    """

    def __init__(self, build: Callable[[int], RenderableType]) -> None:
        self._build = build

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what the console shows."""
        yield self._build(options.max_width)


class Column(NamedTuple):
    """A column.

    Attributes:
        name: its heading, which is never cut.
        number: whether it is right-aligned.
        least: cells that its values may be cut to; None if part of a value would mislead.
        rank: columns may be left out, the highest rank first; None for one that must stay.
        tail: cells kept at the end of a value that is cut, as ids often differ only at the end.
    """

    name: str
    number: bool = False
    least: int | None = None
    rank: int | None = None
    tail: int = 0


class FittingTable:
    """A table that is as wide as its values or, if less, the terminal: then values are cut and columns left out.

    Args:
        columns: from left to right; at least one must stay.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._rows: list[tuple[list[Text], str]] = []

    def add(self, *cells: Text | str, style: str = "") -> None:
        """Add a row: one value per column, already harmless."""
        self._rows.append(([Text(cell) if isinstance(cell, str) else cell for cell in cells], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, and a line that names the columns left out."""
        widths = self._widths(options.max_width)
        yield self._table(widths)
        left_out = [column.name for at, column in enumerate(self._columns) if column.name and at not in widths]
        if left_out:
            yield plain(f"left out, as the terminal is too narrow: {'; '.join(left_out)}. --json has all", "dim")

    def _widths(self, room: int) -> dict[int, int]:
        """Return the widths of the columns that there is room for, by column number."""
        widths = {at: self._natural(at) for at in range(len(self._columns))}
        while _total(least := {at: self._least(at, width) for at, width in widths.items()}) > room:
            ranks = {at: rank for at in widths if (rank := self._columns[at].rank) is not None}
            if not ranks:
                return least
            del widths[max(ranks, key=lambda at: ranks[at])]
        while (excess := _total(widths) - room) > 0:
            # The widest is narrowed, down to the next widest that can be.
            first, *others = sorted((at for at in widths if widths[at] > least[at]), key=lambda at: -widths[at])
            floor = max(least[first], widths[others[0]] - 1 if others else 0)
            widths[first] = max(floor, widths[first] - excess)
        return widths

    def _natural(self, at: int) -> int:
        return max(cell_len(self._columns[at].name), *(cell_len(cells[at].plain) for cells, _ in self._rows), 1)

    def _least(self, at: int, natural: int) -> int:
        column = self._columns[at]
        return natural if column.least is None else min(natural, max(column.least, cell_len(column.name)))

    def _table(self, widths: dict[int, int]) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for at, width in widths.items():
            column = self._columns[at]
            table.add_column(
                plain(column.name),
                justify="right" if column.number else "left",
                width=width,
                no_wrap=True,
                overflow="ellipsis",  # where there is no room for even the last column
            )
        for cells, style in self._rows:
            table.add_row(
                *(_cut(cells[at], width, self._columns[at].tail) for at, width in widths.items()), style=style
            )
        return table


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + _BETWEEN * (len(widths) - 1)


def _cut(cell: Text, width: int, tail: int) -> Text:
    text = cell.plain
    if cell_len(text) <= width:
        return cell
    # A wide character cut in half would leave a blank.
    end = set_cell_size(text[::-1], tail)[::-1].lstrip()
    begin = fitted(text, width - cell_len(end)).rstrip()
    return Text(set_cell_size(f"{begin}{end}", width), cell.style)
