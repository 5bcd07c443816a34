"""Queries on the state of a service, running or stopped.

Knows how to read what was decided; decides nothing and writes nothing.
"""
