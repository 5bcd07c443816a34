"""Entries: what later articles are compared with, numbered in order of arrival and packed into bytes.

Knows an entry's parts; knows nothing of how it is found.
"""
