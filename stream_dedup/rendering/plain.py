"""Untrusted text on a terminal: as it is, except for what a terminal would interpret.

Knows characters and their width; knows nothing of what a text says.
"""

import re

from rich.cells import cell_len, set_cell_size
from rich.text import Text

# Control characters, including those that begin escape sequences, and those that change the writing direction.
_OBEYED = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_PICTURES = 0x2400  # Unicode's pictures of the first 32 control characters start here


def escape_control(text: str) -> str:
    """Return a text with pictures in place of what a terminal would interpret."""
    return _OBEYED.sub(lambda match: _picture(ord(match[0])), text)


def plain(text: str, style: str = "") -> Text:
    """Return a text that rich shows literally: neither markup nor terminal commands have an effect in it."""
    return Text(escape_control(text), style)


def fitted(text: str, cells: int) -> str:
    """Return a text made harmless, and cut or padded to a width.

    Args:
        text: of any length.
        cells: width; a Chinese character takes two.
    """
    shown = escape_control(text)
    if cell_len(shown) <= cells:
        return set_cell_size(shown, cells)
    cut = set_cell_size(shown, cells - 1)
    # A wide character cut in half leaves a blank.
    return set_cell_size(f"{cut.removesuffix(' ')}…", cells)


def _picture(code: int) -> str:
    return chr(_PICTURES + code) if code < ord(" ") else "�"
