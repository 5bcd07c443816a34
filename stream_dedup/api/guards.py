"""Access control and limits: token, host, body size, concurrency, and the security headers for browsers.

Knows headers and limits; knows nothing of queries.
"""

import hmac
import re
from collections.abc import Collection, Iterator

from fastapi import status
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_dedup.api.problems import Code, busy, problem

# The page has everything it needs in its own files, and inserts data only as text.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
BROWSER_HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
}
_OWN_HOSTS = {b"127.0.0.1", b"localhost", b"[::1]"}
_HOST = re.compile(rb"(\[[^\]]*\]|[^:]*)(:[0-9]*)?")


class HostGuard:
    """Refuses requests under any other host name: a foreign page whose name is made to resolve here must not query us.

    Args:
        app: the app to guard.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or _host(scope) in _OWN_HOSTS:
            await self._app(scope, receive, send)
            return
        told = (
            "without api.token the API answers only as 127.0.0.1, localhost or [::1]: use one of them, or set a token"
        )
        await problem(status.HTTP_400_BAD_REQUEST, Code.FOREIGN_HOST, told)(scope, receive, send)


class TokenGuard:
    """Refuses requests without the token, before reading their bodies or looking anything up.

    Args:
        app: the app to guard.
        token: the secret.
        free: paths that need no token.
    """

    def __init__(self, app: ASGIApp, token: str, free: Collection[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._free = frozenset(free)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["path"] in self._free or self._is_named(scope):
            await self._app(scope, receive, send)
            return
        told = "send the header Authorization: Bearer with the token of api.token"
        headers = {"WWW-Authenticate": "Bearer"}
        await problem(status.HTTP_401_UNAUTHORIZED, Code.NO_TOKEN, told, headers)(scope, receive, send)

    def _is_named(self, scope: Scope) -> bool:
        kind, _, given = _header(scope, b"authorization").partition(b" ")
        # The comparison takes the same time however many characters match.
        return kind.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._token)


class HeadAsGet:
    """Answers HEAD like GET, without the body.

    Args:
        app: the app that answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def bare(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, bare)


class BodyLimit:
    """Refuses requests whose body is, or is announced to be, larger than allowed, without reading all of it.

    Args:
        app: the app that answers; it gets complete requests.
        most: limit for one body in bytes.
        most_at_once: limit for all bodies being received, in bytes.
    """

    def __init__(self, app: ASGIApp, most: int, most_at_once: int) -> None:
        self._app = app
        self._most = most
        self._most_at_once = most_at_once
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = self._refused(int(_header(scope, b"content-length") or 0)) or await self._body(receive)
        except ClientDisconnect:
            return  # nobody waits for an answer to an incomplete request
        if not isinstance(body, bytes):
            await body(scope, receive, send)
            return
        rest: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(rest, None) or await receive()

        await self._app(scope, replay, send)

    def _refused(self, size: int) -> JSONResponse | None:
        """Return the answer to a body of that size, announced or received, if it is too large."""
        if size <= self._most:
            return None
        told = f"the body is larger than api.max_body_bytes = {self._most}"
        return problem(status.HTTP_413_CONTENT_TOO_LARGE, Code.TOO_LARGE, told)

    async def _body(self, receive: Receive) -> bytes | JSONResponse:
        """Return a body, or the answer that refuses it."""
        parts, size = [], 0
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                part = message.get("body", b"")
                size += len(part)
                self._held += len(part)
                if refused := self._refused(size):
                    return refused
                if self._held > self._most_at_once:
                    return busy(f"{self._held} bytes of request bodies are being received")
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
        finally:
            self._held -= size


class ConcurrencyLimit:
    """Limits concurrent requests: more would only wait for each other, and hold memory meanwhile.

    Args:
        app: the app that answers.
        most: the largest number of concurrent requests.
        free: paths that are not counted.
    """

    def __init__(self, app: ASGIApp, most: int, free: Collection[str]) -> None:
        self._app = app
        self._most = most
        self._free = frozenset(free)
        self._asked = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["path"] in self._free:
            await self._app(scope, receive, send)
            return
        if self._asked >= self._most:
            await busy(f"{self._most} requests are already in progress")(scope, receive, send)
            return
        self._asked += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._asked -= 1


class BrowserHeaders:
    """Adds headers that tell browsers to run only the page's own files, and to cache nothing.

    Args:
        app: the app that answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and add the headers to its answer."""

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *BROWSER_HEADERS.items()]
            await send(message)

        await self._app(scope, receive, told)


def _host(scope: Scope) -> bytes:
    """Return the host name of a request, without the port; empty if it is not valid."""
    match = _HOST.fullmatch(_header(scope, b"host"))
    return match[1].lower() if match is not None else b""


def _header(scope: Scope, name: bytes) -> bytes:
    """Return the value of a header; empty if it is missing or occurs more than once."""
    values: list[bytes] = [value for key, value in scope["headers"] if key == name]
    return values[0] if len(values) == 1 else b""
