"""A run as tables on the terminal, CSV, JSON, Markdown and one HTML page with plots.

Knows what a reader wants to see; knows nothing of how it was computed.
"""
