"""Where the state is kept: families of keys and values with atomic writes, in RocksDB or in memory.

Knows keys, values and files; knows nothing of what they mean.
"""
