"""Knows whose broker a session uses: the one that `$KAFKA_BOOTSTRAP` names, or one of its own.

Does not know how a broker is run.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.broker.kafka import KafkaBroker
from deploy.broker.probe import wait_until_answers

BOOTSTRAP_VARIABLE = "KAFKA_BOOTSTRAP"
ANSWER_TIMEOUT_SECONDS = 5.0


class BrokerUnreachableError(RuntimeError):
    """The broker that `$KAFKA_BOOTSTRAP` names does not answer."""


@contextmanager
def kafka_for_session() -> Iterator[str]:
    """Yield the address in `$KAFKA_BOOTSTRAP`, or if unset that of a new broker, which ends with the block.

    Raises:
        BrokerUnreachableError: `$KAFKA_BOOTSTRAP` is set but does not answer within 5 s.
        BrokerStartError: the new broker did not come up.
        JarError: the jars of the new broker cannot be fetched, or are not the locked ones.
    """
    if named := os.environ.get(BOOTSTRAP_VARIABLE):
        _check(named)
        yield named
        return
    with KafkaBroker() as broker:
        yield broker.bootstrap


def _check(bootstrap: str) -> None:
    if not wait_until_answers(bootstrap, ANSWER_TIMEOUT_SECONDS):
        raise BrokerUnreachableError(
            f"{BOOTSTRAP_VARIABLE}={bootstrap}: no Kafka broker answered there within"
            f" {ANSWER_TIMEOUT_SECONDS:g} s. Start it, correct the address, or unset {BOOTSTRAP_VARIABLE}"
            " to have a broker started."
        )
