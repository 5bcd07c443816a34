"""The multi-index: SimHash tables, landmarks, articles and document counts in RocksDB.

Knows how candidates are found and kept; knows nothing of texts or of Kafka.
"""
