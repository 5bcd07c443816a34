"""Answers, as people read them on a terminal.

Knows answers, tables and colours; knows nothing of arguments, and looks nothing up.
"""
