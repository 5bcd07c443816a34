"""The API's paths: which query each one answers, and which error statuses it has.

Knows paths, parameters and their limits; knows nothing of how an answer is found.
"""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Response, status
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

from stream_dedup.api.guards import BodyLimit, BrowserHeaders, ConcurrencyLimit, HeadAsGet, HostGuard, TokenGuard
from stream_dedup.api.page import page_router
from stream_dedup.api.problems import add_problems, error_responses
from stream_dedup.api.requests import Id, OtherId, Question, ScopeName, SimilarRequest
from stream_dedup.api.threads import MOST_AT_ONCE
from stream_dedup.article import Article
from stream_dedup.ask.answers import (
    ArticleAnswer,
    ClusterAnswer,
    PublishedLink,
    ReasonAnswer,
    SimilarAnswers,
    StatusAnswer,
)
from stream_dedup.ask.bounds import MOST_MEMBERS, MOST_SKIPPED, UNNAMED
from stream_dedup.ask.query_service import QueryService
from stream_dedup.observe.health import Health
from stream_dedup.settings import Settings
from stream_dedup.version import __version__

_MOST_LATEST = 200
_TOKEN_SCHEME = "token"  # noqa: S105  # its name in OpenAPI


def make_app(queries: Callable[[], QueryService], settings: Settings, health: Health) -> BrowserHeaders:
    """Return the API.

    Args:
        queries: returns the service that answers; raises a `StoreError` as long as there is none.
        settings: the service's settings; shown without secrets.
        health: queried by the probes, which need no token.
    """
    app = FastAPI(
        title="stream_dedup",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # Behind a TLS proxy a redirect would lead to plain http, and clients would send the token there.
        redirect_slashes=False,
    )
    app.routes.extend(_questions(queries, settings).routes)
    app.add_api_route("/openapi.json", _description(app, settings.api.token), include_in_schema=False)
    open_to_all = [_probes(health), page_router()]
    for router in open_to_all:
        app.routes.extend(router.routes)
    add_problems(app)
    free = [route.path for router in open_to_all for route in router.routes if isinstance(route, APIRoute)]
    _add_guards(app, settings, free)
    # Wrapped around everything: the handler of internal errors is outside of the guards.
    return BrowserHeaders(app)


def _add_guards(app: FastAPI, settings: Settings, free: list[str]) -> None:
    """Add the guards that see requests first. The last one added is the outermost."""
    app.add_middleware(ConcurrencyLimit, most=MOST_AT_ONCE, free=free)
    # Outside of that, so that incomplete requests do not count towards the limit.
    most = settings.api.max_body_bytes
    app.add_middleware(BodyLimit, most=most, most_at_once=MOST_AT_ONCE * most)
    if settings.api.token:
        app.add_middleware(TokenGuard, token=settings.api.token, free=free)
    else:
        app.add_middleware(HostGuard)
    app.add_middleware(HeadAsGet)


def _probes(health: Health) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    # Async, so that probes do not need one of the threads that answer queries.
    def route(path: str, probe: Callable[[], tuple[bool, str]]) -> None:
        @router.get(path)
        async def ask() -> PlainTextResponse:
            well, line = probe()
            return PlainTextResponse(f"{line}\n", status.HTTP_200_OK if well else status.HTTP_503_SERVICE_UNAVAILABLE)

    route("/startupz", health.started)
    route("/healthz", health.alive)
    route("/readyz", health.ready)
    return router


def _questions(queries: Callable[[], QueryService], settings: Settings) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["questions"], route_class=Question)

    @router.get("/status", response_model=StatusAnswer, responses=error_responses(503))
    def get_status() -> Response:
        """Return the service's progress and state."""
        return _in_json(queries().status())

    @router.get("/settings", response_model=Settings, responses=error_responses(503))
    def get_settings() -> JSONResponse:
        """Return the settings of the service, without secrets."""
        return JSONResponse(settings.redacted())

    @router.get("/article", response_model=ArticleAnswer, responses=error_responses(404, 503))
    def get_article(id: Id, scope: ScopeName = "") -> Response:  # noqa: A002  # the name of the parameter
        """Return what was decided on an article."""
        return _in_json(queries().article(id, scope))

    @router.get("/cluster", response_model=ClusterAnswer, responses=error_responses(404, 503))
    def get_cluster(
        id: Id,  # noqa: A002  # the name of the parameter
        scope: ScopeName = "",
        limit: Annotated[
            int, Query(ge=0, le=MOST_MEMBERS, description="The largest number of members to return.")
        ] = 100,
        offset: Annotated[int, Query(ge=0, le=MOST_SKIPPED, description="Number of members to skip.")] = 0,
    ) -> Response:
        """Return the cluster that an article is in, with its members and timeline."""
        return _in_json(queries().cluster(id, scope, most=limit, skipped=offset))

    @router.get("/reason", response_model=ReasonAnswer, responses=error_responses(404, 409, 410, 503))
    def get_reason(
        id: Id,  # noqa: A002  # the name of the parameter
        scope: ScopeName = "",
        other: OtherId = None,
    ) -> Response:
        """Return why an article is, or is not, a copy of the one that it was linked to, or of another."""
        return _in_json(queries().reason(id, scope, other))

    @router.post("/similar", response_model=SimilarAnswers, responses=error_responses(413, 415, 503))
    def post_similar(asking: SimilarRequest) -> Response:
        """Return the judged articles that a text resembles, without storing it."""
        article = Article(UNNAMED, asking.body, asking.title, asking.url, asking.source, scope=asking.scope)
        return _in_json(queries().similar(article, asking.limit, besides=asking.id))

    @router.get("/latest", response_model=list[PublishedLink], responses=error_responses(503))
    def get_latest(
        limit: Annotated[int, Query(ge=1, le=_MOST_LATEST, description="The largest number of links to return.")] = 20,
    ) -> JSONResponse:
        """Return the newest links, newest first, with the fields they have in the topic of duplicates."""
        return JSONResponse(queries().latest(limit))

    return router


def _in_json(answer: BaseModel) -> Response:
    """Return an answer as it is: FastAPI would check it against its own model first, in one more thread."""
    return Response(answer.model_dump_json(), media_type="application/json")


def _description(app: FastAPI, token: str) -> Callable[[], dict[str, Any]]:
    """Return a function that describes the API in OpenAPI. The token is required if one is set, else optional."""

    def told() -> dict[str, Any]:
        description = get_openapi(title=app.title, version=app.version, routes=app.routes)
        scheme = {"type": "http", "scheme": "bearer", "description": "The secret of the setting api.token."}
        description["components"]["securitySchemes"] = {_TOKEN_SCHEME: scheme}
        description["security"] = [{_TOKEN_SCHEME: []}, *([] if token else [{}])]
        return description

    return told
