"""Text files: their lines, and their encoding.

Knows UTF-8; knows nothing of what the lines mean.
"""

from pathlib import Path

# Advice on a file in another encoding.
TO_UTF8 = "convert GBK with iconv -f gb18030 -t utf-8, UTF-16 with iconv -f utf-16 -t utf-8"


def utf8_lines(path: Path) -> list[str]:
    """Return the lines of a file in UTF-8, without the mark that Windows editors put at the beginning.

    Raises:
        ValueError: it is not valid UTF-8; the message names the file.
    """
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not valid UTF-8: {error}") from None
