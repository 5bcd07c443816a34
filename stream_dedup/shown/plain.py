"""Text from outside on a terminal: as it is, but for what a terminal would obey.

Knows characters and their width; knows nothing of what a text says.
"""

import re

from rich.cells import cell_len, set_cell_size
from rich.text import Text

# Control characters, among them those that begin escape sequences, and those that turn the direction of writing.
_OBEYED = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_PICTURES = 0x2400  # where Unicode has a picture of each of the first 32 control characters


def harmless(text: str) -> str:
    """Return a text with pictures in the place of what a terminal would obey."""
    return _OBEYED.sub(lambda match: _picture(ord(match[0])), text)


def plain(text: str, style: str = "") -> Text:
    """Return a text that rich shows as it stands: neither its markup nor a terminal's commands mean anything in it."""
    return Text(harmless(text), style)


def fitted(text: str, cells: int) -> str:
    """Return a harmless text cut or filled up to a width.

    Args:
        text: of any length.
        cells: width; a Chinese character takes two.
    """
    shown = harmless(text)
    if cell_len(shown) <= cells:
        return set_cell_size(shown, cells)
    cut = set_cell_size(shown, cells - 1)
    # Of a character that lies across the edge a blank is left.
    return set_cell_size(f"{cut.removesuffix(' ')}…", cells)


def _picture(code: int) -> str:
    return chr(_PICTURES + code) if code < ord(" ") else "�"
