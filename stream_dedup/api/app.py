"""The API's paths: which question is asked where, and which status its errors have.

Knows paths, parameters and their bounds; knows nothing of how an answer is found.
"""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, status
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware.trustedhost import TrustedHostMiddleware

from stream_dedup.api.guards import BodyLimit, BrowserHeaders, token_guard
from stream_dedup.api.page import add_page
from stream_dedup.article import Article
from stream_dedup.ask.answers import ArticleAnswer, ClusterAnswer, ReasonAnswer, SimilarAnswers, StatusAnswer
from stream_dedup.ask.desk import Desk, NoReasonError
from stream_dedup.ask.lookup import UnknownArticleError
from stream_dedup.ask.texts import LostTextError
from stream_dedup.index.store import StoreError
from stream_dedup.observe.complaints import Complaints
from stream_dedup.observe.health import Health
from stream_dedup.registry import RegistryError
from stream_dedup.settings import Settings
from stream_dedup.stream.clients import BrokerError
from stream_dedup.version import __version__

_LONGEST_ID = 8_192  # characters: longer than any line of a request may be
_MOST_MEMBERS, _MOST_SIMILAR, _MOST_LATEST = 1_000, 100, 200
_STATUS: dict[type[Exception], int] = {
    UnknownArticleError: status.HTTP_404_NOT_FOUND,
    NoReasonError: status.HTTP_409_CONFLICT,
    LostTextError: status.HTTP_410_GONE,
    ValueError: status.HTTP_422_UNPROCESSABLE_CONTENT,
    BrokerError: status.HTTP_503_SERVICE_UNAVAILABLE,
    RegistryError: status.HTTP_503_SERVICE_UNAVAILABLE,
    StoreError: status.HTTP_503_SERVICE_UNAVAILABLE,
}

Id = Annotated[str, Query(min_length=1, max_length=_LONGEST_ID, description="Of the article.")]
ScopeName = Annotated[str, Query(max_length=256, description="Of the article; empty where there are none.")]


class Asking(BaseModel):
    """A text that is asked about."""

    model_config = ConfigDict(extra="forbid")

    body: str = Field(min_length=1, description="The text.")
    title: str = Field("", description="Words of it count where a profile has a title factor.")
    source: str = Field("", max_length=2_000, description="Who published it: lines of that site are left out.")
    url: str = Field("", max_length=8_192, description="Where; its host stands in for the source.")
    scope: str = Field("", max_length=256, description="Within which alone it is compared.")
    id: str = Field(
        "?", min_length=1, max_length=_LONGEST_ID, description="Of an article that is left out of the decision."
    )
    limit: int = Field(10, ge=1, le=_MOST_SIMILAR, description="Articles that are told.")


def make_app(desk: Callable[[], Desk], settings: Settings, health: Health) -> FastAPI:
    """Return the API.

    Args:
        desk: returns who answers; raises a `StoreError` as long as there is none.
        settings: of the API; shown without secrets.
        health: what the probes ask, which nobody has to name a token for.
    """
    complaints = Complaints()
    app = FastAPI(title="stream_dedup", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(BodyLimit, most=settings.api.max_body_bytes)
    app.add_middleware(BrowserHeaders)
    if not settings.api.token:
        # A page of elsewhere that calls itself by this machine's address must not read along.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost", "[::1]", "::1"])
    guarded = [Depends(token_guard(settings.api.token))]
    app.include_router(_questions(desk, settings), prefix="/v1", dependencies=guarded)
    app.add_api_route("/openapi.json", _described(app), dependencies=guarded, include_in_schema=False)
    app.include_router(_probes(health))
    add_page(app)
    for kind, code in _STATUS.items():
        app.add_exception_handler(kind, _told(code, complaints))
    return app


def _probes(health: Health) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    # Not in the threads that questions wait for.
    def route(path: str, probe: Callable[[], tuple[bool, str]]) -> None:
        @router.get(path)
        async def ask() -> PlainTextResponse:
            well, line = probe()
            return PlainTextResponse(f"{line}\n", status.HTTP_200_OK if well else status.HTTP_503_SERVICE_UNAVAILABLE)

    route("/startupz", health.started)
    route("/healthz", health.alive)
    route("/readyz", health.ready)
    return router


def _questions(desk: Callable[[], Desk], settings: Settings) -> APIRouter:
    router = APIRouter(tags=["questions"])

    @router.get("/status")
    def get_status() -> StatusAnswer:
        """Return how far the service has come."""
        return desk().status()

    @router.get("/settings")
    def get_settings() -> dict[str, Any]:
        """Return the settings of the service, secrets left out."""
        return settings.redacted()

    @router.get("/article")
    def get_article(id: Id, scope: ScopeName = "") -> ArticleAnswer:  # noqa: A002  # the name of the parameter
        """Return what became of an article."""
        return desk().article(id, scope)

    @router.get("/cluster")
    def get_cluster(
        id: Id,  # noqa: A002  # the name of the parameter
        scope: ScopeName = "",
        limit: Annotated[int, Query(ge=0, le=_MOST_MEMBERS, description="Members that are told.")] = 100,
        offset: Annotated[int, Query(ge=0, le=10_000, description="Members before these.")] = 0,
    ) -> ClusterAnswer:
        """Return the cluster that an article is in, its members and when they came."""
        return desk().cluster(id, scope, most=limit, skipped=offset)

    @router.get("/reason")
    def get_reason(
        id: Id,  # noqa: A002  # the name of the parameter
        scope: ScopeName = "",
        other: Annotated[str | None, Query(min_length=1, max_length=_LONGEST_ID)] = None,
    ) -> ReasonAnswer:
        """Return why an article is a copy of the one that it was linked to, or of another."""
        return desk().reason(id, scope, other)

    @router.post("/similar")
    def post_similar(asking: Asking) -> SimilarAnswers:
        """Return what a text is like among all that was judged, without remembering it."""
        article = Article(asking.id, asking.body, asking.title, asking.url, asking.source, scope=asking.scope)
        return desk().similar(article, asking.limit)

    @router.get("/latest")
    def get_latest(
        limit: Annotated[int, Query(ge=1, le=_MOST_LATEST, description="Links that are told.")] = 20,
    ) -> list[dict[str, Any]]:
        """Return the newest links, the newest first, as they stand in the topic of duplicates."""
        return desk().latest(limit)

    return router


def _described(app: FastAPI) -> Callable[[], dict[str, Any]]:
    def described() -> dict[str, Any]:
        return get_openapi(title=app.title, version=app.version, routes=app.routes)

    return described


def _told(code: int, complaints: Complaints) -> Callable[[Request, Exception], JSONResponse]:
    def told(_request: Request, error: Exception) -> JSONResponse:
        if code >= status.HTTP_500_INTERNAL_SERVER_ERROR:
            complaints.warning("question_not_answered", error=type(error).__name__, detail=str(error))
        return JSONResponse({"detail": str(error)}, code)

    return told
