"""How much may be asked for at once, and how much of an id comes back in errors.

Knows numbers alone; knows nothing of who asks, by HTTP or on the command line.
"""

MOST_MEMBERS, MOST_SKIPPED = 1_000, 10_000  # of a cluster: told at once, and before those
MOST_SIMILAR = 100
_MOST_QUOTED = 200  # characters


def quoted(article_id: str) -> str:
    """Return an id as errors name it: quoted, and no more of it than can be read."""
    return repr(article_id[:_MOST_QUOTED]) + ("…" if len(article_id) > _MOST_QUOTED else "")
