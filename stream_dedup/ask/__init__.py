"""Questions to the state of a running service, or of one at rest.

Knows how to read what was decided; decides nothing and writes nothing.
"""
