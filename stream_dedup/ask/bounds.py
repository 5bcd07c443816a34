"""Limits on queries: which ids and scopes are valid, how much one may return, how much of an id errors quote.

Knows numbers and characters; knows nothing of who asks, by HTTP or on the command line.
"""

from stream_dedup.scope import MAX_SCOPE_BYTES, name_fault

LONGEST_ID = 8_192  # characters: longer than any line of a request may be
MOST_MEMBERS, MOST_SKIPPED = 1_000, 10_000  # of a cluster: returned at once, and skipped before those
MAX_SIMILARITY = 100
UNNAMED = "?"  # stands in for the id of a text that is asked about but is not an article
_MOST_QUOTED = 200  # characters


class TooLongError(ValueError):
    """A text that is asked about is too long to be an article."""


class BlankError(ValueError):
    """A text that is asked about shows nothing, so that it would be no article."""


def checked_id(text: str) -> str:
    """Return an id if it is valid.

    Raises:
        ValueError: it contains the separator of scope and id.
    """
    return _without_fault(text, name_fault(text))


def checked_scope(text: str) -> str:
    """Return a scope if it is valid; it may be empty.

    Raises:
        ValueError: it is too long, or contains the separator of scope and id.
    """
    return _without_fault(text, name_fault(text, MAX_SCOPE_BYTES))


def _without_fault(text: str, fault: str) -> str:
    if fault:
        raise ValueError(f"it {fault}")
    return text


def check_length(name: str, text: str, most: int, setting: str) -> None:
    """Check that a text is short enough to be judged.

    Args:
        name: what errors call the text.
        text: text of any length.
        most: the largest number of characters.
        setting: name of the setting that limits it.

    Raises:
        TooLongError: it is longer.
    """
    if len(text) > most:
        raise TooLongError(f"{name} has {len(text)} characters: {setting} = {most} is the limit")


def quoted(text: str, most: int = _MOST_QUOTED) -> str:
    """Return an id, or anything a client sent, for use in errors: its beginning, quoted, control characters escaped."""
    return repr(text[:most]) + ("…" if len(text) > most else "")
