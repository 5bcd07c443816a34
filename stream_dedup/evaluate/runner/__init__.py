"""Runs algorithms over a labelled set: on all cores, resumed where it was left, one failure at a time.

Knows the directory of a run and its workers; knows nothing of what a report looks like.
"""
