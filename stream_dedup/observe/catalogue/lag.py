"""Metrics of how far behind the service is.

Knows partitions and the changelog; knows nothing of where values come from.
"""

from stream_dedup.observe.catalogue.labels import PARTITION, TOPIC
from stream_dedup.observe.metric import gauge


class Lag:
    """Lag: how far the service is behind its input, and its state behind the changelog."""

    consumer_lag_messages = gauge(
        "messages",
        "Messages of a partition that are not yet committed.",
        "Grows: compare the stages. Has the input rate risen, or has the service become slower?",
        TOPIC,
        PARTITION,
    )
    consumer_lag_seconds = gauge(
        "seconds",
        "How long the oldest uncommitted message of a partition has been waiting. Measured by its own timestamp once "
        "it was read, before that by the timestamp of the last committed message. 0 if none is waiting; absent until "
        "known.",
        "Higher than consumers of the outputs can accept: as for `consumer_lag_messages`. Jumps for a single "
        "partition: its producers set old timestamps.",
        TOPIC,
        PARTITION,
    )
    changelog_position = gauge(
        "records",
        "Changelog offset up to which the state has been written.",
        "Does not move on the active process while articles are judged: no commits, see `transactions_total`. On a "
        "standby it follows the active process.",
    )
    changelog_records_remaining = gauge(
        "records",
        "Changelog records that the state has not yet applied.",
        "During a restore, shows what is left. Grows on a standby: its disk or CPU is too slow.",
    )
