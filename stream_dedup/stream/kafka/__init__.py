"""Topics, places in them, messages, and librdkafka's clients.

Knows Kafka; knows nothing of articles.
"""
