"""Where partitions end, asked of the broker for all of them at once.

Knows a consumer and which of its errors pass; knows nothing of positions, or of why somebody asks.
"""

import time
from collections.abc import Collection, Sequence

from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

from stream_dedup.stream.kafka.clients import is_transient
from stream_dedup.stream.kafka.places import Place

_PAUSE_SECONDS = 0.1


def ends(consumer: Consumer, places: Collection[Place], seconds: float) -> dict[Place, int]:
    """Return the offset after the last message of some partitions, as far as this consumer may read it.

    There is none for a partition of which the broker does not tell it in time. One that has no leader yet, since the
    topic is new or a broker has just gone, is asked about again until then.

    Args:
        consumer: asks; it need not have joined its group.
        places: the partitions.
        seconds: how long to ask.

    Raises:
        KafkaException: the broker refuses.
    """
    deadline = time.monotonic() + seconds
    found = _told(consumer, sorted(places), deadline)
    while (unknown := set(places) - found.keys()) and time.monotonic() + _PAUSE_SECONDS < deadline:
        time.sleep(_PAUSE_SECONDS)
        found |= _told(consumer, sorted(unknown), deadline)
    return found


def _told(consumer: Consumer, places: Sequence[Place], deadline: float) -> dict[Place, int]:
    left = deadline - time.monotonic()
    if not places or left <= 0:
        return {}
    try:
        # The admin client's `list_offsets` would tell of each partition by itself, but when a request times out it may
        # free memory twice (confluent-kafka 2.16).
        answers = consumer.offsets_for_times([TopicPartition(*place, OFFSET_END) for place in places], left)
    except KafkaException as error:
        if not is_transient(error.args[0]):
            raise
        if len(places) == 1:
            return {}
        # One without a leader keeps back the answers about all others.
        middle = len(places) // 2
        return _told(consumer, places[:middle], deadline) | _told(consumer, places[middle:], deadline)
    told = (answer for answer in answers if answer.error is None and answer.offset >= 0)
    return {(answer.topic, answer.partition): answer.offset for answer in told}
