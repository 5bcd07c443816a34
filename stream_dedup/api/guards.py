"""Who may ask, and how much at once: token, host, size, and what browsers are told.

Knows headers and bounds; knows nothing of questions.
"""

import hmac
from collections.abc import Awaitable, Callable, Iterator

from fastapi import HTTPException, Request, status
from fastapi.security import HTTPBearer
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The page has all that it needs in files of its own, and shows what is asked for as text.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
}


def token_guard(token: str) -> Callable[[Request], Awaitable[None]]:
    """Return what lets a request pass that names the token, or any where the token is empty.

    Args:
        token: secret.
    """
    bearer = HTTPBearer(auto_error=False)

    async def check(request: Request) -> None:
        if not token:
            return
        given = await bearer(request)
        # Comparing takes the same time however much of it is right.
        if given is None or not hmac.compare_digest(given.credentials.encode(), token.encode()):
            raise HTTPException(
                status.HTTP_401_UNAUTHORIZED,
                "Authorization: Bearer and the token of api.token are needed",
                {"WWW-Authenticate": "Bearer"},
            )

    return check


class BodyLimit:
    """Refuses requests whose body is larger than allowed, before it is read to its end.

    Args:
        app: behind it.
        most: bytes.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await self._body(receive)
        if body is None:
            answer = JSONResponse(
                {"detail": f"the body is larger than api.max_body_bytes = {self._most}"},
                status.HTTP_413_CONTENT_TOO_LARGE,
            )
            await answer(scope, receive, send)
            return
        rest: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(rest, None) or await receive()

        await self._app(scope, replay, send)

    async def _body(self, receive: Receive) -> bytes | None:
        parts, size = [], 0
        while True:
            message = await receive()
            part = message.get("body", b"")
            size += len(part)
            if size > self._most:
                return None
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)


class BrowserHeaders:
    """Tells browsers to run nothing but the page's own files, and to keep nothing.

    Args:
        app: behind it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on, and add to its answer."""

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS.items()]
            await send(message)

        await self._app(scope, receive, told)
