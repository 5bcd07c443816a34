"""Turns words and characters into SimHashes and sketches, and measures similarity on them.

Knows one or two texts at a time; knows nothing of the index.
"""
