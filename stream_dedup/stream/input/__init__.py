"""The input: batches of messages from where the state stands, read and decoded ahead.

Knows partitions and offsets; decides nothing.
"""
