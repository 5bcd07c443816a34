"""A schema registry that is away, or refuses the credentials: nothing is lost, and what is wrong is said.

Knows services and a registry; its client alone is tested in tests/unit.
"""

import time
from pathlib import Path

import pytest

from tests.engine.samples import bodies
from tests.stream.messages import Incoming, produce
from tests.stream.records import collect
from tests.stream.schemas import SchemaServer
from tests.stream.service import Service
from tests.stream.topics import fresh_topics
from tests.stream.waiting import wait_until
from tests.unit.registered import sample

pytestmark = pytest.mark.usefixtures("compiled")

_TEXT = bodies()[0]


def test_registry_that_is_away_loses_nothing(bootstrap: str, tmp_path: Path, registry: SchemaServer) -> None:
    """During the outage the service waits, alive but not ready, and says so; then every message gets its decision.

    It can be stopped meanwhile, and the next start resumes where it was.
    """
    topics, client = fresh_topics(bootstrap), registry.client
    flags = (f"registry.url={registry.url}", "input.format=avro")
    registry.away.set()
    values = [sample(client, "avro", id=f"{n}", body=f"{n} {_TEXT}") for n in range(20)]
    produce(bootstrap, topics.input, [Incoming(value) for value in values])
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        wait_until(lambda: bool(service.events("registry_out_of_reach")), "the outage is told")
        assert service.ask("/healthz").status == 200
        # Throughout, whatever its loop is doing: for longer than the first pauses between attempts.
        for _ in range(100):
            answer = service.ask("/readyz")
            assert (answer.status, answer.text) == (503, "waiting for the schema registry\n")
            time.sleep(0.01)
        assert service.metrics().series("registry_waiting") == [1.0]
        service.stop()
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        wait_until(lambda: bool(service.events("registry_out_of_reach")), "the outage is told again")
        assert collect(bootstrap, topics, 0).total() == 0
        registry.away.clear()
        outputs = collect(bootstrap, topics, len(values), service)
        service.wait_ready()
        wait_until(lambda: service.metrics().series("registry_waiting") == [0.0], "it waits no more")
        service.stop()
    assert (len(outputs.unique), len(outputs.duplicates), outputs.dead) == (1, 19, [])


def test_refused_credentials_of_the_registry_end_the_service(
    bootstrap: str, tmp_path: Path, registry: SchemaServer
) -> None:
    """The message names the setting but not the secret; with the right ones the service resumes there."""
    topics, client = fresh_topics(bootstrap), registry.client
    registry.user = "Basic bWU6cmlnaHQ="  # me:right
    produce(bootstrap, topics.input, [Incoming(sample(client, "avro", id="story", body=_TEXT))])
    flags, variable = (
        ("input.format=avro", f"registry.url={registry.url}"),
        "STREAM_DEDUP_REGISTRY__BASIC_AUTH_USER_INFO",
    )
    with Service(tmp_path, bootstrap, topics, *flags, environment={variable: "me:hunter2"}) as service:
        assert service.wait_end(120) == 1
    assert "registry.basic.auth.user.info" in service.log()
    assert "hunter2" not in service.log()
    assert collect(bootstrap, topics, 0).total() == 0
    with Service(tmp_path, bootstrap, topics, *flags, environment={variable: "me:right"}) as service:
        assert collect(bootstrap, topics, 1, service).unique[0].key == b"story"
        service.stop()
