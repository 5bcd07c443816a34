"""What the API bears: large bodies, half a question, many questions at once, and faults of its own.

Knows ASGI; connections that are kept waiting are tested in tests/unit.
"""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from starlette.types import Message

from stream_dedup.api.app import make_app
from stream_dedup.ask.query_service import QueryService
from stream_dedup.index.stores.store import StoreError
from stream_dedup.observe.health import Health
from tests.engine.api.asked import JSON, TOKEN, settings_for

_SECONDS = 30.0


def test_bodies_have_a_bound(locked: TestClient) -> None:
    """Whether they state their length or arrive in chunks."""
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}

    def pieces() -> Iterator[bytes]:
        yield b'{"body": "'
        for _ in range(100):
            yield b"a" * 100
        yield b'"}'

    whole = b"".join(pieces())
    for content in (whole, pieces()):
        answer = locked.post("/v1/similar", content=content, headers=headers)
        assert answer.status_code == 413
        assert "api.max_body_bytes = 2048" in answer.json()["detail"]
    small = locked.post("/v1/similar", json={"body": "够短的一篇文章。"}, headers=headers)
    assert small.status_code == 200


@pytest.mark.parametrize("value", ["[]", '{"": {}}'])
@pytest.mark.parametrize("body", ["[%s]", '{"body": "]]", "title": [%s]}', '{"title": "\\"[", "none": [%s'])
def test_body_of_many_arrays_or_objects_is_not_read(
    client: TestClient, body: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would take seconds, in which nobody else is answered; brackets in a text are no arrays."""
    monkeypatch.setattr("json.loads", lambda *_, **__: pytest.fail("it is read"))
    answer = client.post("/v1/similar", content=body % ",".join([value] * 1_000), headers=JSON)
    monkeypatch.undo()
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert "arrays and objects: /openapi.json lists its members" in answer.json()["detail"]
    for text in ("[]{}" * 1_000, '\\"]' * 1_000):
        assert client.post("/v1/similar", json={"body": text}, headers=JSON).status_code == 200


def test_announced_body_has_a_bound(directory: Path) -> None:
    """It is refused before any of it has come: a client that never sends it would wait half a minute otherwise."""
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body is not read")

    async def send(message: Message) -> None:
        sent.append(message)

    app = make_app(_unasked, settings_for(directory, max_body_bytes=1 << 10), Health(60.0))
    scope = _similar_scope()
    scope["headers"].append((b"content-length", b"1025"))
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 413


def test_questions_at_once_have_a_bound(directory: Path) -> None:
    """One more is refused in the common error format; probes still answer, and the others get their answers."""
    settings, health, allowed = settings_for(directory), Health(60.0), threading.Event()

    def desk_in_time() -> QueryService:
        assert allowed.wait(_SECONDS)
        raise StoreError("no state yet")

    transport = httpx2.ASGITransport(make_app(desk_in_time, settings, health))

    async def ask() -> None:
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            asked = [asyncio.create_task(client.get("/v1/status")) for _ in range(65)]
            (first,), waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            refused = first.result()
            assert refused.status_code == 503
            assert refused.json() == {"detail": "64 requests are already in progress: try again", "code": "busy"}
            assert refused.headers["retry-after"] == "1"
            assert (await client.get("/healthz")).status_code == 200
            allowed.set()
            assert {answer.json()["code"] for answer in await asyncio.gather(*waiting)} == {"unavailable"}
            assert (await client.get("/v1/status")).json()["code"] == "unavailable"

    asyncio.run(ask())


def test_half_a_question_keeps_nobody_out(directory: Path) -> None:
    """However many requests wait for the rest of their bodies; only the bytes they hold together are limited."""
    half = b'{"body": "' + b"x" * 1_000
    settings, closed, statuses = settings_for(directory, max_body_bytes=1 << 10), asyncio.Event(), list[int]()

    def nobody() -> QueryService:
        raise StoreError("no state yet")

    app = make_app(nobody, settings, Health(60.0))

    async def begin(body: bytes) -> None:
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": True}]

        async def receive() -> Message:
            if not parts:
                await closed.wait()
                return {"type": "http.disconnect"}
            return parts.pop()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        await app(_similar_scope(), receive, send)

    async def ask() -> None:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
            begun = [asyncio.create_task(begin(half[:1])) for _ in range(200)]
            await asyncio.sleep(0)
            assert (await client.get("/v1/status")).json()["code"] == "unavailable"
            begun += [asyncio.create_task(begin(half)) for _ in range(70)]
            await asyncio.sleep(0)
            assert statuses == [503] * 6  # at most 64 of the largest bodies are held, and 200 bytes already are
            closed.set()
            await asyncio.gather(*begun)
            whole = await client.post("/v1/similar", content=half + b'"}', headers=JSON)
            assert whole.json()["code"] == "unavailable"  # nothing is held any more

    asyncio.run(ask())


@pytest.mark.parametrize("fault", [ZeroDivisionError, ValueError])
def test_fault_of_the_service_is_told_as_such(fault: type[Exception], directory: Path) -> None:
    """In the common error format, without the internal cause, which is for the log."""
    settings = settings_for(directory)

    def broken() -> QueryService:
        raise fault("a secret of the inside")

    app = make_app(broken, settings, Health(60.0))
    answer = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False).get("/v1/status")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def _unasked() -> QueryService:
    raise AssertionError("it was asked")


def _similar_scope() -> dict[str, Any]:
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    return {"type": "http", "method": "POST", "path": "/v1/similar", "query_string": b"", "headers": headers}


def test_half_a_body_is_no_question(directory: Path) -> None:
    """A client that disconnects halfway through the body gets no answer, and nothing is looked up."""
    sent: list[Message] = []
    come: list[Message] = [
        {"type": "http.request", "body": b'{"body": "', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return come.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(make_app(_unasked, settings_for(directory), Health(60.0))(_similar_scope(), receive, send))
    assert (sent, come) == ([], [])
