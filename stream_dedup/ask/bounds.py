"""How much may be asked for at once.

Knows numbers alone; knows nothing of who asks, by HTTP or on the command line.
"""

MOST_MEMBERS, MOST_SKIPPED = 1_000, 10_000  # of a cluster: told at once, and before those
MOST_SIMILAR = 100
