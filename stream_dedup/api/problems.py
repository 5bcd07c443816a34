"""The common form of all error answers: a status, a code for programs and a message for people.

Knows statuses and messages; knows nothing of who asks what.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from fastapi import FastAPI, Request, status
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from stream_dedup.ask.bounds import BlankError, TooLongError, quoted
from stream_dedup.ask.lookup import UnknownArticleError
from stream_dedup.ask.query_service import NoReasonError, UniqueArticleError
from stream_dedup.ask.texts import LostTextError
from stream_dedup.index.stores.store import StoreError
from stream_dedup.observe.recurring_faults import RecurringFaults
from stream_dedup.picklable import PicklableError
from stream_dedup.registry import RegistryError
from stream_dedup.stream.kafka.clients import BrokerError

_MOST_TOLD = 3  # mistakes reported per request
_LONGEST_NAME = 40  # characters of the request that errors quote


class Code(StrEnum):
    """What is wrong, for programs."""

    NOT_HTTP = "not_http"
    NOT_JSON = "not_json"
    FOREIGN_HOST = "foreign_host"
    NO_TOKEN = "no_token"  # noqa: S105  # not a secret
    NO_PATH = "no_path"
    UNKNOWN_ARTICLE = "unknown_article"
    WRONG_METHOD = "wrong_method"
    UNIQUE_ARTICLE = "unique_article"
    EXPIRED_LINK = "expired_link"
    LOST_TEXT = "lost_text"
    TOO_LARGE = "too_large"
    WRONG_TYPE = "wrong_type"
    INVALID = "invalid"
    UNAVAILABLE = "unavailable"
    BUSY = "busy"
    INTERNAL = "internal"


class Problem(BaseModel):
    """Why a request failed."""

    detail: str = Field(description="What is wrong and what to do, for people.")
    code: Code = Field(description="What is wrong, for programs.")


class _Kind(NamedTuple):
    status: int
    code: Code


_KINDS: dict[type[Exception], _Kind] = {
    UnknownArticleError: _Kind(status.HTTP_404_NOT_FOUND, Code.UNKNOWN_ARTICLE),
    UniqueArticleError: _Kind(status.HTTP_409_CONFLICT, Code.UNIQUE_ARTICLE),
    NoReasonError: _Kind(status.HTTP_409_CONFLICT, Code.EXPIRED_LINK),
    LostTextError: _Kind(status.HTTP_410_GONE, Code.LOST_TEXT),
    BlankError: _Kind(status.HTTP_422_UNPROCESSABLE_CONTENT, Code.INVALID),
    TooLongError: _Kind(status.HTTP_422_UNPROCESSABLE_CONTENT, Code.INVALID),
    BrokerError: _Kind(status.HTTP_503_SERVICE_UNAVAILABLE, Code.UNAVAILABLE),
    RegistryError: _Kind(status.HTTP_503_SERVICE_UNAVAILABLE, Code.UNAVAILABLE),
    StoreError: _Kind(status.HTTP_503_SERVICE_UNAVAILABLE, Code.UNAVAILABLE),
}
_WHEN = {
    status.HTTP_400_BAD_REQUEST: "The body is not valid JSON, or the host name is not this machine's.",
    status.HTTP_401_UNAUTHORIZED: "The token is missing or wrong.",
    status.HTTP_404_NOT_FOUND: "No such article is known.",
    status.HTTP_409_CONFLICT: "There is no second article to compare with.",
    status.HTTP_410_GONE: "The text is no longer in its topic.",
    status.HTTP_413_CONTENT_TOO_LARGE: "The body is larger than `api.max_body_bytes`.",
    status.HTTP_415_UNSUPPORTED_MEDIA_TYPE: "`Content-Type: application/json` is missing.",
    status.HTTP_422_UNPROCESSABLE_CONTENT: "A parameter, or a member of the body, is wrong.",
    status.HTTP_503_SERVICE_UNAVAILABLE: "The state or the broker cannot be read now, or there are too many requests.",
}


class RefusedError(PicklableError):
    """A request that does not follow the API's rules.

    Args:
        status: status of the answer.
        code: what is wrong.
        detail: the same in words.
    """

    def __init__(self, status: int, code: Code, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


def problem(status: int, code: Code, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return an error answer."""
    return JSONResponse(Problem(detail=detail, code=code).model_dump(mode="json"), status, headers)


def busy(detail: str) -> JSONResponse:
    """Return the answer to a request that exceeds a limit on concurrency."""
    told = f"{detail}: try again"
    return problem(status.HTTP_503_SERVICE_UNAVAILABLE, Code.BUSY, told, {"Retry-After": "1"})


def quoted_input(text: str) -> str:
    """Return something a client sent, for use in errors: its beginning, quoted, control characters escaped."""
    return quoted(text, _LONGEST_NAME)


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of a path's errors.

    Args:
        statuses: statuses of this path, besides those that every path has.
    """
    every = status.HTTP_400_BAD_REQUEST, status.HTTP_401_UNAUTHORIZED, status.HTTP_422_UNPROCESSABLE_CONTENT
    return {one: {"model": Problem, "description": _WHEN[one]} for one in sorted({*every, *statuses})}


def add_problems(app: FastAPI) -> None:
    """Make an API answer all errors in the common form."""
    recurring_faults = RecurringFaults()
    for error, kind in _KINDS.items():
        app.add_exception_handler(error, _told(kind, recurring_faults))
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _nowhere)
    app.add_exception_handler(Exception, _failed)


def _told(kind: _Kind, recurring_faults: RecurringFaults) -> Callable[[Request, Exception], JSONResponse]:
    def told(_request: Request, error: Exception) -> JSONResponse:
        if kind.status >= status.HTTP_500_INTERNAL_SERVER_ERROR:
            recurring_faults.warning("question_not_answered", error=type(error).__name__, detail=str(error))
        return problem(kind.status, kind.code, str(error))

    return told


def _refused(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RefusedError):
        raise error
    return problem(error.status, error.code, str(error))


def _invalid(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    mistakes: Sequence[Mapping[str, Any]] = error.errors()
    more = len(mistakes) - _MOST_TOLD
    told = "; ".join(map(_mistake, mistakes[:_MOST_TOLD])) + (f"; and {more} more" if more > 0 else "")
    return problem(status.HTTP_422_UNPROCESSABLE_CONTENT, Code.INVALID, told)


def _mistake(mistake: Mapping[str, Any]) -> str:
    """Return a mistake in words, without the value: it may be long, and text of an article."""
    place = [part for part in mistake["loc"][1:] if isinstance(part, str)]
    if mistake["type"] == "extra_forbidden":
        return f"{quoted_input(place[-1])} is not a member of the body: /openapi.json lists its members"
    # For text that cannot be encoded in UTF-8, pydantic does not report the place.
    told = "half a surrogate pair is not text" if mistake["type"] == "string_unicode" else mistake["msg"]
    return f"{place[-1] if place else 'the body'}: {told}"


def _nowhere(_request: Request, error: Exception) -> JSONResponse:
    """Answer requests for an unknown path, or with a method that the path does not accept."""
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == status.HTTP_404_NOT_FOUND:
        return problem(error.status_code, Code.NO_PATH, "there is no such path: /openapi.json lists the paths")
    if error.status_code == status.HTTP_405_METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "")
        told = f"this path accepts {allowed.replace('GET', 'GET and HEAD')}"
        return problem(error.status_code, Code.WRONG_METHOD, told, {"Allow": allowed.replace("GET", "GET, HEAD")})
    return problem(error.status_code, Code.INVALID, error.detail, error.headers)


def _failed(_request: Request, _error: Exception) -> JSONResponse:
    """Answer if the service is at fault; its log has the details."""
    told = "internal error of the service: see its log"
    return problem(status.HTTP_500_INTERNAL_SERVER_ERROR, Code.INTERNAL, told)
