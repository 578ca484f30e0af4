"""Operation: one row of the table of routes, from which the router and the OpenAPI document are made.

`Endpoint` is its ASGI side: whatever the handler raises becomes a problem, and nothing gets past it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from . import problems
from .body import ClientGone
from .query import NoQuery, read_query

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

Handler = Callable[[Request], Awaitable[Response]]

encode = msgspec.json.Encoder().encode


def json_response(value: Any, status: int = HTTPStatus.OK) -> Response:
    """The value as JSON."""
    return Response(encode(value), status, media_type="application/json")


class Stream(NamedTuple):
    """An answer that goes on: each of its pieces has the type."""

    media: str
    type: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What can be called, and what it answers."""

    method: str
    path: str
    handler: Handler | ASGIApp
    """Takes a request, or is an ASGI application where `is_asgi`."""
    summary: str
    answers: Mapping[int, Any]
    """Status → the type of the answer, its media type where it is no JSON, or a Stream."""
    body: Any = None
    """The type of what is sent."""
    is_body_optional: bool = False
    query: type[Any] = NoQuery
    headers: Mapping[str, Any] = field(default_factory=dict)
    """The headers that mean something to this call only, each with its type."""
    refusals: frozenset[int] = field(default_factory=frozenset)
    """The statuses of problems beside those that follow from the rest."""
    is_probe: bool = False
    """Is it open to everybody?"""
    is_asgi: bool = False

    @property
    def endpoint(self) -> ASGIApp:
        return self.handler if self.is_asgi else Endpoint(self)  # type: ignore[return-value]


class Endpoint:
    """The ASGI side of a call."""

    def __init__(self, operation: Operation) -> None:
        self._handler: Handler = operation.handler  # type: ignore[assignment]
        self._query = operation.query

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            scope["query"] = read_query(scope["query_string"], self._query)
            response = await self._handler(Request(scope, receive))
        except ClientGone:
            return
        except Exception as error:
            response = problems.answer(error, scope)
        await response(scope, receive, send)
