"""Labelled benchmarks: repost operators, the algorithms of the literature and the engine, measured side by side.

Knows articles and the engine; the service does not know this package.
"""
