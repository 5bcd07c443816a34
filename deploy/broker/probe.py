"""Knows how to tell that a broker answers: its metadata can be listed.

Does not know whose broker it is, nor how it was started.
"""

import time
from collections.abc import Callable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

_ATTEMPT_SECONDS = 0.5


def wait_until_answers(bootstrap: str, timeout: float, *, give_up: Callable[[], bool] = lambda: False) -> bool:
    """Wait until the broker lists its metadata.

    Args:
        bootstrap: `host:port`, or several of them separated by commas.
        timeout: seconds to wait at most.
        give_up: asked twice a second; when it returns true the wait ends early.

    Returns:
        Whether the broker answered.
    """
    admin = AdminClient(_client_settings(bootstrap))
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and not give_up():
        if _answers(admin):
            return True
    return False


def _answers(admin: AdminClient) -> bool:
    try:
        return bool(admin.list_topics(timeout=_ATTEMPT_SECONDS).brokers)
    except KafkaException:
        return False


def _client_settings(bootstrap: str) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap,
        "client.id": "broker-probe",
        # A refused connection is expected during the wait, and not worth a line on stderr.
        "log_level": 0,
        # librdkafka's own back-off grows to 10 s, which would outlast the start of the broker.
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 100,
    }
