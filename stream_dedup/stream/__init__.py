"""The Kafka side: batches in, outputs out, offsets kept with the state.

Knows brokers, topics and the order of the steps; knows nothing of texts or thresholds.
"""
