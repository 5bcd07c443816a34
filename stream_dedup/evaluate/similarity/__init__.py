"""How similar two bags are: the measures of the literature, for a block of texts against all at a time.

Knows bags; knows nothing of how they were made.
"""
