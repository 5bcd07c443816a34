"""Who may ask the API: tokens, host names, and what browsers are told.

Knows headers; what is asked is tested in test_answers.
"""

import asyncio
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from starlette.types import Message

from stream_dedup.ask.query_service import QueryService
from stream_dedup.index.stores.store import StoreError
from stream_dedup.observe.health import Awaited, Health
from stream_dedup.settings import REDACTED
from tests.engine.api.asked import HOSTILE, TOKEN, asking, client_of, settings_for

_PATHS = ("/v1/status", "/v1/settings", "/v1/article?id=x", "/v1/cluster?id=x", "/v1/reason?id=x", "/openapi.json")


def test_the_hostile_is_data_and_never_a_page(client: TestClient) -> None:
    """JSON is sent as JSON, whatever an id contains, and browsers are told not to sniff."""
    answer = client.get("/v1/article", params={"id": HOSTILE.id})
    assert answer.json()["id"] == HOSTILE.id
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    unknown = client.get("/v1/article", params={"id": "<script>"})
    assert (unknown.status_code, unknown.headers["content-type"]) == (404, "application/json")


@pytest.mark.parametrize("path", ["/", "/page.js", "/page.css", "/v1/status", "/nothing"])
def test_browsers_run_nothing_but_the_page(client: TestClient, path: str) -> None:
    """Every response allows no scripts or addresses but the API's own, no framing and no caching."""
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", [*_PATHS, "/v1/latest"])
def test_without_the_token_nothing_is_told(locked: TestClient, path: str) -> None:
    """A missing or wrong token is refused; only the page, which holds no data, is served."""
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}):
        answer = locked.get(path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    assert locked.get("/").status_code == 200


def test_the_token_comes_first(locked: TestClient) -> None:
    """Without it, errors reveal nothing about paths, methods, parameters or limits."""
    for answer in (
        locked.get("/v1/nothing"),
        locked.get("/nothing"),
        locked.delete("/v1/status"),
        locked.get("/v1/article?foo=x"),
        locked.post("/v1/similar", content=b"a" * 5_000_000),
        locked.get("/v1/status/"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (401, "no_token")
    assert locked.head("/v1/status").status_code == 401


def test_without_the_token_no_body_is_read(locked: TestClient) -> None:
    """The response comes before even the first chunk is read."""
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body was read")

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/similar", "query_string": b"", "headers": headers}
    asyncio.run(locked.app(scope, receive, send))  # type: ignore[arg-type]  # any version of ASGI will do
    assert sent[0]["status"] == 401


def test_a_token_is_read_as_bytes(directory: Path) -> None:
    """A non-ASCII token is sent as UTF-8; the scheme name is case-insensitive, and two tokens count as none."""
    token = "一个不短的令牌-0123456789"  # noqa: S105  # used only in this test
    for client in client_of(directory, token=token):
        for headers, code in (
            ([(b"Authorization", b"bEARER " + token.encode())], 200),
            ([(b"Authorization", b"Bearer " + token.encode()), (b"Authorization", b"Bearer wrong")], 401),
            ([(b"Authorization", b"Bearer")], 401),
        ):
            assert client.get("/v1/settings", headers=headers).status_code == code


def test_with_the_token_all_is_told_but_the_token(locked: TestClient) -> None:
    """Settings and the API description never include secrets."""
    headers = {"authorization": f"Bearer {TOKEN}"}
    for path in ("/v1/status", "/v1/settings", "/openapi.json"):
        answer = locked.get(path, headers=headers)
        assert answer.status_code == 200
        assert TOKEN not in answer.text
    assert locked.get("/v1/settings", headers=headers).json()["api"]["token"] == REDACTED


def test_without_a_token_pages_of_elsewhere_cannot_ask(client: TestClient) -> None:
    """A foreign host name that resolves to this machine is refused (DNS rebinding)."""
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost:9109:1", "[::1", ""):
        answer = client.get("/v1/status", headers={"host": host})
        assert (answer.status_code, answer.json()["code"]) == (400, "foreign_host")
        assert "localhost" in answer.json()["detail"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    for host in ("localhost:9109", "127.0.0.1", "[::1]:9109", "LOCALHOST"):
        assert client.get("/v1/status", headers={"host": host}).status_code == 200


def test_an_open_port_wants_a_token(tmp_path: Path) -> None:
    """A host reachable from elsewhere needs a token of sufficient length; no message reveals it."""
    with pytest.raises(ValueError, match=r"api\.host = '0\.0\.0\.0' can be reached from other machines"):
        settings_for(tmp_path, host="0.0.0.0")  # noqa: S104  # this is what must be refused
    with pytest.raises(ValueError, match="fewer than the required 16"):
        settings_for(tmp_path, host="0.0.0.0", token="short-secret")  # noqa: S104, S106  # the same
    assert settings_for(tmp_path, host="0.0.0.0", token=TOKEN).api.port == 9109  # noqa: S104  # allowed
    assert TOKEN not in repr(settings_for(tmp_path, token=TOKEN))


def test_probes_answer_without_a_token(directory: Path) -> None:
    """They report how far the API has started; without a state, questions get 503 with the reason."""
    settings, health = settings_for(directory, token=TOKEN, host="0.0.0.0"), Health(60.0)  # noqa: S104  # nobody listens

    def no_desk() -> QueryService:
        raise StoreError("no state yet")

    health.set_waiting_for(Awaited.FIRST_STATE)
    with asking(no_desk, settings, health) as client:
        for path, code, line in (
            ("/startupz", 503, "waiting for a state to read\n"),
            ("/readyz", 503, "waiting for a state to read\n"),
            ("/healthz", 200, "ok\n"),
        ):
            answer = client.get(path)
            assert (answer.status_code, answer.text) == (code, line)
        answer = client.get("/v1/status", headers={"Authorization": f"Bearer {TOKEN}"})
        assert (answer.status_code, answer.json()) == (503, {"detail": "no state yet", "code": "unavailable"})
        health.start()
        health.set_waiting_for(None)
        assert [client.get(path).status_code for path in ("/startupz", "/readyz")] == [200, 200]
        assert client.get("/v1/status").status_code == 401
        assert (
            "/readyz" not in client.get("/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}).json()["paths"]
        )
