"""Sends the samples to the input topic, and reads what the service makes of them from the output topics.

Knows Kafka's clients and the pace; knows nothing of what the messages mean.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import cast

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from deploy.demo.outcome import Outcome
from deploy.demo.samples import Sample
from deploy.demo.topics import MAX_MESSAGE_BYTES, Topics

_PER_SECOND = 160.0  # a pace at which the bars can be watched and latencies are those of a stream, not of a queue
_STEP_SECONDS = 0.1  # longest time in librdkafka, where Ctrl-C is not handled
_SILENCE_SECONDS = 60.0  # after which no more is expected
_LINGER_SECONDS = 0.5  # for anything that comes out twice to do so
_FLUSH_SECONDS = 20.0

Watch = Callable[[int], None]
"""Called again and again with the number of messages sent; may raise to end the stream."""


class StreamFailedError(RuntimeError):
    """The broker refused a message, or the outputs did not arrive."""


def reader_properties(bootstrap: str, group: str) -> dict[str, str | int | bool]:
    """Return the properties of a consumer of committed messages.

    Args:
        bootstrap: address of the broker.
        group: librdkafka needs one; nothing is committed under it.
    """
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 50,
        "log_level": 0,
    }


class Feed:
    """Writes samples to the input topic, in order.

    Args:
        bootstrap: address of the broker.
        topic: the input topic.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._fault: KafkaError | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.max.bytes": MAX_MESSAGE_BYTES,
                "log_level": 0,
            }
        )

    def send(self, sample: Sample) -> None:
        """Send one message.

        Raises:
            StreamFailedError: the broker has refused this message or an earlier one.
        """
        self._producer.produce(self._topic, sample.value, sample.key, on_delivery=self._delivered)
        self._producer.poll(0)
        self._check()

    def finish(self) -> None:
        """Wait until the broker has confirmed all messages.

        Raises:
            StreamFailedError: it refused one, or does not answer.
        """
        deadline = time.monotonic() + _FLUSH_SECONDS
        while self._producer.flush(_STEP_SECONDS) and time.monotonic() < deadline:
            self._check()
        self._check()
        if len(self._producer):
            raise StreamFailedError(f"the broker has not confirmed the articles within {_FLUSH_SECONDS:.0f} s")

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self._fault = self._fault or error

    def _check(self) -> None:
        if self._fault is not None:
            raise StreamFailedError(f"the broker refused an article: {self._fault.str()}")


class Collector:
    """Reads the three outputs from their beginning, as a reader of committed messages does.

    Args:
        bootstrap: address of the broker.
        topics: their names.
        outcome: where each message is recorded.
    """

    def __init__(self, bootstrap: str, topics: Topics, outcome: Outcome) -> None:
        self._topics = topics
        self._outcome = outcome
        self._consumer = Consumer(reader_properties(bootstrap, f"{topics.run}.reader"))
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in topics.outputs])

    def poll(self, seconds: float) -> bool:
        """Wait for at most one message, record it, and tell whether there was one.

        Raises:
            StreamFailedError: the broker refuses.
        """
        message = self._consumer.poll(min(seconds, _STEP_SECONDS))
        if message is None:
            return False
        error = message.error()
        if error is None:
            self._enter(message)
        elif error.fatal() or not error.retriable():
            raise StreamFailedError(f"cannot read the outputs: {error.str()}")
        return error is None

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _enter(self, message: Message) -> None:
        topic = message.topic()
        if topic == self._topics.unique:
            self._outcome.add_unique(message.key() or b"", message.value())
        elif topic == self._topics.duplicates:
            self._outcome.add_link(message.value() or b"")
        else:
            # The consumer hands over a list, though its types allow a dictionary.
            headers = cast("list[tuple[str, bytes]]", message.headers() or [])
            self._outcome.add_dead_letter(dict(headers))


def stream_samples(bootstrap: str, topics: Topics, outcome: Outcome, watch: Watch) -> None:
    """Send all samples, and collect outputs until each has come out.

    Args:
        bootstrap: address of the broker.
        topics: those of the demonstration.
        outcome: holds the samples; what comes out is recorded there.
        watch: called with the number of messages sent.

    Raises:
        StreamFailedError: the broker refused a message, or a minute went by without any output.
    """
    with closing(Collector(bootstrap, topics, outcome)) as collector:
        _send_all(Feed(bootstrap, topics.articles), collector, outcome, watch)
        _collect_all(collector, outcome, watch)


def stream_more(bootstrap: str, topics: Topics, outcome: Outcome, samples: Sequence[Sample], watch: Watch) -> Outcome:
    """Send further messages after a stream that has come out, and return the outcome of both together.

    Args:
        bootstrap: address of the broker.
        topics: those of the demonstration.
        outcome: of the stream; it is not changed.
        samples: the further messages.
        watch: called with the number of messages sent.

    Raises:
        StreamFailedError: as in `stream_samples`.
    """
    both = Outcome([*outcome.samples, *samples])
    feed = Feed(bootstrap, topics.articles)
    for sample in samples:
        feed.send(sample)
    feed.finish()
    with closing(Collector(bootstrap, topics, both)) as collector:
        _collect_all(collector, both, watch)
    return both


def _send_all(feed: Feed, collector: Collector, outcome: Outcome, watch: Watch) -> None:
    """Send at an even pace, collecting meanwhile."""
    began = time.monotonic()
    for number, sample in enumerate(outcome.samples):
        while (early := began + number / _PER_SECOND - time.monotonic()) > 0:
            collector.poll(early)
        feed.send(sample)
        watch(number + 1)
    feed.finish()


def _collect_all(collector: Collector, outcome: Outcome, watch: Watch) -> None:
    """Collect until everything is out, and a moment longer for what should not come out."""
    count, heard = len(outcome.samples), time.monotonic()
    while len(outcome) < count:
        watch(count)
        if collector.poll(_STEP_SECONDS):
            heard = time.monotonic()
        elif time.monotonic() - heard > _SILENCE_SECONDS:
            raise StreamFailedError(
                f"{count - len(outcome)} messages have not come out, and nothing came for {_SILENCE_SECONDS:.0f} s"
            )
    watch(count)
    until = time.monotonic() + _LINGER_SECONDS
    while time.monotonic() < until:
        collector.poll(_STEP_SECONDS)
