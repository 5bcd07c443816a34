"""The API's web page: static files, without a build step or anything from other hosts.

Knows names and types of files; knows nothing of what they show.
"""

from collections.abc import Callable
from importlib.resources import files
from pathlib import PurePath

from fastapi import APIRouter, Response

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_FIRST = "page.html"


def page_router() -> APIRouter:
    """Return the paths of the page. It contains no data, so no token is needed for it."""
    router = APIRouter(include_in_schema=False)
    for file in files(__name__).iterdir():
        kind = _KINDS.get(PurePath(file.name).suffix)
        if kind is not None:
            path = "/" if file.name == _FIRST else f"/{file.name}"
            router.add_api_route(path, _sent(file.read_bytes(), f"{kind}; charset=utf-8"))
    return router


def _sent(content: bytes, kind: str) -> Callable[[], Response]:
    def sent() -> Response:
        return Response(content, media_type=kind)

    return sent
