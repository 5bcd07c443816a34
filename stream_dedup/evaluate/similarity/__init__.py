"""How alike two bags are: the measures of the literature, a block of texts against all at a time.

Knows bags; knows nothing of how they were made.
"""
