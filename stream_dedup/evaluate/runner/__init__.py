"""Runs algorithms over a labelled set: on all cores, resumably, and so that one failure does not stop the others.

Knows the directory of a run and its workers; knows nothing of what a report looks like.
"""
