"""Entries: what later articles are compared with, numbered as they come and packed to bytes.

Knows an entry's parts; knows nothing of who finds it.
"""
