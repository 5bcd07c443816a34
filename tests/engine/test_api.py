"""The API on a state: status codes, authorisation, limits, and what it sends to browsers."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator
from starlette.types import Message

from stream_dedup import Article, Deduplicator
from stream_dedup.api.app import make_app
from stream_dedup.ask.answers import PublishedLink
from stream_dedup.ask.bounds import MAX_SIMILARITY, MOST_MEMBERS, MOST_SKIPPED
from stream_dedup.ask.query_service import QueryService
from stream_dedup.encode.shapes import CLUSTER, LINK, SOURCE
from stream_dedup.index.stores.store import StoreError
from stream_dedup.observe.health import Awaited, Health
from stream_dedup.settings import REDACTED, Settings
from tests.engine.samples import articles

_TOKEN = "a-token-of-the-tests-0123456789"  # noqa: S105  # used only in this test
_HOSTILE = Article(
    '<script>alert("id")</script>', "正文里有<img src=x onerror=alert(1)>一张图，也有足够多的词语可以比较。" * 3
)
_LONG = Article("长" * 5000, "这篇稿件的编号特别长，正文倒是平平常常，说的是一座小镇的集市如何一年年热闹起来。" * 3)
_COUNT = 60
_SECONDS = 30.0
_JSON = {"content-type": "application/json"}
_PATHS = ("/v1/status", "/v1/settings", "/v1/article?id=x", "/v1/cluster?id=x", "/v1/reason?id=x", "/openapi.json")


def _settings(directory: Path, **api: object) -> Settings:
    # Nobody listens on port 1, so no service that happens to run here can answer.
    return Settings.model_validate(
        {
            "state": {"directory": directory},
            "http": {"port": 1},
            "api": api,
            "input": {"max_body_chars": 100_000},  # less than a request may hold
        }
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state with some articles, one with a hostile id, one with a long id."""
    directory = tmp_path_factory.mktemp("api") / "state"
    with Deduplicator(directory, _settings(directory)) as engine:
        engine.process([*articles()[:_COUNT], _HOSTILE, _LONG])
    return directory


def _client(directory: Path, **api: object) -> Iterator[TestClient]:
    settings = _settings(directory, **api)
    with QueryService(settings) as queries, _asking(lambda: queries, settings, Health(1.0)) as client:
        yield client


def _asking(queries: Callable[[], QueryService], settings: Settings, health: Health) -> TestClient:
    return TestClient(make_app(queries, settings, health), base_url="http://127.0.0.1")


@pytest.fixture
def client(directory: Path) -> Iterator[TestClient]:
    """The API without a token."""
    yield from _client(directory)


@pytest.fixture
def locked(directory: Path) -> Iterator[TestClient]:
    """The API with a token and a limit of 2 KiB."""
    yield from _client(directory, token=_TOKEN, max_body_bytes=2048)


def test_status_tells_how_far_the_state_has_come(client: TestClient) -> None:
    """If no service answers, the status says so instead of guessing."""
    status = client.get("/v1/status").json()
    assert (status["articles_judged"], status["unseen_entries"], status["running"]) == (_COUNT + 2, 0, False)
    assert (status["decisions"], status["consumer_lag"]) == ({}, None)
    assert (status["ready"], status["not_ready"]) == (None, "")


def test_as_much_may_be_asked_for_as_on_the_command_line(client: TestClient) -> None:
    """The OpenAPI description has the same limits as the options of `cluster` and `similar`."""
    told = client.get("/openapi.json").json()
    parameters = {one["name"]: one["schema"] for one in told["paths"]["/v1/cluster"]["get"]["parameters"]}
    assert (parameters["limit"]["maximum"], parameters["offset"]["maximum"]) == (MOST_MEMBERS, MOST_SKIPPED)
    assert told["components"]["schemas"]["SimilarRequest"]["properties"]["limit"]["maximum"] == MAX_SIMILARITY


def test_an_article_a_cluster_and_what_is_similar(client: TestClient) -> None:
    """Article, cluster and similar articles agree with one another."""
    article = articles()[0]
    found = client.get("/v1/article", params={"id": article.id}).json()
    cluster = client.get("/v1/cluster", params={"id": article.id}).json()
    assert found["cluster"] == cluster["number"]
    assert article.id in [member["id"] for member in cluster["members"]]
    like = client.post("/v1/similar", json={"body": article.body, "title": article.title}).json()
    assert (like["decision"], like["articles"][0]["relation"]) == ("duplicate", "exact")
    assert like["articles"][0]["cluster"] == cluster["number"]


def test_the_hostile_is_data_and_never_a_page(client: TestClient) -> None:
    """JSON is sent as JSON, whatever an id contains, and browsers are told not to sniff."""
    answer = client.get("/v1/article", params={"id": _HOSTILE.id})
    assert answer.json()["id"] == _HOSTILE.id
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


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/article?id=unknown", 404),
        ("/v1/cluster?id=unknown", 404),
        ("/v1/reason?id=unknown", 404),
        ("/v1/article", 422),
        ("/v1/article?id=", 422),
        ("/v1/article?id=" + "x" * 8193, 422),
        ("/v1/cluster?id=x&limit=-1", 422),
        ("/v1/cluster?id=x&limit=1001", 422),
        ("/v1/cluster?id=x&offset=many", 422),
        ("/v1/latest?limit=0", 422),
        ("/v1/article?id=a%1Fb", 422),
        ("/v1/article?id=b&scope=a%1F", 422),
        ("/v1/reason?id=a&other=%1F", 422),
        ("/v1/nothing", 404),
    ],
)
def test_what_is_wrong_has_a_status_of_its_own(client: TestClient, path: str, code: int) -> None:
    """Unknown and malformed requests have different status codes, each with a detail."""
    answer = client.get(path)
    assert answer.status_code == code
    assert answer.json()["detail"]


def test_an_article_without_a_copy_has_no_reason(client: TestClient) -> None:
    """The error says that it is unique, and how to name another article to compare it with."""
    answer = client.get("/v1/reason", params={"id": _HOSTILE.id})
    assert (answer.status_code, answer.json()["code"]) == (409, "unique_article")
    assert "is unique" in answer.json()["detail"]
    assert "`other`" in answer.json()["detail"]


def test_a_text_that_is_in_no_topic_is_gone(client: TestClient) -> None:
    """A text that did not come from a message cannot be read again."""
    answer = client.get("/v1/reason", params={"id": _HOSTILE.id, "other": articles()[0].id})
    assert answer.status_code == 410


def test_of_a_long_id_errors_name_the_beginning(client: TestClient) -> None:
    """Errors quote only the beginning of a long id, even of a known one: ids may have up to 64 KiB."""
    answer = client.get("/v1/reason", params={"id": _LONG.id, "other": _HOSTILE.id})
    assert (answer.status_code, answer.json()["code"]) == (410, "lost_text")
    assert "'长长长" in answer.json()["detail"]
    assert len(answer.json()["detail"]) < 400


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"body": ""}', "at least 1 character"),
        (b'{"body": 7}', "string"),
        (b'{"title": "no body"}', "body: Field required"),
        (b'{"body": "a", "unheard-of": 1}', "'unheard-of' is not a member"),
        (b'{"body": "   "}', "the text is blank"),
        (b'{"body": "a", "limit": 1000}', "less than or equal to 100"),
        (b'{"body": "a", "limit": 1e999}', "finite"),
        (b'{"body": "a", "id": "\\u001f"}', "U+001F"),
        (b'{"body": "a", "scope": "\\u001f"}', "U+001F"),
        (f'{{"body": "a", "scope": "{"中" * 200}"}}'.encode(), "it has 600 bytes, at most 256 are allowed"),
        (b'{"body": "\\ud800 and some words", "id": "\\udfff"}', "half a surrogate pair"),
        (b'{"\\ud800": 1}', "half a surrogate pair"),
        (b"[]", "the body: "),
        (b"7", "the body: "),
    ],
)
def test_bodies_that_are_no_question_are_refused(client: TestClient, content: bytes, told: str) -> None:
    """The detail says what is wrong."""
    answer = client.post("/v1/similar", content=content, headers=_JSON)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert told in answer.json()["detail"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"body": "\xe6\x96"}',
        b"[" * 100_000,
        b'{"body": NaN}',
        b'{"limit": -Infinity}',
        b"9" * 5000,
    ],
    ids=["empty", "cut", "utf-16", "half a character", "nested", "NaN", "infinity", "digits"],
)
def test_body_that_is_no_json_is_told_so(client: TestClient, content: bytes) -> None:
    """As RFC 8259 requires: no NaN, no encoding but UTF-8. Every such fault has the same status."""
    answer = client.post("/v1/similar", content=content, headers=_JSON)
    assert (answer.status_code, answer.json()["code"]) == (400, "not_json")
    assert answer.json()["detail"].startswith("the body is not valid JSON: ")


@pytest.mark.parametrize(
    "kind", [None, "application/x-www-form-urlencoded", "text/plain; charset=utf-8", "multipart/json"]
)
def test_body_must_be_said_to_be_json(client: TestClient, kind: str | None) -> None:
    """What curl sends without a header is refused; the error names the required header and does not quote the text."""
    headers = {"content-type": kind} if kind is not None else {}
    answer = client.post("/v1/similar", content=b'{"body": "a secret text"}', headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "wrong_type")
    assert "Content-Type: application/json" in answer.json()["detail"]
    assert "secret" not in answer.text


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/problem+json"])
def test_json_goes_by_several_names(client: TestClient, kind: str) -> None:
    """With parameters, in capitals, or as one of the `+json` types."""
    answer = client.post("/v1/similar", content='{"body": "够短的一篇文章。"}'.encode(), headers={"content-type": kind})
    assert answer.status_code == 200


def test_what_was_asked_is_not_told_back_at_length(client: TestClient) -> None:
    """Errors stay short, even if an id or a parameter name is too long."""
    long = "x" * 8_000
    for answer in (
        client.get("/v1/article", params={"id": long}),
        client.get("/v1/article", params={"id": long + long}),
        client.get("/v1/article", params={"id": "x", long: "1"}),
        client.post("/v1/similar", json={"body": "a", "id": long + long}),
        client.post("/v1/similar", json={"body": "a", **{f"{long}{n}": 1 for n in range(9)}}),
    ):
        assert answer.status_code in {404, 422}
        assert len(answer.json()["detail"]) < 400


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/v1/article?id=x&foo=x", "'foo' is not a parameter of this path: its parameters are id, scope"),
        ("/v1/cluster?id=x&LIMIT=1", "its parameters are id, scope, limit, offset"),
        ("/v1/status?verbose", "'verbose' is not a parameter of this path: it has none"),
        ("/v1/latest?limit=1&scope=", "its parameters are limit"),
    ],
)
def test_unknown_parameters_are_refused(client: TestClient, path: str, told: str) -> None:
    """The error lists the valid ones: a typo in a name must not look like an answer."""
    answer = client.get(path + ("=" if "=" not in path else ""))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert told in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/v1/article?id=", "id: String should have at least 1 character"),
        (f"/v1/cluster?id={'x' * 8_193}", "id: String should have at most 8192 characters"),
        ("/v1/reason?id=x&other=", "other: String should have at least 1 character"),
        (f"/v1/article?id=x&scope={'s' * 257}", "scope: String should have at most 256 characters"),
        ("/v1/article", "id: Field required"),
    ],
)
def test_parameters_out_of_bounds_are_told_in_their_own_unit(client: TestClient, path: str, told: str) -> None:
    """A text is measured in characters, not items."""
    answer = client.get(path)
    assert (answer.status_code, answer.json()) == (422, {"detail": told, "code": "invalid"})


@pytest.mark.parametrize(
    "path", ["/", "/page.js", "/readyz", "/v1/status", "/v1/settings", "/v1/article?id=x", "/v1/no"]
)
def test_head_is_get_without_the_body(client: TestClient, path: str) -> None:
    """Same status, same headers."""
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers == got.headers


def test_other_methods_are_told_what_is_allowed(client: TestClient) -> None:
    """In the Allow header, as HTTP requires, and in words."""
    answer = client.delete("/v1/status")
    assert (answer.status_code, answer.headers["allow"], answer.json()["code"]) == (405, "GET, HEAD", "wrong_method")
    assert client.get("/v1/similar").headers["allow"] == "POST"


@pytest.mark.parametrize("path", [*_PATHS, "/v1/latest"])
def test_without_the_token_nothing_is_told(locked: TestClient, path: str) -> None:
    """A missing or wrong token is refused; only the page, which holds no data, is served."""
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {_TOKEN}"}):
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
    for client in _client(directory, token=token):
        for headers, code in (
            ([(b"Authorization", b"bEARER " + token.encode())], 200),
            ([(b"Authorization", b"Bearer " + token.encode()), (b"Authorization", b"Bearer wrong")], 401),
            ([(b"Authorization", b"Bearer")], 401),
        ):
            assert client.get("/v1/settings", headers=headers).status_code == code


def test_with_the_token_all_is_told_but_the_token(locked: TestClient) -> None:
    """Settings and the API description never include secrets."""
    headers = {"authorization": f"Bearer {_TOKEN}"}
    for path in ("/v1/status", "/v1/settings", "/openapi.json"):
        answer = locked.get(path, headers=headers)
        assert answer.status_code == 200
        assert _TOKEN not in answer.text
    assert locked.get("/v1/settings", headers=headers).json()["api"]["token"] == REDACTED


def test_bodies_have_a_bound(locked: TestClient) -> None:
    """Whether they state their length or arrive in chunks."""
    headers = {"authorization": f"Bearer {_TOKEN}", "content-type": "application/json"}

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


def test_questions_at_once_have_a_bound(directory: Path) -> None:
    """One more is refused in the common error format; probes still answer, and the others get their answers."""
    settings, health, allowed = _settings(directory), Health(60.0), threading.Event()

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
    settings, closed, statuses = _settings(directory, max_body_bytes=1 << 10), asyncio.Event(), list[int]()

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

    asyncio.run(ask())


def test_without_a_token_pages_of_elsewhere_cannot_ask(client: TestClient) -> None:
    """A foreign host name that resolves to this machine is refused (DNS rebinding)."""
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost:9109:1", "[::1", ""):
        answer = client.get("/v1/status", headers={"host": host})
        assert (answer.status_code, answer.json()["code"]) == (400, "foreign_host")
        assert "localhost" in answer.json()["detail"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    for host in ("localhost:9109", "127.0.0.1", "[::1]:9109", "LOCALHOST"):
        assert client.get("/v1/status", headers={"host": host}).status_code == 200


def test_the_description_has_every_question(client: TestClient) -> None:
    """As OpenAPI, with the fields of each answer."""
    described = client.get("/openapi.json").json()
    questions = {"status", "settings", "article", "cluster", "reason", "similar", "latest"}
    assert set(described["paths"]) == {f"/v1/{name}" for name in questions}
    assert "jaccard" in described["components"]["schemas"]["LinkAnswer"]["properties"]


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/status", None, 200),
        ("/v1/status?x=1", None, 422),
        ("/v1/settings", None, 200),
        ("/v1/settings?x=1", None, 422),
        ("/v1/article?id={known}", None, 200),
        ("/v1/article?id=unknown", None, 404),
        ("/v1/article", None, 422),
        ("/v1/cluster?id={known}", None, 200),
        ("/v1/cluster?id=unknown", None, 404),
        ("/v1/cluster?id=x&limit=many", None, 422),
        ("/v1/reason?id=unknown", None, 404),
        ("/v1/reason?id={unique}", None, 409),
        ("/v1/reason?id={unique}&other={known}", None, 410),
        ("/v1/reason?id=", None, 422),
        ("/v1/similar", '{"body": "够短的一篇文章。"}', 200),
        ("/v1/similar", "{", 400),
        ("/v1/similar", "9" * 3000, 413),
        ("/v1/similar", "text", 415),
        ("/v1/similar", "{}", 422),
        ("/v1/latest", None, 200),
        ("/v1/latest?limit=0", None, 422),
    ],
)
def test_answers_are_as_described(locked: TestClient, path: str, body: str | None, code: int) -> None:
    """Every path, with success and with each error: the status is declared, and the body matches its schema."""
    token = {"authorization": f"Bearer {_TOKEN}"}
    described = locked.get("/openapi.json", headers=token).json()
    asked, method = path.format(known=articles()[0].id, unique=quote(_HOSTILE.id)), "post" if body else "get"
    responses = described["paths"][asked.partition("?")[0]][method]["responses"]
    kind = {} if body == "text" else _JSON
    for headers, expected in ((token, code), ({}, 401)):
        answer = locked.request(method, asked, content=body, headers={**headers, **kind})
        assert answer.status_code == expected
        schema = responses[str(expected)]["content"]["application/json"]["schema"]
        Draft202012Validator({**schema, "components": described["components"]}).validate(answer.json())


def test_the_description_tells_how_to_sign_in(client: TestClient, locked: TestClient) -> None:
    """A generated client can send a token, and must if one is set."""
    described = locked.get("/openapi.json", headers={"authorization": f"Bearer {_TOKEN}"}).json()
    (name, scheme), *none = described["components"]["securitySchemes"].items()
    assert none == []
    assert (scheme["type"], scheme["scheme"], described["security"]) == ("http", "bearer", [{name: []}])
    assert {} in client.get("/openapi.json").json()["security"]


def test_the_description_has_the_fields_of_published_links() -> None:
    """They are the fields from which every format's schema is made."""
    assert list(PublishedLink.model_fields) == [field.name for field in LINK.fields]


def test_a_cluster_is_told_as_on_its_topic(client: TestClient) -> None:
    """Fields that both report have the same name and shape."""
    described = client.get("/openapi.json").json()["components"]["schemas"]
    published = {field.name for field in CLUSTER.fields} - {"updated_at"}
    assert published < set(described["ClusterAnswer"]["properties"])
    assert list(described["SourceAnswer"]["properties"]) == [field.name for field in SOURCE.fields]


def test_an_open_port_wants_a_token(tmp_path: Path) -> None:
    """A host reachable from elsewhere needs a token of sufficient length; no message reveals it."""
    with pytest.raises(ValueError, match=r"api\.host = '0\.0\.0\.0' can be reached from other machines"):
        _settings(tmp_path, host="0.0.0.0")  # noqa: S104  # this is what must be refused
    with pytest.raises(ValueError, match="fewer than the required 16"):
        _settings(tmp_path, host="0.0.0.0", token="short-secret")  # noqa: S104, S106  # the same
    assert _settings(tmp_path, host="0.0.0.0", token=_TOKEN).api.port == 9109  # noqa: S104  # allowed
    assert _TOKEN not in repr(_settings(tmp_path, token=_TOKEN))


def test_text_that_would_be_no_article_is_refused(client: TestClient) -> None:
    """A text longer than the stream accepts would not be unique: it would be a dead letter."""
    for asked, told in (
        (
            {"body": "长" * 100_001, "id": "x"},
            "the body has 100001 characters: input.max_body_chars = 100000 is the limit",
        ),
        ({"body": "够短的一篇文章。", "title": "长" * 2_001}, "the title has 2001 characters"),
    ):
        answer = client.post("/v1/similar", json=asked)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert answer.json()["detail"].startswith(told)


@pytest.mark.parametrize("fault", [ZeroDivisionError, ValueError])
def test_fault_of_the_service_is_told_as_such(fault: type[Exception], directory: Path) -> None:
    """In the common error format, without the internal cause, which is for the log."""
    settings = _settings(directory)

    def broken() -> QueryService:
        raise fault("a secret of the inside")

    app = make_app(broken, settings, Health(60.0))
    answer = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False).get("/v1/status")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


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

    def nobody() -> QueryService:
        raise AssertionError("it was asked")

    async def receive() -> Message:
        return come.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(make_app(nobody, _settings(directory), Health(60.0))(_similar_scope(), receive, send))
    assert (sent, come) == ([], [])


def test_probes_answer_without_a_token(directory: Path) -> None:
    """They report how far the API has started; without a state, questions get 503 with the reason."""
    settings, health = _settings(directory, token=_TOKEN, host="0.0.0.0"), Health(60.0)  # noqa: S104  # nobody listens

    def no_desk() -> QueryService:
        raise StoreError("no state yet")

    health.set_waiting_for(Awaited.FIRST_STATE)
    with _asking(no_desk, settings, health) as client:
        for path, code, line in (
            ("/startupz", 503, "waiting for a state to read\n"),
            ("/readyz", 503, "waiting for a state to read\n"),
            ("/healthz", 200, "ok\n"),
        ):
            answer = client.get(path)
            assert (answer.status_code, answer.text) == (code, line)
        answer = client.get("/v1/status", headers={"Authorization": f"Bearer {_TOKEN}"})
        assert (answer.status_code, answer.json()) == (503, {"detail": "no state yet", "code": "unavailable"})
        health.start()
        health.set_waiting_for(None)
        assert [client.get(path).status_code for path in ("/startupz", "/readyz")] == [200, 200]
        assert client.get("/v1/status").status_code == 401
        assert (
            "/readyz" not in client.get("/openapi.json", headers={"Authorization": f"Bearer {_TOKEN}"}).json()["paths"]
        )
