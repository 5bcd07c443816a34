"""A commit: messages in, decisions out, the state after them, and a shadow that judges the same messages.

Knows the steps and their order; knows nothing of who calls for them.
"""
