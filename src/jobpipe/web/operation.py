"""Operation: one row of the table of routes, from which the router and the OpenAPI document are made.

It stands as a decorator over the method that answers it. `Endpoint` is its ASGI side: whatever the method raises becomes
a problem, and nothing gets past it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from http import HTTPStatus
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from . import problems
from .body import ClientGone
from .query import NoQuery, read_query

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

Handler = Callable[[Request], Awaitable[Any]]
"""What it returns is sent as JSON, unless it is a Response, or another ASGI application that answers."""
H = TypeVar("H", bound=Callable[..., Awaitable[Any]])

_DECLARED = "operation"
"""The attribute of a handler that has its Operation."""

encode = msgspec.json.Encoder().encode


def json_response(value: Any, status: int = HTTPStatus.OK) -> Response:
    """The value as JSON."""
    return Response(encode(value), status, media_type="application/json")


class Stream(NamedTuple):
    """An answer that goes on: each of its pieces has the type."""

    media: str
    type: Any


@dataclass(frozen=True, slots=True)
class Operation:
    """What can be called, and what it answers."""

    method: str
    path: str
    summary: str
    _: KW_ONLY
    answers: Mapping[int, Any] = field(default_factory=dict)
    """Status → the type of the answer, its media type where it is no JSON, or a Stream; the first is the status of what
    the handler returns. Without any, it is 200 with the handler's type, or 204 if that is None."""
    body: Any = None
    """The type of what is sent; Any for any JSON value."""
    is_body_optional: bool = False
    names: Mapping[str, Any] = field(default_factory=dict)
    """The types of names in the path that are not like those of other calls."""
    query: type[Any] = NoQuery
    headers: Mapping[str, Any] = field(default_factory=dict)
    """The headers that mean something to this call only, each with its type."""
    refusals: Collection[int] = ()
    """The statuses of problems beside those that follow from the rest."""
    is_probe: bool = False
    """Is it open to everybody?"""

    def __call__(self, handler: H) -> H:
        """Declare the handler, a method of a class of routes."""
        answers = self.answers
        if not answers:
            returned = get_type_hints(handler)["return"]
            answers = {204: None} if returned is NoneType else {200: returned}
        setattr(handler, _DECLARED, replace(self, answers=answers))
        return handler


def endpoints_of(routes: object) -> list[Endpoint]:
    """All that the class of an object declares, in order, with the methods of the object."""
    declared = [(name, getattr(each, _DECLARED, None)) for name, each in vars(type(routes)).items()]
    return [Endpoint(found, getattr(routes, name)) for name, found in declared if found is not None]


class Endpoint:
    """The ASGI side of a call."""

    def __init__(self, operation: Operation, handler: Handler) -> None:
        self.operation = operation
        self._handler = handler
        self._status = next(iter(operation.answers))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            scope["query"] = read_query(scope["query_string"], self.operation.query)
            response = self._response(await self._handler(Request(scope, receive)))
        except ClientGone:
            return
        except Exception as error:
            response = problems.answer(error, scope)
        await response(scope, receive, send)

    def _response(self, returned: Any) -> ASGIApp:
        if returned is None:
            return Response(status_code=self._status)
        return returned if callable(returned) else json_response(returned, self._status)
