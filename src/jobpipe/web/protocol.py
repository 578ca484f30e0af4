"""Protocol: uvicorn's, with limits on how long and how large a request may come in, and a way to cut it off."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .events import ABORT, WRITE
from .problems import MEDIA_TYPE, not_http
from .safety import HEADERS

LONGEST_HEADERS = 65_536
"""Bytes."""
LONGEST_RECEIVE = 60.0
"""Seconds from the first byte of a request to its last, and from the connection to the first byte."""
LONGEST_DISCARD = 128 * 1024 * 1024
"""Bytes of a body that was refused already, which are taken so that the client comes to read why."""


class Corked:
    """A transport that sends head and body of an answer as one: what is written waits for the end of the turn.

    Why: uvicorn writes them apart, and each write is a call of the system, which takes as long as the rest of an enqueue.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)

    def flush(self) -> None:
        if self._held:
            held, self._held = self._held, []
            if not self._transport.is_closing():  # else there is nobody any more to send it to
                self._transport.write(b"".join(held))

    def write_through(self, data: bytes) -> None:
        self.flush()
        self._transport.write(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_receiving = False
        self._is_in_headers = False
        self._header_bytes = 0
        self._discarded = 0
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._corked = Corked(transport, self.loop)
        super().connection_made(self._corked)  # type: ignore[arg-type]
        self._patience = self.loop.call_later(LONGEST_RECEIVE, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_patience()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_receiving:
            if self._patience is None:
                self._patience = self.loop.call_later(LONGEST_RECEIVE, self._give_up)
            if self._is_in_headers:
                self._header_bytes += len(data)
                if self._header_bytes > LONGEST_HEADERS and not self.transport.is_closing():
                    self.send_400_response("The headers are too long.")
        elif self._patience is not None:
            self._end_patience()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        extensions = {ABORT: self.transport.abort, WRITE: self._write_at_once}
        self.scope["extensions"] = extensions  # type: ignore[typeddict-item]
        self._is_receiving = self._is_in_headers = True
        self._header_bytes = self._discarded = 0

    def on_headers_complete(self) -> None:
        self._is_in_headers = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self.cycle.response_complete:
            self._discarded += len(body)
            if self._discarded > LONGEST_DISCARD:
                self.transport.abort()

    def on_message_complete(self) -> None:
        self._is_receiving = False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What is not even HTTP is answered as all else is."""
        body = not_http(msg)
        headers = [*HEADERS, (b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
        lines = [b"HTTP/1.1 400 Bad Request", *(b"%b: %b" % each for each in headers), b"connection: close"]
        self.transport.write(b"\r\n".join([*lines, b"", body]))
        self.transport.close()

    def _write_at_once(self, chunk: bytes) -> bool:
        if self.flow.write_paused:
            return False
        if not self.transport.is_closing():
            # Why no limit: then the system is called at once, and it is known whether the connection takes more.
            self.transport.set_write_buffer_limits(high=0)
            self._corked.write_through(chunk)
        return True

    def _give_up(self) -> None:
        self._patience = None
        self.transport.abort()

    def _end_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
