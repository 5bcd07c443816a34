"""The outputs, and the transactions in which they are written.

Knows topics and headers; knows nothing of how a decision is made.
"""
