"""Questions that the API cannot answer: each has a status of its own and a detail that says what is wrong.

Knows requests and statuses; who may ask is tested in test_access.
"""

import json

import pytest
from fastapi.testclient import TestClient

from tests.engine.api.asked import HOSTILE, JSON, LONG
from tests.engine.samples import articles


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
        ("/v1/status/", 404),
    ],
)
def test_what_is_wrong_has_a_status_of_its_own(client: TestClient, path: str, code: int) -> None:
    """Unknown and malformed requests have different status codes, each with a detail."""
    answer = client.get(path, follow_redirects=False)
    assert answer.status_code == code
    assert answer.json()["detail"]


def test_an_article_without_a_copy_has_no_reason(client: TestClient) -> None:
    """The error says that it is unique, and how to name another article to compare it with."""
    answer = client.get("/v1/reason", params={"id": HOSTILE.id})
    assert (answer.status_code, answer.json()["code"]) == (409, "unique_article")
    assert "is unique" in answer.json()["detail"]
    assert "`other`" in answer.json()["detail"]


def test_a_text_that_is_in_no_topic_is_gone(client: TestClient) -> None:
    """A text that did not come from a message cannot be read again."""
    answer = client.get("/v1/reason", params={"id": HOSTILE.id, "other": articles()[0].id})
    assert answer.status_code == 410


def test_of_a_long_id_errors_name_the_beginning(client: TestClient) -> None:
    """Errors quote only the beginning of a long id, even of a known one: ids may have up to 64 KiB."""
    answer = client.get("/v1/reason", params={"id": LONG.id, "other": HOSTILE.id})
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
        (json.dumps(dict.fromkeys(map(str, range(1_000)))).encode(), "the body: it has 1000 members"),
        (b'{"body": "   "}', "the text is blank"),
        (b'{"body": "<p>&nbsp;</p>"}', "the text is blank"),  # a dead letter, if it came as an article
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
    answer = client.post("/v1/similar", content=content, headers=JSON)
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
    answer = client.post("/v1/similar", content=content, headers=JSON)
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
        ("/v1/article?id=x&id=y", "'id' is given 2 times"),
        ("/v1/article?id=x&%69d=x", "'id' is given 2 times"),
        ("/v1/cluster?limit=1&id=x&limit=&limit=2", "'limit' is given 3 times"),
        ("/v1/reason?id=x&scope=&other=y&scope=", "'scope' is given 2 times"),
    ],
)
def test_repeated_parameters_are_refused(client: TestClient, path: str, told: str) -> None:
    """A proxy that judges the first one would let through what the last one asks for."""
    answer = client.get(path)
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


def test_other_methods_are_told_what_is_allowed(client: TestClient) -> None:
    """In the Allow header, as HTTP requires, and in words."""
    answer = client.delete("/v1/status")
    assert (answer.status_code, answer.headers["allow"], answer.json()["code"]) == (405, "GET, HEAD", "wrong_method")
    assert client.get("/v1/similar").headers["allow"] == "POST"


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
