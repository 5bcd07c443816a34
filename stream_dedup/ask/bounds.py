"""How much may be asked for at once, and how much of an id comes back in errors.

Knows numbers alone; knows nothing of who asks, by HTTP or on the command line.
"""

MOST_MEMBERS, MOST_SKIPPED = 1_000, 10_000  # of a cluster: told at once, and before those
MOST_SIMILAR = 100
_MOST_QUOTED = 200  # characters


def quoted(text: str, most: int = _MOST_QUOTED) -> str:
    """Return an id, or what somebody sent, as errors name it: its beginning, quoted, and nothing that is obeyed."""
    return repr(text[:most]) + ("…" if len(text) > most else "")
