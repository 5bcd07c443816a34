"""Loops compiled to machine code: how they are compiled and cached, and the building blocks that they share.

Knows numba, memory and hashes; knows nothing of articles.
"""
