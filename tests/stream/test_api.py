"""The API beside a real service on a real broker: what it reports, and what happens when a process is killed.

Knows HTTP, topics and processes; the answer to each question is tested in tests/engine.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from jsonschema import Draft202012Validator

from deploy.demo.samples import sample_stream
from deploy.ports import free_port
from tests.stream.arguments import REPOSITORY, clean_environment, set_flags, write_settings
from tests.stream.messages import Incoming, produce
from tests.stream.records import Outputs, collect
from tests.stream.service import Service
from tests.stream.topics import Topics, fresh_topics, named_topics
from tests.stream.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.usefixtures("compiled")
_FLAGS = ("api.enabled=true", "api.port=0", "api.refresh_ms=100", "idf.first_epoch_articles=100")
_ANSWER_SECONDS = 30.0
_START_SECONDS = 180.0  # its loops may have to compile first


@dataclass(frozen=True, slots=True)
class Site:
    """A service with its API that has read a whole sample stream.

    Attributes:
        service: the process.
        topics: of the service.
        bootstrap: the broker.
        outputs: what it has published.
    """

    service: Service
    topics: Topics
    bootstrap: str
    outputs: Outputs


@pytest.fixture(scope="module")
def site(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """See `Site`."""
    topics = fresh_topics(bootstrap, partitions=2)
    messages = [Incoming(sample.value, sample.key) for sample in sample_stream(20)]
    produce(bootstrap, topics.input, messages)
    with Service(tmp_path_factory.mktemp("api"), bootstrap, topics, *_FLAGS) as service:
        site = Site(service, topics, bootstrap, collect(bootstrap, topics, len(messages), service))
        _wait_until_seen(site)
        yield site


def _client(service: Service) -> httpx2.Client:
    """Return a client of the API that the service started last, once it answers."""
    wait_until(lambda: service.running and bool(service.events("answering")), "the API", _START_SECONDS)
    return httpx2.Client(base_url=service.events("answering")[-1]["api"], timeout=_ANSWER_SECONDS)


def _process(service: Service) -> psutil.Process:
    (process,) = [
        one for one in psutil.Process(service.pid).children() if one.cmdline()[1:] == ["-m", "stream_dedup.api"]
    ]
    return process


def _gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def _links(site: Site) -> list[dict[str, Any]]:
    links = [json.loads(record.value) for record in site.outputs.duplicates if record.value]
    return [link for link in links if link["candidate_source"] not in {"id", None}]


def _wait_until_seen(site: Site) -> None:
    """Wait until the API, which refreshes its view periodically, has seen everything that was published."""
    last = _links(site)[-1]["id"]
    with _client(site.service) as client:
        wait_until(
            lambda: (
                client.get("/v1/status").json()["unseen_entries"] == 0
                and client.get("/v1/article", params={"id": last}).status_code == 200
            ),
            "the API has seen all",
        )


def test_every_link_is_told_again_and_explained(site: Site) -> None:
    """With the published numbers, and with both texts as they are in the input topic."""
    links = _links(site)
    with _client(site.service) as client:
        explained = 0
        for link in links:
            article = client.get("/v1/article", params={"id": link["id"]}).json()
            if article["texts"] > 1 or article["link"] is None or article["relation"] != link["relation"]:
                continue  # revised, withdrawn or moved since
            told = {name: article["link"][name] for name in ("matched", "relation", "hamming", "candidate_source")}
            assert told == {name: link[name] for name in told}
            place = {name: link[name] for name in ("topic", "partition", "offset")}
            assert article["message"] == place
            reason = client.get("/v1/reason", params={"id": link["id"]})
            if reason.status_code != 200:
                continue
            explained += 1
            found = reason.json()
            assert (found["first"]["id"], found["second"]["id"]) == (link["id"], link["matched"])
            assert found["relation"] == link["relation"]
            assert found["jaccard"] == pytest.approx(link["jaccard"], abs=2e-4)
            assert len(found["differing_bits"]) == found["hamming"]
        assert explained > len(links) * 0.8


def test_texts_are_those_of_the_messages(site: Site) -> None:
    """Texts are read from the input by offset: the bodies are the ones that were sent."""
    bodies = {
        fields["id"]: fields["body"]
        for sample in sample_stream(20)
        if sample.value and sample.dead_reason is None and "id" in (fields := json.loads(sample.value))
    }
    with _client(site.service) as client:
        for link in _links(site)[:5]:
            answer = client.get("/v1/reason", params={"id": link["id"]})
            found = answer.json()
            assert answer.status_code == 200
            assert found["first"]["body"] == bodies[link["id"]]
            assert found["second"]["body"] == bodies[link["matched"]]


def test_the_latest_links_are_those_of_the_topic(site: Site) -> None:
    """Newest first, and no more than requested."""
    published = [json.loads(record.value) for record in site.outputs.duplicates if record.value]
    with _client(site.service) as client:
        told = client.get("/v1/latest", params={"limit": 7}).json()
    assert told == published[::-1][:7]


def test_answers_with_texts_and_links_are_as_described(site: Site) -> None:
    """All links and announcements of the topic, and the reasons, match the schemas in /openapi.json."""
    link = _links(site)[0]
    with _client(site.service) as client:
        described = client.get("/openapi.json").json()
        for path, asked in (("/v1/latest", {"limit": 200}), ("/v1/reason", {"id": link["id"]}), ("/v1/status", {})):
            answer = client.get(path, params=asked)
            assert answer.status_code == 200
            declared = described["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            Draft202012Validator({**declared, "components": described["components"]}).validate(answer.json())


def test_whoever_kills_the_api_does_not_hurt_the_stream(site: Site) -> None:
    """It is restarted and answers as before, while the service carries on.

    Even if the newest message of its topics comes from elsewhere and is nonsense.
    """
    service = site.service
    produce(site.bootstrap, site.topics.duplicates, [Incoming(b"{", b"?")])
    before = len(service.events("answering"))
    _process(service).kill()
    wait_until(lambda: len(service.events("answering")) > before, "the API again", _START_SECONDS)
    with _client(service) as client:
        assert client.get("/v1/status").json()["articles_judged"] > 0
        assert client.get("/v1/latest", params={"limit": 5}).json()[0]["id"] == _links(site)[-1]["id"]
    assert service.events("api_ended")[-1]["exit_code"] == -9
    service.wait_ready()


def test_a_service_that_waits_is_told_to_wait(bootstrap: str, tmp_path: Path) -> None:
    """Without its input it runs but is not ready: the status repeats what its probe says."""
    with (
        Service(tmp_path, bootstrap, named_topics(), *_FLAGS, f"http.port={free_port()}") as service,
        _client(service) as client,
    ):
        wait_until(lambda: service.ask("/readyz").text == "waiting for partitions\n", "partitions are waited for")
        # The API waits for its service for a second at most.
        wait_until(lambda: bool(client.get("/v1/status").json()["running"]), "the service answers the API")
        status = client.get("/v1/status").json()
    assert (status["running"], status["ready"], status["not_ready"]) == (True, False, "waiting for partitions")


def test_the_api_ends_with_the_service(bootstrap: str, tmp_path: Path) -> None:
    """Whether the service is stopped or killed, no process is left holding the port."""
    for end in ("stop", "kill"):
        directory = tmp_path / end
        directory.mkdir()
        with Service(directory, bootstrap, fresh_topics(bootstrap), *_FLAGS) as service:
            with _client(service) as client:
                assert client.get("/v1/status").status_code == 200
            process = _process(service)
            getattr(service, end)()
            wait_until(partial(_gone, process), "its end")


def test_a_port_that_is_taken_is_told(site: Site, bootstrap: str, tmp_path: Path) -> None:
    """The stream carries on without the API."""
    with _client(site.service) as client:
        port = client.base_url.port
    flags = [flag for flag in _FLAGS if not flag.startswith("api.port")]
    with Service(tmp_path, bootstrap, fresh_topics(bootstrap), *flags, f"api.port={port}") as service:
        service.wait_ready()
        wait_until(lambda: bool(service.events("api_not_served")), "the reason", _START_SECONDS)
        assert f"api.port = {port}" in service.events("api_not_served")[0]["error"]
        wait_until(lambda: bool(service.events("api_ended")), "its end")
        assert service.events("api_ended")[0]["exit_code"] == 1
        service.wait_ready()


def test_connections_for_nothing_keep_nobody_out(site: Site) -> None:
    """With more half-open connections than the API has room for, probes and questions are answered at once."""
    with _client(site.service) as client, ExitStack() as kept:
        for number in range(300):
            held = kept.enter_context(
                socket.create_connection(("127.0.0.1", client.base_url.port or 0), timeout=_ANSWER_SECONDS)
            )
            held.sendall((b"", b"GET /v1/status HT", b"POST /v1/similar HTTP/1.1\r\n")[number % 3])
        for path in ("/healthz", "/readyz", "/v1/status"):
            with httpx2.Client(base_url=client.base_url, timeout=_ANSWER_SECONDS) as other:
                assert other.get(path).status_code == 200


def test_api_answers_probes_before_there_is_a_state(tmp_path: Path) -> None:
    """Run alone, it waits for a state: alive but not started, and it says what it waits for. SIGTERM ends it."""
    settings = write_settings(tmp_path, "127.0.0.1:1", named_topics())
    command = [sys.executable, "-m", "stream_dedup", "api", "--config", str(settings), *set_flags(["api.port=0"])]
    log = tmp_path / "api.log"
    with log.open("wb") as told:
        process = subprocess.Popen(command, cwd=REPOSITORY, env=clean_environment(), stdout=told, stderr=told)
    try:
        wait_until(lambda: log.read_text(encoding="utf-8").endswith("\n"), "it waits", _START_SECONDS)
        line = json.loads(log.read_text(encoding="utf-8"))
        assert line["event"] == "api_waits"
        with httpx2.Client(base_url=line["api"], timeout=_ANSWER_SECONDS) as client:
            answers = {path: client.get(path) for path in ("/startupz", "/healthz", "/readyz", "/v1/status")}
        assert {path: answer.status_code for path, answer in answers.items()} == {
            "/startupz": 503,
            "/healthz": 200,
            "/readyz": 503,
            "/v1/status": 503,
        }
        assert answers["/startupz"].text == "waiting for a state to read\n"
        assert answers["/v1/status"].json() == {"detail": "waiting for a state to read", "code": "unavailable"}
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def test_api_of_a_service_is_well_by_all_probes(site: Site) -> None:
    """Once it answers, it is started, alive and ready."""
    with _client(site.service) as client:
        for path in ("/startupz", "/healthz", "/readyz"):
            answer = client.get(path)
            assert (answer.status_code, answer.text) == (200, "ok\n")
