"""Connection: requests and answers take turns on it, one at a time and in order; and whose turn it is has a time limit.

Nothing but a whole request head, the end of an answer, or a client that reads on sets a timer back. The server looks at
the timers (`check`), so that they cost a request nothing.
"""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from typing import TYPE_CHECKING, cast

from ..problems import refusal_answer
from .exchange import BadTarget, Exchange
from .parser import NOT_HTTP, PIECE, Refusal, RequestParser

if TYPE_CHECKING:
    from .request import Request
    from .server import Server

_MOST_BUFFERED = 65_536
"""Bytes of a body, or of requests behind the current one, that are read ahead."""
_TIMED_OUT = Refusal(408, "the request was not complete in time")
_BROKEN = Refusal(500, "an internal error occurred; see the log of the service")


class Connection(asyncio.BufferedProtocol):
    """One client."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._limits = server.limits
        self._parser = RequestParser(server.limits.head_bytes)
        self._transport: asyncio.Transport = None  # type: ignore[assignment]  # there before all else
        self._exchange: Exchange | None = None
        self._rest = bytearray()
        """What has come behind the current request, and was not parsed yet."""
        self._is_reading = True
        self._is_refused = False
        self._discarded = 0
        """Bytes after the refusal."""
        self._since = server.now()
        """When the client's turn began: with the connection, an answer, a request head, or a refusal."""
        self._has_been_served = False
        self._unflushed = b""
        """What is written to the client by the end of the loop's turn."""
        self._written = 0
        self._read = 0
        """Bytes that the client is known to have taken, and since when no more of them."""
        self._read_at: float | None = None
        self._writable: asyncio.Event | None = None
        self.is_write_paused = False
        self.client: tuple[str, int] | None = None
        self.address: tuple[str, int] | None = None

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, though by no base class
        self.client = _address(transport.get_extra_info("peername"))
        self.address = _address(transport.get_extra_info("sockname"))
        self.server.joined(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.left(self)
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.leave()
        self.resume_writing()
        self._parser.close()
        self._rest.clear()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.server.buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = self.server.buffer[:nbytes]
        if self._is_refused:
            self._discarded += nbytes
            if self._discarded > self._limits.linger_bytes:
                self.abort()
        elif self._exchange is not None and self._exchange.request.is_whole:
            self._keep(data)
        else:
            self._feed(data)

    def eof_received(self) -> None:
        """The transport closes, when all is sent."""
        self.flush()

    def pause_writing(self) -> None:
        self.is_write_paused = True

    def resume_writing(self) -> None:
        self.is_write_paused = False
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    # Requests

    def _feed(self, data: memoryview) -> None:
        parser = self._parser
        for at in range(0, len(data), PIECE):
            parser.feed(data[at : at + PIECE])
            if self._exchange is None and parser.requests:
                self._start(parser.requests.popleft())
            exchange = self._exchange
            if exchange is None:
                if self._is_refused or parser.refusal is not None:
                    break
            elif exchange.request.is_whole:
                self._keep(data[at + PIECE :])
                break
        self._look_at(self._exchange)

    def _look_at(self, exchange: Exchange | None) -> None:
        """See what has become of the current request."""
        refusal = self._parser.refusal
        if exchange is None:
            if refusal is not None:
                self._refuse(refusal)
        elif exchange.request.is_broken and refusal is not None:
            self._refuse(refusal)
        elif exchange.is_over:
            if exchange.request.is_whole:
                self._next()
            elif exchange.request.discarded > self._limits.discarded_bytes:
                self.abort()
        elif exchange.request.buffered > _MOST_BUFFERED:
            self._stop_reading()

    def _keep(self, data: memoryview) -> None:
        """For when the current request is answered."""
        self._rest += data
        if len(self._rest) > _MOST_BUFFERED:
            self._stop_reading()

    def _start(self, request: Request) -> Exchange | None:
        """Operation the application, if that can be; None if the client is refused."""
        self._since = self.server.now()
        self._exchange = exchange = Exchange(self, request)
        if request.is_broken:
            return exchange  # it is refused as soon as it is looked at
        try:
            scope = exchange.scope()
        except BadTarget:
            self._refuse(NOT_HTTP)
            return None
        self.server.run(exchange, scope)
        return exchange

    def body_was_taken(self) -> None:
        """There is room for more of it."""
        if not self._is_reading and self._exchange is not None and not self._exchange.request.is_whole:
            self._go_on_reading()

    def answered(self) -> None:
        """The answer to the current request is whole."""
        self._since = self.server.now()
        self._has_been_served = True
        if self._exchange is not None and self._exchange.request.is_whole:
            self._next()
        else:
            self._go_on_reading()  # the rest of the body, and let it go

    def _next(self) -> None:
        if self._exchange is not None and (self._exchange.request.is_last or self.server.is_closing):
            self._close()
            return
        self._exchange = None
        queued = self._parser.requests
        exchange = self._start(queued.popleft()) if queued else None
        if self._rest and (exchange is None or not exchange.request.is_whole):
            rest, self._rest = self._rest, bytearray()
            self._feed(memoryview(rest))
        else:
            self._look_at(exchange)
        if len(self._rest) <= _MOST_BUFFERED:
            self._go_on_reading()

    def _stop_reading(self) -> None:
        if self._is_reading and not self._transport.is_closing():
            self._is_reading = False
            self._transport.pause_reading()

    def _go_on_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            if not self._transport.is_closing():
                self._transport.resume_reading()

    # Answers

    def write(self, data: bytes) -> None:
        """Write by the end of the loop's turn.

        Why not at once: responses that are sent one after the other wake the client up once, which is most of their cost.
        """
        if not self._unflushed:
            self.server.flush_soon(self)
        self._unflushed += data
        if len(self._unflushed) > _MOST_BUFFERED:
            self.flush()

    def flush(self) -> None:
        data, self._unflushed = self._unflushed, b""
        if data and not self._transport.is_closing():
            self._written += len(data)
            self._transport.write(data)

    def write_through(self, data: bytes) -> None:
        """Write, and know at once whether the connection takes more."""
        if not self._transport.is_closing():
            # Why no limit: then the system is called at once.
            self._transport.set_write_buffer_limits(high=0)
            self._unflushed += data
            self.flush()

    def _close(self) -> None:
        """End it when all is sent."""
        self.flush()
        self._transport.close()

    async def until_writable(self) -> None:
        while self.is_write_paused:
            if self._writable is None:
                self._writable = asyncio.Event()
            await self._writable.wait()

    def fail(self, exchange: Exchange) -> None:
        """The application has left the exchange without a whole answer."""
        if exchange.is_over:
            return  # the answer is whole, and the connection may be serving the next call
        if exchange.is_started and not exchange.is_gone:
            self.abort()
        elif exchange is self._exchange:
            self._refuse(_BROKEN)

    def _refuse(self, refusal: Refusal) -> None:
        """Say why, and read no more; the client has a moment to read that before the connection is cut."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.leave()
            if exchange.is_started:
                self.abort()
                return
        if self._is_refused or self._transport.is_closing():
            return
        if refusal.status < 500:
            self._note(f"closed a connection, {refusal.status}: {refusal.detail}")
        self._is_refused = True
        self._since = self.server.now()
        self._rest.clear()
        self.write(refusal_answer(*refusal))
        self.flush()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._go_on_reading()

    def abort(self) -> None:
        """End it now, whatever is not sent."""
        if self._transport is not None:
            self._transport.abort()

    # The end

    def end(self) -> None:
        """Close it, after the answer that is on its way."""
        if self._exchange is None or (self._exchange.is_over and self._exchange.request.is_whole):
            self._close()

    @property
    def taken(self) -> int:
        """Bytes that the client has taken; those that the system still holds are none, where that can be known."""
        taken = self._written - self._transport.get_write_buffer_size()
        try:
            # Why: the system wakes us only when much of its buffer is free, which a slow reader takes minutes for.
            descriptor = self._transport.get_extra_info("socket").fileno()
            (held,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0\0\0\0"))
        except (OSError, ValueError, AttributeError):
            return taken
        return taken - int(held)

    def waiting_since(self) -> float | None:
        """Since when the client is waited for; None while it is the server's turn."""
        if self._exchange is None or self._is_refused:
            return self._since
        if self._read_at is not None:
            return self._read_at
        return self._since if self._is_reading and not self._exchange.request.is_whole else None

    def check(self, now: float) -> None:
        """End it if the client takes too long."""
        if self._is_unread(now):
            self._note("cut off a client that does not read its responses")
            self.abort()
            return
        limits, exchange, waited = self._limits, self._exchange, now - self._since
        if self._is_refused:
            if waited > limits.linger:
                self.abort()
        elif exchange is not None:
            if exchange.request.is_whole:
                if not self._is_reading and waited > limits.ahead:
                    self._note("cut off a client that sent too much during a long call")
                    self.abort()
            elif self._is_reading and waited > limits.body:
                self._refuse(_TIMED_OUT)
        elif self._parser.is_in_head:
            if waited > limits.head:
                self._refuse(_TIMED_OUT)
        elif waited > (limits.idle if self._has_been_served else limits.head):
            self._close()

    def _note(self, what: str) -> None:
        self.server.tally.note(what, f"from {self.client[0]}" if self.client else "")

    def _is_unread(self, now: float) -> bool:
        """Has the client taken nothing for too long, though there is something?"""
        if not self._transport.get_write_buffer_size():
            self._read_at = None
            return False
        read = self.taken
        if self._read_at is None or read != self._read:
            self._read, self._read_at = read, now
        return now - self._read_at > self._limits.unread


def _address(found: object) -> tuple[str, int] | None:
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) else None
