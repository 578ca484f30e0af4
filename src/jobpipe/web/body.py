"""The body of a request: its type, its size and its encoding are checked before, not after, it is read.

No more than the limit is ever held; a body that is too long is refused as soon as that is known.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from ..model.json import parse
from ..model.request import convert
from .problems import BodyTooLargeError, ContentTypeError, TooManyBodiesError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Message, Receive, Scope

T = TypeVar("T")

JSON = b"application/json"
BESIDE_PAYLOAD = 65_536
"""Bytes that a body may have beyond those of the longest payload."""
LARGEST_BATCH_BODY = 16 * 1024 * 1024
LONG = 262_144
"""Bytes from which on a body is worked on in a thread, as it would hold up the event loop."""
_LONGEST_NUMBER = 18
MOST_IN_HAND = 128 * 1024 * 1024
"""Bytes of all bodies together that are being read or worked on."""
_SMALL = 65_536
_FOR_SMALL = MOST_IN_HAND // 8
"""Bytes of those that are kept for small bodies, so that a few large ones that never end do not keep all others out."""
HELD = "jobpipe.held"
"""Where the scope of a call has its `HeldBody`."""


class Bodies:
    """How many bytes of bodies are in hand."""

    def __init__(self, most: int = MOST_IN_HAND, for_small: int = _FOR_SMALL) -> None:
        self.most = most
        self.for_small = for_small
        self.in_hand = 0


class HeldBody:
    """The part of one call in them."""

    __slots__ = ("_all", "_size")

    def __init__(self, all: Bodies) -> None:
        self._all = all
        self._size = 0

    def add(self, size: int) -> None:
        """Take so many bytes more; TooManyBodiesError if there is no room for them."""
        bodies = self._all
        most = bodies.most if self._size + size <= _SMALL else bodies.most - bodies.for_small
        if bodies.in_hand + size > most:
            raise TooManyBodiesError("too many large bodies are being read: try again later")
        bodies.in_hand += size
        self._size += size

    def release(self) -> None:
        """The call is over."""
        self._all.in_hand -= self._size
        self._size = 0


class ClientGone(Exception):
    """The client has left; nobody waits for an answer."""


async def read_as(type: type[T], request: Request, limit: int) -> T:
    """The JSON value of the body, as the type."""
    found: T = convert(await _parsed(await read_body(request.scope, request.receive, limit)), type)
    return found


async def read_any(request: Request, limit: int, empty: Any) -> Any:
    """The JSON value of a body that may be left out: then it is `empty`, and needs no type."""
    body = await _read_optional(request.scope, request.receive, limit)
    return await _parsed(body) if body else empty


async def _parsed(body: bytes) -> Any:
    return parse(body) if len(body) < LONG else await asyncio.to_thread(parse, body)


async def _read_optional(scope: Scope, receive: Receive, limit: int) -> bytes:
    """`read_body`, or nothing where there is nothing.

    Why not by the headers: chunks may be none, and over HTTP/2 a body need not be announced.
    """
    if dict(scope["headers"]).get(b"content-length", b"0") != b"0":
        return await read_body(scope, receive, limit)
    message = await receive()
    while message["type"] == "http.request" and not message.get("body"):
        if not message.get("more_body"):
            return b""
        message = await receive()
    first = [message]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return await read_body(scope, again, limit)


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The body, if it is JSON by its headers and not longer than the limit."""
    kind = length = b""
    for name, value in scope["headers"]:
        if name == b"content-type":
            kind = value
        elif name == b"content-length":
            length = value
        elif name == b"content-encoding" and value.strip().lower() != b"identity":
            raise ContentTypeError("the body must be sent uncompressed, without Content-Encoding")
    if kind != JSON and not _is_json(kind):
        raise ContentTypeError("the body must be JSON, with the header Content-Type: application/json")
    if length and (len(length) > _LONGEST_NUMBER or int(length) > limit):
        raise _too_large(limit)
    held: HeldBody = scope[HELD]
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        held.add(len(body))
        return body
    parts, size = [], 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        held.add(len(parts[-1]))
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()


def _is_json(kind: bytes) -> bool:
    """JSON with parameters, of which only the charset that JSON has anyway is taken."""
    name, *parameters = [part.strip().lower() for part in kind.split(b";")]
    return name == JSON and all(each in (b"", b"charset=utf-8", b'charset="utf-8"') for each in parameters)


def _too_large(limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(
        f"the body is larger than {limit:,} bytes: store the data elsewhere and send its address"
    )
