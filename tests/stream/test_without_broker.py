"""A service whose broker is missing or disappears ends in time, in order, and says why.

Knows exit codes and logs; outages that a service survives are tested in tests/faults.
"""

import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.broker import KafkaBroker
from tests.engine.samples import bodies
from tests.stream.messages import article, produce
from tests.stream.records import Arrivals
from tests.stream.service import READY_SECONDS, STOP_SECONDS, Ended, Service
from tests.stream.topics import fresh_topics, named_topics
from tests.stream.waiting import PATIENCE_SECONDS, wait_until

_SECRET = "correct-horse-battery-staple"  # noqa: S105  # invented, and looked for in logs


@dataclass(frozen=True, slots=True)
class Background:
    """Services whose broker is missing or disappears.

    Attributes:
        left_alone: never found a broker, and ended by itself.
        loading: got SIGTERM while starting; how it ended, and its log.
        waiting: got SIGTERM while waiting for a broker that never came; how it ended, and its log.
        orphaned: lost its broker in mid-work and then got SIGTERM; how it ended.
    """

    left_alone: Service
    loading: "Future[tuple[Ended, str]]"
    waiting: "Future[tuple[Ended, str]]"
    orphaned: "Future[Ended]"


@pytest.fixture(scope="module")
def background(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Background]:  # noqa: ARG001  # needed for its effect
    """All of them at once, because waiting for a broker takes time."""
    with socket.socket() as taken, ExitStack() as stack:
        taken.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can
        dead_end = f"127.0.0.1:{taken.getsockname()[1]}"
        secret = {"STREAM_DEDUP_KAFKA__SASL_PASSWORD": _SECRET}
        flags = [
            "log.level=debug",
            "kafka.debug=all",
            "kafka.security.protocol=sasl_plaintext",
            "kafka.sasl.mechanisms=PLAIN",
            "kafka.sasl.username=reader",
        ]
        pool = stack.enter_context(ThreadPoolExecutor(3))
        orphaned = pool.submit(_lose_broker, tmp_path_factory.mktemp("orphaned"))
        alone, loading, waiting = (
            stack.enter_context(
                Service(tmp_path_factory.mktemp(name), dead_end, named_topics(), *more, environment=secret, loads=loads)
            )
            for name, more, loads in (("alone", flags, False), ("loading", [], True), ("waiting", [], False))
        )
        yield Background(
            alone,
            pool.submit(_stop_at, loading, "waiting for "),
            pool.submit(_stop_at, waiting, "waiting for the broker"),
            orphaned,
        )


def _stop_at(service: Service, state: str) -> tuple[Ended, str]:
    """Stop a starting service as soon as /readyz reports a given state."""
    wait_until(lambda: service.ask("/readyz").text.startswith(state), state, READY_SECONDS)
    ended = service.terminate()
    return ended, service.log()


def _lose_broker(directory: Path) -> Ended:
    """Take the broker away from a working service, and then stop it."""
    with KafkaBroker() as broker:
        topics = fresh_topics(broker.bootstrap)
        texts = bodies()
        produce(
            broker.bootstrap,
            topics.input,
            (article(f"n{n}", f"{n} {texts[n % len(texts)]} {n}") for n in range(10_000)),
        )
        with (
            Service(directory, broker.bootstrap, topics, "commit.articles=16") as service,
            Arrivals(broker.bootstrap, topics) as arrivals,
        ):
            wait_until(lambda: arrivals.count() > 100, "outputs")
            broker.kill()
            return service.terminate()


def test_unreachable_broker_is_named(background: Background) -> None:
    """If no broker answers, the service ends with exit code 1 and a message that says what to check."""
    assert background.left_alone.wait_end() == 1
    log = background.left_alone.log()
    assert "no broker answered at 127.0.0.1:" in log
    assert "kafka.bootstrap.servers" in log


def test_secrets_never_appear_in_the_log(background: Background) -> None:
    """Even with all debugging on, the log does not contain the SASL password from the environment."""
    background.left_alone.wait_end()
    log = background.left_alone.log()
    assert "sasl" in log.lower()
    assert _SECRET not in log


def test_sigterm_ends_in_time_while_the_service_starts(background: Background) -> None:
    """A service that is still loading ends within 10 s of SIGTERM, cleanly: code 0 and no traceback."""
    ended, log = background.loading.result(PATIENCE_SECONDS)
    assert ended.seconds < STOP_SECONDS
    assert "Traceback" not in log
    assert ended.code == 0


def test_sigterm_ends_in_time_when_the_broker_never_was_there(background: Background) -> None:
    """A service that is still waiting for its broker ends within 10 s of SIGTERM, without a traceback."""
    ended, log = background.waiting.result(PATIENCE_SECONDS)
    assert ended.seconds < STOP_SECONDS
    assert "Traceback" not in log
    assert ended.code in {0, 1}


def test_sigterm_ends_in_time_when_the_broker_is_gone(background: "Background") -> None:
    """Without its broker, in mid-work, a service still ends within 10 s of SIGTERM."""
    ended = background.orphaned.result(PATIENCE_SECONDS)
    assert ended.seconds < STOP_SECONDS
    assert ended.code in {0, 1}
