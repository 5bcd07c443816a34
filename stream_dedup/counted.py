"""A number with what it counts, as messages tell it: `1 article`, `2 articles`.

Knows one and more; knows nothing of messages.
"""


def counted(count: int, one: str, more: str = "") -> str:
    """Return a number with what it counts.

    Args:
        count: the number.
        one: what is counted, of one.
        more: the same of more; as of one with an s behind it if not given.
    """
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
