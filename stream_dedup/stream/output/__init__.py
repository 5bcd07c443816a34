"""The outputs, and the writers that keep the guarantees of their delivery.

Knows topics and headers; knows nothing of how a decision is made.
"""
