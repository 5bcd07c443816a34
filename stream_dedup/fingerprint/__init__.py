"""Words and characters to SimHash and sketch, and the similarity measures on them.

Knows one text or two at a time; knows nothing of the index.
"""
