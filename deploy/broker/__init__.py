"""A real single-node Apache Kafka from two PyPI packages, for demos and tests.

This is not a way to run Kafka in production: one node, no security, data in a temporary folder.
"""

from deploy.broker.jars import kafka_jars
from deploy.broker.kafka import BrokerStartError, KafkaBroker
from deploy.broker.session import BrokerUnreachableError, kafka_for_session
from deploy.broker.training import make_startup_cache
from stream_dedup.jars import JarError

__all__ = [
    "BrokerStartError",
    "BrokerUnreachableError",
    "JarError",
    "KafkaBroker",
    "kafka_for_session",
    "kafka_jars",
    "make_startup_cache",
]
