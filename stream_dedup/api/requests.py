"""The form of requests: parameters, body and their limits, and what is refused before a request is processed.

Knows requests; knows nothing of answers.
"""

import json
import re
from collections.abc import Callable, Coroutine
from email.message import Message
from typing import Annotated, Any, NoReturn

from fastapi import Query, Request, Response, status
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from stream_dedup.api.problems import Code, RefusedError, quoted_input
from stream_dedup.api.threads import in_thread
from stream_dedup.ask.bounds import (
    LONGEST_ID,
    MAX_SIMILARITY,
    checked_id,
    checked_scope,
)
from stream_dedup.scope import MAX_SCOPE_BYTES

_MOST_MEMBERS = 100  # of a body, with those that are refused one by one
_MOST_VALUES = 100  # arrays and objects in a body, none of whose members is one
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)  # in JSON; the last one may be cut short


def _told(check: Callable[[str], str]) -> AfterValidator:
    """Return a validator that reports the errors of a check in its own words."""

    def checked(text: str) -> str:
        try:
            return check(text)
        except ValueError as error:
            raise PydanticCustomError("refused", "{told}", {"told": str(error)}) from None

    return AfterValidator(checked)


def _not_blank(text: str) -> str:
    if text.isspace():
        raise ValueError("the text is blank: there is nothing to compare")
    return text


# Limits come first: after a check of ours, pydantic's messages would call characters items.
_Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID), _told(checked_id)]
_Scope = Annotated[str, Field(max_length=MAX_SCOPE_BYTES), _told(checked_scope)]
Id = Annotated[_Id, Query(description="Id of the article.")]
OtherId = Annotated[
    _Id | None, Query(description="Id of the article to compare with; by default the one that it was linked to.")
]
ScopeName = Annotated[_Scope, Query(description="Scope of the article; empty if scopes are not used.")]


class SimilarRequest(BaseModel):
    """A text to find similar articles for."""

    model_config = ConfigDict(extra="forbid")

    body: Annotated[str, Field(min_length=1), _told(_not_blank)] = Field(description="The text.")
    title: str = Field(default="", description="Its words count if the profile has a title factor.")
    source: str = Field(
        default="", max_length=2_000, description="Who published it: lines known to be that site's are removed."
    )
    url: str = Field(
        default="", max_length=8_192, description="Where it was published; its host is used if there is no source."
    )
    scope: _Scope = Field(default="", description="It is compared only with articles of this scope.")
    id: _Id | None = Field(default=None, description="Id of an article to leave out of the decision.")
    limit: int = Field(default=10, ge=1, le=MAX_SIMILARITY, description="The largest number of articles to return.")

    @model_validator(mode="before")
    @classmethod
    def _has_few_members(cls, members: object) -> object:
        """Refuse a body with many members at once: an error for each would hold up all other requests."""
        if isinstance(members, dict) and len(members) > _MOST_MEMBERS:
            told = f"it has {len(members)} members: /openapi.json lists those that it may have"
            raise PydanticCustomError("refused", "{told}", {"told": told})
        return members


class Question(APIRoute):
    """A path that refuses unknown parameters, and bodies that are not JSON or not declared as JSON.

    Args:
        path: the path.
        endpoint: the function that answers; called in a thread.
        options: see `APIRoute`.
    """

    def __init__(self, path: str, endpoint: Callable[..., Response], **options: Any) -> None:  # noqa: ANN401  # FastAPI's
        super().__init__(path, in_thread(endpoint), **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        answer = super().get_route_handler()
        known = [parameter.alias for parameter in self.dependant.query_params]
        wants_body = self.body_field is not None

        async def ask(request: Request) -> Response:
            _check_parameters(request, known)
            if not wants_body:
                return await answer(request)
            _check_type(request)
            strict = _JsonRequest(request.scope, request.receive)
            await strict.json()
            return await answer(strict)

        return ask


class _JsonRequest(Request):
    """A request whose body is JSON according to RFC 8259, in UTF-8."""

    async def json(self) -> Any:  # noqa: ANN401  # any value
        """Return the value of the body.

        Raises:
            RefusedError: it is not valid JSON, or has many arrays or objects.
        """
        if not hasattr(self, "_value"):
            body = await self.body()
            _check_values(body)
            self._value = _json(body)
        return self._value


def _check_values(body: bytes) -> None:
    """Check that there are few arrays and objects: while they are made, the garbage collector looks at all of them.

    Raises:
        RefusedError: there are more.
    """
    # Most texts have so few brackets that their strings need not be told apart.
    if _ends(body) > _MOST_VALUES and (values := _ends(_STRING.sub(b"", body))) > _MOST_VALUES:
        told = f"the body has {values} arrays and objects: /openapi.json lists its members, none of which is one"
        raise _invalid(told)


def _ends(body: bytes) -> int:
    return body.count(b"]") + body.count(b"}")


def _json(body: bytes) -> Any:  # noqa: ANN401  # any value
    try:
        return json.loads(body.decode(), parse_constant=_no_constant)
    except RecursionError:
        told = "it is nested too deeply"
    except UnicodeDecodeError as error:
        told = f"byte {error.start} is not valid UTF-8"
    except ValueError as error:
        told = str(error).partition(";")[0]
    raise RefusedError(status.HTTP_400_BAD_REQUEST, Code.NOT_JSON, f"the body is not valid JSON: {told}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _check_type(request: Request) -> None:
    """Check that the body is declared as JSON.

    Raises:
        RefusedError: it is not.
    """
    message = Message()
    message["content-type"] = request.headers.get("content-type", "")
    kind = message.get_content_type()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        told = "send Content-Type: application/json and a JSON body"
        raise RefusedError(status.HTTP_415_UNSUPPORTED_MEDIA_TYPE, Code.WRONG_TYPE, told)


def _check_parameters(request: Request, known: list[str]) -> None:
    """Check that all parameters are known, and none occurs more than once.

    Raises:
        RefusedError: one is not, or does.
    """
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in known:
            there = f"its parameters are {', '.join(known)}" if known else "it has none"
            raise _invalid(f"{quoted_input(name)} is not a parameter of this path: {there}")
        if names.count(name) > 1:
            raise _invalid(f"{quoted_input(name)} is given {names.count(name)} times: once is enough")


def _invalid(told: str) -> RefusedError:
    return RefusedError(status.HTTP_422_UNPROCESSABLE_CONTENT, Code.INVALID, told)
