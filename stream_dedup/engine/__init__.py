"""The engine: articles and withdrawals in, decisions and a change of the state out.

Knows texts, fingerprints and the index; knows nothing of files, of Kafka, or of its callers.
"""
