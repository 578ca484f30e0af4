"""Parser: bytes become requests, by httptools. What it keeps of a head, and what it is silent about, is counted.

It is fed small pieces: one that brings more than a request brings few, and the rest of the bytes can wait outside.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import httptools

from .request import Header, Request

PIECE = 4_096
"""Bytes to feed at a time."""
_BESIDE = 32
"""Bytes for which each header counts beside its own: so much it takes in memory, at least."""
_FRAMING = (b"content-length", b"transfer-encoding")


class Refusal(NamedTuple):
    """Why nothing more can be read from a connection."""

    status: int
    detail: str


class _TooLong(Exception):
    """More head than is allowed."""


NOT_HTTP = Refusal(400, "what was sent is not HTTP/1.1")
_TOO_LONG = Refusal(431, "the request line, the headers and the trailers are too long")


class RequestParser:
    """The requests of one connection, in order."""

    def __init__(self, most_head_bytes: int) -> None:
        self.requests: deque[Request] = deque()
        """Those whose heads have come and that were not taken yet."""
        self.refusal: Refusal | None = None
        """Set once, after the last request: then nothing is read any more."""
        self.is_in_head = False
        """Has a request begun whose head is not whole?"""
        self._tools = httptools.HttpRequestParser(self)
        self._most = most_head_bytes
        self._request: Request | None = None
        """The one that is not whole."""
        self._target = b""
        self._headers: list[Header] = []
        self._size = 0
        """What the head and the trailers of the request count so far."""
        self._silent = 0
        """Bytes since httptools last told anything: it keeps them if they are of a header."""
        self._is_ended = False
        self._is_muted = False

    def feed(self, data: memoryview) -> None:
        """Read a piece."""
        if self._is_ended:
            return
        self._silent += len(data)
        try:
            self._tools.feed_data(data)
            if self._silent > self._most:
                raise _TooLong
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(data[upgrade.args[0] :])
        except (httptools.HttpParserError, _TooLong) as error:
            if not self._is_ended:
                is_long = isinstance(error, _TooLong) or isinstance(error.__context__, _TooLong)
                self._refuse(_TOO_LONG if is_long else NOT_HTTP)

    def close(self) -> None:
        """Forget everything."""
        self._is_ended = True
        self.requests.clear()
        self._request = None
        self._tools = None  # type: ignore[assignment]  # Why: it holds on to this object, as this does to it

    def _refuse(self, refusal: Refusal) -> None:
        self.refusal = refusal
        self._is_ended = True
        if self._request is not None:
            self._request.is_broken = True
            self._request.ring()

    def _ignore_upgrade(self, rest: memoryview) -> None:
        """Go on with the body of a request that asks for another protocol, as some clients do with each of theirs.

        Why another parser: the first takes what follows such a head for the other protocol.
        """
        request = self._request
        if request is None or request.method == "CONNECT":
            self._refuse(NOT_HTTP)
            return
        framing = [b"%b: %b" % header for header in request.headers if header[0] in _FRAMING]
        self._tools = httptools.HttpRequestParser(self)
        self._is_muted = True
        try:
            self._tools.feed_data(b"\r\n".join([b"POST / HTTP/1.1", *framing, b"", b""]))
        except httptools.HttpParserError:
            self._refuse(NOT_HTTP)  # a framing that is none
            return
        finally:
            self._is_muted = False
        self.feed(rest)

    # What httptools tells

    def on_message_begin(self) -> None:
        if self._is_muted:
            return
        self._silent = self._size = 0
        self._target = b""
        self._headers = []
        self.is_in_head = True

    def on_url(self, url: bytes) -> None:
        if self._is_muted:
            return
        self._target += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_muted:
            return
        self._count(len(name) + len(value) + _BESIDE)
        if self.is_in_head:  # else it is a trailer, which means nothing here
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._is_muted:
            return
        self._silent = 0
        self.is_in_head = False
        tools = self._tools
        version = tools.get_http_version()
        if version not in ("1.1", "1.0"):
            raise httptools.HttpParserError("another version")
        is_last = version == "1.0" or not tools.should_keep_alive()
        self._request = Request(
            tools.get_method().decode("ascii"),
            self._target,
            version,
            self._headers,
            is_last=is_last,
            expects_continue=version == "1.1" and (b"expect", b"100-continue") in self._headers,
        )
        self.requests.append(self._request)

    def on_body(self, body: bytes) -> None:
        self._silent = 0
        if self._request is not None:
            self._request.add(body)

    def on_chunk_header(self) -> None:
        self._silent = 0

    def on_message_complete(self) -> None:
        self._silent = 0
        if self._request is None or self._tools.should_upgrade():
            return
        self._is_ended = self._request.is_last
        self._request.end()
        self._request = None

    def _count(self, size: int) -> None:
        self._silent = 0
        self._size += size
        if self._size > self._most:
            raise _TooLong
