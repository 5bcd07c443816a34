"""The input: batches of messages from the state's positions on, read and decoded ahead.

Knows partitions and offsets; decides nothing.
"""
