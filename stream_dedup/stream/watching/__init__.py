"""What the loop tells metrics and traces.

Knows what a commit was; changes nothing.
"""
