"""The outputs, and the transactions that write them.

Knows topics and headers; knows nothing of how a decision is made.
"""
