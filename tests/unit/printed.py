"""What a terminal without colours shows.

Knows the terminal; knows nothing of what is shown.
"""

from io import StringIO

from rich.console import Console, RenderableType


def printed(shown: RenderableType, width: int = 160) -> str:
    """Return what is printed in a terminal this wide."""
    console = Console(file=StringIO(), width=width, color_system=None)
    console.print(shown)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()
