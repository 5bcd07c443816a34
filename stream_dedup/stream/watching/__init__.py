"""What the loop reports to metrics and traces.

Knows what a commit was; changes nothing.
"""
