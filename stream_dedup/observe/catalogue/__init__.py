"""All metrics of the service, one file per theme: names, units, labels, meaning and what to do when they change.

Knows nothing of where values come from. deploy/metrics.md is generated from this (`make metrics-page`).
"""

from stream_dedup.observe.catalogue.client_library import CLIENT_LIBRARY_METRICS
from stream_dedup.observe.catalogue.detection import Detection
from stream_dedup.observe.catalogue.errors import Errors
from stream_dedup.observe.catalogue.index import Index
from stream_dedup.observe.catalogue.kafka import KafkaClient
from stream_dedup.observe.catalogue.lag import Lag
from stream_dedup.observe.catalogue.process import Process
from stream_dedup.observe.catalogue.rate import Rate
from stream_dedup.observe.catalogue.rocksdb import RocksDb

__all__ = ["CLIENT_LIBRARY_METRICS", "Detection", "Errors", "Index", "KafkaClient", "Lag", "Process", "Rate", "RocksDb"]
