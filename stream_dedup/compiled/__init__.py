"""Loops in machine code: how they are compiled and kept, and what all of them are made with.

Knows numba, memory and hashes; knows nothing of articles.
"""
