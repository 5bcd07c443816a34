"""What is laid out by the width that there is: tables whose columns give way, some in part and some altogether.

Knows widths, and which columns matter more; knows nothing of what stands in them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from stream_dedup.shown.plain import fitted, plain

_BETWEEN = 3  # cells between two columns


class ByWidth:
    """Something that is built when the width is known.

    Args:
        build: returns it for so many cells.
    """

    def __init__(self, build: Callable[[int], RenderableType]) -> None:
        self._build = build

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what the console is to show."""
        yield self._build(options.max_width)


class Column(NamedTuple):
    """A column.

    Attributes:
        name: its heading, which is never cut.
        number: whether it stands to the right.
        least: cells that its values may be cut to; None where a part of one would mislead.
        rank: among those that may be left out, the highest first; None for one that has to stay.
        tail: cells at the end of a value that stay where it is cut, as ids are often alike but for their ends.
    """

    name: str
    number: bool = False
    least: int | None = None
    rank: int | None = None
    tail: int = 0


class FittingTable:
    """A table that is as wide as its values, or as the terminal: there, values are cut and columns are left out.

    Args:
        columns: from left to right; one at least has to stay.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._rows: list[tuple[list[Text], str]] = []

    def add(self, *cells: Text | str, style: str = "") -> None:
        """Add a row, harmless values one a column."""
        self._rows.append(([Text(cell) if isinstance(cell, str) else cell for cell in cells], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, and which columns it lacks."""
        widths = self._widths(options.max_width)
        yield self._table(widths)
        left_out = [column.name for at, column in enumerate(self._columns) if column.name and at not in widths]
        if left_out:
            yield plain(f"left out on so narrow a terminal: {'; '.join(left_out)}. --json has all", "dim")

    def _widths(self, room: int) -> dict[int, int]:
        """Return the widths of the columns that there is room for, by their numbers."""
        widths = {at: self._natural(at) for at in range(len(self._columns))}
        while _total(least := {at: self._least(at, width) for at, width in widths.items()}) > room:
            ranks = {at: rank for at in widths if (rank := self._columns[at].rank) is not None}
            if not ranks:
                return least
            del widths[max(ranks, key=lambda at: ranks[at])]
        while (excess := _total(widths) - room) > 0:
            # The widest gives way, down to the next that could.
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
                overflow="ellipsis",  # where not even the last column has room
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
    # Of a character that lies across the edge a blank would be left.
    end = set_cell_size(text[::-1], tail)[::-1].lstrip()
    begin = fitted(text, width - cell_len(end)).rstrip()
    return Text(set_cell_size(f"{begin}{end}", width), cell.style)
