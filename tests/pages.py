"""Parts of pages that are generated from the code.

Knows the two marks around such a part; knows nothing of what it says.
"""


def marks(name: str) -> tuple[str, str]:
    """Return the lines around a part of this name: its beginning and its end."""
    return f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"


def with_part(page: str, name: str, part: str) -> str:
    """Return the page with the part of this name replaced.

    Raises:
        ValueError: the page has no such part.
    """
    begin, end = marks(name)
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page lacks the marks {begin.strip()} and {end.strip()}: put them where the text goes")
    return head + begin + part + end + tail
