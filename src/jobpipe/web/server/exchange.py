"""Exchange: one request and its answer, as a call of the ASGI application.

The head of an answer waits for the first part of its body, so that both are one write. Once the client is gone nothing
is written, and `receive` says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httptools

from ..asgi import ABORT, WRITE
from .request import Header, Request

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Scope

    from .connection import Connection

logger = logging.getLogger("jobpipe")

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {each.value: b"HTTP/1.1 %d %b\r\n" % (each, each.phrase.encode()) for each in HTTPStatus}
_WITHOUT_BODY = (204, 304)
_ASGI = {"version": "3.0", "spec_version": "2.3"}


class BadTarget(Exception):
    """What is asked for is not a path."""


@dataclass(slots=True, eq=False, repr=False)
class Exchange:
    """Lives from the head of a request until its answer is whole, or the client is gone."""

    _connection: Connection
    request: Request
    is_started: bool = False
    """Has the answer begun?"""
    is_over: bool = False
    """Is the answer whole?"""
    is_gone: bool = False
    """Is there nobody any more to answer?"""
    _has_taken_all: bool = False
    _held: bytes = b""
    """The head of the answer, until there is a body to it."""
    _has_body: bool = True
    _is_chunked: bool = False
    _left: int | None = None
    """Bytes that the body must still have, where its length is known."""

    def scope(self) -> Scope:
        """The ASGI scope of the call; BadTarget."""
        request, connection = self.request, self._connection
        raw_path, path, query = split_target(request.target)
        extensions: dict[str, Any] = {ABORT: connection.abort}
        if request.version == "1.1":
            extensions[WRITE] = self.write_at_once
        return {
            "type": "http",
            "asgi": _ASGI,
            "http_version": request.version,
            "method": request.method,
            "scheme": "http",
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": request.headers,
            "client": connection.client,
            "server": connection.address,
            "extensions": extensions,
        }

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        """Operation the application; whatever it does, the exchange is over afterwards."""
        try:
            await app(scope, self.receive, self.send)
            if not self.is_over and not self.is_gone:
                raise RuntimeError("the application returned before its answer was whole")
        except asyncio.CancelledError:
            self._connection.abort()
        except Exception:
            logger.exception("unexpected error in %s %r", scope["method"], scope["path"])
            self._connection.fail(self)

    def leave(self) -> None:
        """The client is gone, or nothing more can be said to it."""
        self.is_gone = True
        self.request.discard()
        self.request.ring()

    # What the application calls

    async def receive(self) -> Message:
        request = self.request
        if request.expects_continue and not (self.is_started or self.is_gone):
            request.expects_continue = False
            self._connection.write(CONTINUE)
        while not (self.is_over or self.is_gone):
            if request.buffered or (request.is_whole and not self._has_taken_all):
                body, self._has_taken_all = request.take(), request.is_whole
                self._connection.body_was_taken()
                return {"type": "http.request", "body": body, "more_body": not self._has_taken_all}
            await request.changed()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self._connection.is_write_paused:
            await self._connection.until_writable()
        if self.is_gone:
            return
        if not self.is_started:
            if message["type"] != "http.response.start":
                raise RuntimeError(f"an answer begins with http.response.start, got {message['type']!r}")
            self._begin(message["status"], message.get("headers", ()))
        elif message["type"] != "http.response.body" or self.is_over:
            raise RuntimeError(f"{message['type']!r} does not fit: the answer has begun, or is whole already")
        else:
            self._go_on(message.get("body", b""), message.get("more_body", False))

    def write_at_once(self, chunk: bytes) -> bool:
        """Write a chunk that is framed already, unless it would have to wait."""
        if self._connection.is_write_paused:
            return False
        if not self.is_gone:
            self._connection.write_through(chunk)
        return True

    # The answer

    def _begin(self, status: int, headers: Iterable[Header]) -> None:
        self.is_started = True
        self._has_body = self.request.method != "HEAD" and status not in _WITHOUT_BODY
        lines = [self._connection.server.date_line]
        is_last = self.request.is_last or self._connection.server.is_closing
        for name, value in headers:
            if name == b"content-length":
                self._left = int(value)
            elif name == b"connection":
                is_last = is_last or value.lower() == b"close"
                continue
            lines.append(b"%b: %b\r\n" % (name, value))
        if self._left is None and self._has_body:
            if self.request.version == "1.1":
                self._is_chunked = True
                lines.append(b"transfer-encoding: chunked\r\n")
            else:
                is_last = True
        self.request.is_last = is_last
        if is_last:
            lines.append(b"connection: close\r\n")
        block = b"".join(lines)
        if block.count(b"\n") != len(lines) or block.count(b"\r") != len(lines):
            raise RuntimeError("a header of the answer holds a line end")
        self._held = b"%b%b\r\n" % (_STATUS_LINES[status], block)

    def _go_on(self, body: bytes, more: bool) -> None:
        if not self._has_body:
            body = b""
        elif self._is_chunked:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            if not more:
                body += b"0\r\n\r\n"
        elif self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("the answer is not as long as its Content-Length says")
        if self._held:
            body, self._held = self._held + body, b""
        if body:
            self._connection.write(body)
        if not more:
            self.is_over = True
            self.request.discard()
            self.request.ring()
            self._connection.answered()


def split_target(target: bytes) -> tuple[bytes, str, bytes]:
    """The path as it was sent, as it is meant, and the query."""
    try:
        if target.startswith(b"/") and b"#" not in target:
            raw_path, _, query = target.partition(b"?")
        else:
            parsed = httptools.parse_url(target)
            raw_path, query = parsed.path or b"/", parsed.query or b""
        path = raw_path.decode("ascii")
    except (httptools.HttpParserError, UnicodeDecodeError):
        raise BadTarget from None
    return raw_path, unquote(path) if "%" in path else path, query
