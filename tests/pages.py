"""Parts of pages that are made of the code.

Knows the two marks between which such a part stands; knows nothing of what it tells.
"""


def marks(name: str) -> tuple[str, str]:
    """Return the lines around a part of this name: where it begins and where it ends."""
    return f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"


def with_part(page: str, name: str, part: str) -> str:
    """Return a page with another part of this name.

    Raises:
        ValueError: it has none.
    """
    begin, end = marks(name)
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page lacks the marks {begin.strip()} and {end.strip()}: put them where the text goes")
    return head + begin + part + end + tail
