"""A number with what it counts, as messages say it: `1 article`, `2 articles`.

Knows singular and plural; knows nothing of messages.
"""


def counted(count: int, one: str, more: str = "") -> str:
    """Return a number with what it counts.

    Args:
        count: the number.
        one: what is counted, in the singular.
        more: the plural; empty if it only adds an s.
    """
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
