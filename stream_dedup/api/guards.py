"""Who may ask, and how much at once: token, host, size, and what browsers are told.

Knows headers and bounds; knows nothing of questions.
"""

import hmac
import re
from collections.abc import Collection, Iterator

from fastapi import status
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_dedup.api.problems import Code, busy, problem

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
_OWN_HOSTS = {b"127.0.0.1", b"localhost", b"[::1]"}
_HOST = re.compile(rb"(\[[^\]]*\]|[^:]*)(:[0-9]*)?")


class HostGuard:
    """Refuses requests under the name of another host: a page of elsewhere that leads its name here must not ask.

    Args:
        app: behind it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        if scope["type"] != "http" or _host(scope) in _OWN_HOSTS:
            await self._app(scope, receive, send)
            return
        told = "without api.token the API answers by the names 127.0.0.1, localhost and [::1] alone: set a token"
        await problem(status.HTTP_400_BAD_REQUEST, Code.FOREIGN_HOST, told)(scope, receive, send)


class TokenGuard:
    """Refuses requests that do not name the token, before anything of them is read or looked up.

    Args:
        app: behind it.
        token: secret.
        free: paths that want none.
    """

    def __init__(self, app: ASGIApp, token: str, free: Collection[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._free = frozenset(free)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        if scope["type"] != "http" or scope["path"] in self._free or self._is_named(scope):
            await self._app(scope, receive, send)
            return
        told = "Authorization: Bearer and the token of api.token are needed"
        headers = {"WWW-Authenticate": "Bearer"}
        await problem(status.HTTP_401_UNAUTHORIZED, Code.NO_TOKEN, told, headers)(scope, receive, send)

    def _is_named(self, scope: Scope) -> bool:
        kind, _, given = _header(scope, b"authorization").partition(b" ")
        # Comparing takes the same time however much of it is right.
        return kind.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._token)


class HeadAsGet:
    """Answers HEAD as GET, without the body.

    Args:
        app: behind it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def bare(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, bare)


class BodyLimit:
    """Refuses requests whose body is larger than allowed, before it is read to its end.

    Args:
        app: behind it; gets whole requests.
        most: bytes.
        most_at_once: bytes of all bodies that are on their way.
    """

    def __init__(self, app: ASGIApp, most: int, most_at_once: int) -> None:
        self._app = app
        self._most = most
        self._most_at_once = most_at_once
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._body(receive)
        except ClientDisconnect:
            return  # nobody waits for an answer to half a question
        if not isinstance(body, bytes):
            await body(scope, receive, send)
            return
        rest: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(rest, None) or await receive()

        await self._app(scope, replay, send)

    async def _body(self, receive: Receive) -> bytes | JSONResponse:
        """Return a body, or why it is not read to its end."""
        parts, size = [], 0
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                part = message.get("body", b"")
                size += len(part)
                self._held += len(part)
                if size > self._most:
                    told = f"the body is larger than api.max_body_bytes = {self._most}"
                    return problem(status.HTTP_413_CONTENT_TOO_LARGE, Code.TOO_LARGE, told)
                if self._held > self._most_at_once:
                    return busy(f"{self._held} bytes of questions are on their way")
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
        finally:
            self._held -= size


class CrowdLimit:
    """Refuses questions beyond so many at once: they would wait for each other, and hold memory meanwhile.

    Args:
        app: behind it.
        most: questions at once.
        free: paths that are not counted.
    """

    def __init__(self, app: ASGIApp, most: int, free: Collection[str]) -> None:
        self._app = app
        self._most = most
        self._free = frozenset(free)
        self._asked = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        if scope["type"] != "http" or scope["path"] in self._free:
            await self._app(scope, receive, send)
            return
        if self._asked >= self._most:
            await busy(f"{self._most} questions are being answered already")(scope, receive, send)
            return
        self._asked += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._asked -= 1


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


def _host(scope: Scope) -> bytes:
    """Return the host that a request names, without its port; an empty one where that is no host."""
    match = _HOST.fullmatch(_header(scope, b"host"))
    return match[1].lower() if match is not None else b""


def _header(scope: Scope, name: bytes) -> bytes:
    """Return the value of a header, empty where it is missing or there are several."""
    values: list[bytes] = [value for key, value in scope["headers"] if key == name]
    return values[0] if len(values) == 1 else b""
