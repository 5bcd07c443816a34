"""What a service has read and written in a format is read again: by its API, by `tail` and by a rebuild.

Knows commands and a registry; the service's own round trip is tested in test_formats.
"""

import json
from functools import partial
from pathlib import Path

import httpx2
import pytest

from tests.engine.samples import bodies
from tests.stream.arguments import set_flags
from tests.stream.messages import Incoming, article, produce
from tests.stream.records import collect
from tests.stream.schemas import SchemaServer
from tests.stream.service import Service, run_once
from tests.stream.topics import fresh_topics
from tests.stream.waiting import wait_until
from tests.unit.registered import sample

pytestmark = pytest.mark.usefixtures("compiled")

_TEXT = bodies()[0]
_COPY = f"本报讯 {_TEXT}"


def test_api_reads_what_the_service_reads_and_writes(bootstrap: str, tmp_path: Path, registry: SchemaServer) -> None:
    """Links look the same as in JSON, texts are those of the messages; without the registry the answer is 503."""
    topics, client = fresh_topics(bootstrap), registry.client
    flags = (f"registry.url={registry.url}", "input.format=protobuf", "output.format=protobuf")
    values = [sample(client, "protobuf", id=name, body=body) for name, body in (("story", _TEXT), ("copy", _COPY))]
    produce(bootstrap, topics.input, [Incoming(value) for value in values])
    more = ("api.enabled=true", "api.port=0", "api.refresh_ms=100")
    with Service(tmp_path, bootstrap, topics, *flags, *more) as service:
        collect(bootstrap, topics, 2, service)
        wait_until(lambda: bool(service.events("answering")), "the API")
        with httpx2.Client(base_url=service.events("answering")[-1]["api"], timeout=20) as asking:
            known = partial(asking.get, "/v1/article", params={"id": "copy"})
            wait_until(lambda: known().status_code == 200, "the API has seen the copy")
            registry.away.set()
            away = asking.get("/v1/reason", params={"id": "copy"})
            assert (away.status_code, "schema registry" in away.text) == (503, True)
            registry.away.clear()
            reason = asking.get("/v1/reason", params={"id": "copy"}).json()
            (link,) = asking.get("/v1/latest").json()
        service.stop()
    assert (reason["first"]["body"], reason["second"]["body"]) == (_COPY, _TEXT)
    assert (link["id"], link["duplicate_of"], link["published_at"]) == ("copy", "story", "2026-10-18T12:00:00.000Z")


def test_decisions_are_read_in_whatever_format_they_are(bootstrap: str, tmp_path: Path, registry: SchemaServer) -> None:
    """Unique articles in the format of their topic; links in one that is no longer the output format."""
    topics, client, other = fresh_topics(bootstrap), registry.client, fresh_topics(bootstrap).input
    flags = (f"input.topics={topics.input},{other}", f"input.formats={other}=avro", f"registry.url={registry.url}")
    produce(bootstrap, other, [Incoming(sample(client, "avro", id="story", body=_TEXT))])
    with Service(tmp_path, bootstrap, topics, *flags, "output.format=protobuf") as service:
        collect(bootstrap, topics, 1, service)
        produce(bootstrap, topics.input, [article("copy", _COPY, published_at="2026-10-18T13:00:00Z")])
        collect(bootstrap, topics, 2, service)
        service.stop()
    command = ("tail", "--from-beginning", "--no-follow", "--json", "-c", str(tmp_path / "stream-dedup.toml"))
    told = run_once(*command, *set_flags(flags)).stdout.splitlines()
    story, copy = sorted(map(json.loads, told), key=lambda one: one["decision"], reverse=True)
    assert (story["id"], story["title"], story["published_at"]) == ("story", "夜市重开", "2026-10-18T12:00:00.000Z")
    assert (copy["id"], copy["duplicate_of"]) == ("copy", "story")


def test_lost_state_is_judged_again_in_the_same_formats(bootstrap: str, tmp_path: Path, registry: SchemaServer) -> None:
    """`state rebuild` reads what the group has decided again, with its schemas, and publishes none of it."""
    topics, client = fresh_topics(bootstrap), registry.client
    flags = ("input.format=protobuf", f"registry.url={registry.url}")
    produce(bootstrap, topics.input, [Incoming(sample(client, "protobuf", id="story", body=_TEXT))])
    with Service(tmp_path, bootstrap, topics, *flags) as service:
        collect(bootstrap, topics, 1, service)
        service.stop()
    more = (*flags, "landmarks.keys=12")
    arguments = [argument for flag in more for argument in ("--set", flag)]
    rebuilt = run_once("state", "rebuild", "--config", str(tmp_path / "stream-dedup.toml"), *arguments)
    assert rebuilt.returncode == 0, rebuilt.stderr
    produce(bootstrap, topics.input, [Incoming(sample(client, "protobuf", id="copy", body=_COPY))])
    with Service(tmp_path, bootstrap, topics, *more) as service:
        outputs = collect(bootstrap, topics, 2, service)
        service.stop()
    assert outputs.links()["copy"]["duplicate_of"] == "story"
