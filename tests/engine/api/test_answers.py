"""What the API answers on a state, as its OpenAPI description says it.

Knows questions and answers; what is wrong with a question is tested in test_bad_questions.
"""

from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator

from stream_dedup.ask.answers import PublishedLink
from stream_dedup.ask.bounds import MAX_SIMILARITY, MOST_MEMBERS, MOST_SKIPPED
from stream_dedup.output_shapes import CLUSTER, LINK, SOURCE
from tests.engine.api.asked import COUNT, HOSTILE, JSON, TOKEN
from tests.engine.samples import articles


def test_status_tells_how_far_the_state_has_come(client: TestClient) -> None:
    """If no service answers, the status says so instead of guessing."""
    status = client.get("/v1/status").json()
    assert (status["articles_judged"], status["unseen_entries"], status["running"]) == (COUNT + 2, 0, False)
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


@pytest.mark.parametrize(
    "path", ["/", "/page.js", "/readyz", "/v1/status", "/v1/settings", "/v1/article?id=x", "/v1/no"]
)
def test_head_is_get_without_the_body(client: TestClient, path: str) -> None:
    """Same status, same headers."""
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers == got.headers


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
    token = {"authorization": f"Bearer {TOKEN}"}
    described = locked.get("/openapi.json", headers=token).json()
    asked, method = path.format(known=articles()[0].id, unique=quote(HOSTILE.id)), "post" if body else "get"
    responses = described["paths"][asked.partition("?")[0]][method]["responses"]
    kind = {} if body == "text" else JSON
    for headers, expected in ((token, code), ({}, 401)):
        answer = locked.request(method, asked, content=body, headers={**headers, **kind})
        assert answer.status_code == expected
        schema = responses[str(expected)]["content"]["application/json"]["schema"]
        Draft202012Validator({**schema, "components": described["components"]}).validate(answer.json())


def test_the_description_tells_how_to_sign_in(client: TestClient, locked: TestClient) -> None:
    """A generated client can send a token, and must if one is set."""
    described = locked.get("/openapi.json", headers={"authorization": f"Bearer {TOKEN}"}).json()
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
