"""Numbers with what they count, as messages and answers say them: `1 article`, the most frequent first.

Knows singular, plural and order; knows nothing of messages.
"""

from collections.abc import Mapping


def counted(count: int, one: str, more: str = "") -> str:
    """Return a number with what it counts.

    Args:
        count: the number.
        one: what is counted, in the singular.
        more: the plural; empty if it only adds an s.
    """
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return what is counted with its number, largest numbers first; equal ones by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
