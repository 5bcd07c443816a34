"""How much may be asked for at once, by which names, and how much of an id comes back in errors.

Knows numbers and characters; knows nothing of who asks, by HTTP or on the command line.
"""

from stream_dedup.scope import MAX_SCOPE_BYTES, SEPARATOR

LONGEST_ID = 8_192  # characters: longer than any line of a request may be
MOST_MEMBERS, MOST_SKIPPED = 1_000, 10_000  # of a cluster: told at once, and before those
MOST_SIMILAR = 100
UNNAMED = "?"  # the id of a text that is asked about and is no article
_MOST_QUOTED = 200  # characters


class TooLongError(ValueError):
    """A text is asked about that would be no article."""


def checked_name(text: str) -> str:
    """Return an id or a scope that may be asked for.

    Raises:
        ValueError: it holds what no name can.
    """
    if SEPARATOR in text:
        raise ValueError("a U+001F stands between scope and id and is in neither")
    return text


def checked_scope(text: str) -> str:
    """Return a scope that may be asked for, which may be empty.

    Raises:
        ValueError: no scope can be called so.
    """
    if len(text.encode()) > MAX_SCOPE_BYTES:
        raise ValueError(f"it has {len(text.encode())} bytes: a scope has {MAX_SCOPE_BYTES} at most")
    return checked_name(text)


def check_length(name: str, text: str, most: int, setting: str) -> None:
    """Check that a text could have been judged.

    Args:
        name: of the text.
        text: of any length.
        most: characters.
        setting: that says so.

    Raises:
        TooLongError: it is longer.
    """
    if len(text) > most:
        raise TooLongError(f"{name} has {len(text)} characters, at most {setting} = {most} are judged")


def quoted(text: str, most: int = _MOST_QUOTED) -> str:
    """Return an id, or what somebody sent, as errors name it: its beginning, quoted, and nothing that is obeyed."""
    return repr(text[:most]) + ("…" if len(text) > most else "")
