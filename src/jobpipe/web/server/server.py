"""Server: accepts connections, no more than there may be; looks after their timers; and ends them.

Where the room is used up, the connection goes whose client has been waited for longest. All runs on the event loop.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from email.utils import formatdate
from typing import TYPE_CHECKING

from ..problems import refusal_answer
from ..tally import Tally
from .connection import Connection
from .limits import Limits

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Scope

    from .exchange import Exchange

_READ_AT_ONCE = 65_536
_BACKLOG = 2048
_ACCEPTED_AT_ONCE = 16
"""Connections, before others have their turn."""
_NO_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_FULL = refusal_answer(503, "too many connections are open: try again later")


class Server:
    """Serves an application on sockets that listen already."""

    def __init__(self, app: ASGIApp, limits: Limits | None = None, tally: Tally | None = None) -> None:
        self.limits = limits or Limits()
        self.is_closing = False
        self.buffer = memoryview(bytearray(_READ_AT_ONCE))
        """What was read last. Why one for all: it is used up before the next read."""
        self.date_line = b""
        self._app = app
        self.tally = tally or Tally()
        self._loop = asyncio.get_running_loop()
        self._most = self.limits.most_connections
        self._listeners: list[socket.socket] = []
        self._opening: set[asyncio.Task[object]] = set()
        self._connections: set[Connection] = set()
        self._unflushed: list[Connection] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._is_empty = asyncio.Event()
        self.now: Callable[[], float] = self._loop.time

    @property
    def connections(self) -> int:
        return len(self._connections)

    def start(self, listeners: list[socket.socket]) -> None:
        """Accept connections."""
        for each in listeners:
            each.setblocking(False)
            each.listen(_BACKLOG)
            self._listeners.append(each)
            self._loop.add_reader(each, self._accept, each)

    async def close(self) -> None:
        """Accept no more, let the calls that are on their way end within a moment, and cut off the rest."""
        self.is_closing = True
        while self._listeners:
            listener = self._listeners.pop()
            self._loop.remove_reader(listener)
            listener.close()
        for connection in list(self._connections):
            connection.end()
        until = self._loop.time() + self.limits.closing_at_most
        if not await self._all_end(until):
            for task in [*self._tasks, *self._opening]:
                task.cancel()
            # A stream still says that it is over.
            await self._all_end(max(until, self._loop.time() + self.limits.closing))
            for connection in list(self._connections):
                connection.abort()
            await asyncio.sleep(0)
        if self._sweeping is not None:
            self._sweeping.cancel()
        self.tally.close()

    async def _all_end(self, until: float) -> bool:
        """Wait for the calls that are on their way; False if they stand still, or take too long.

        Why by progress: as long as some end, or clients take what is sent, a busy machine is at work on the others.
        """
        while self._connections or self._tasks or self._opening:
            self._is_empty.clear()
            taken = self._taken()
            try:
                async with asyncio.timeout(min(self.limits.closing, until - self._loop.time())):
                    await self._is_empty.wait()
            except TimeoutError:
                if self._loop.time() >= until or self._taken() <= taken:
                    return False
        return True

    def _taken(self) -> int:
        return sum(connection.taken for connection in self._connections)

    # New connections

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, _address = listener.accept()
            except OSError as error:
                if error.errno in _NO_FILES:
                    self._wait_for_files(listener)
                return  # nobody is there, or has left already, or another process was faster
            if len(self._connections) + len(self._opening) >= self._most and not self._make_room():
                _turn_away(accepted)
                continue
            accepted.setblocking(False)
            task: asyncio.Task[object] = self._loop.create_task(self._open(accepted))
            self._opening.add(task)
            task.add_done_callback(self._opened)

    async def _open(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: Connection(self), accepted)
        except OSError:
            accepted.close()  # it has left already

    def _opened(self, task: asyncio.Task[object]) -> None:
        self._opening.discard(task)
        self._is_empty.set()

    def _make_room(self) -> bool:
        """Cut off the connection whose client has been waited for longest; False if there is none."""
        waiting = [(since, each) for each in self._connections if (since := each.waiting_since()) is not None]
        self.tally.note(
            f"more than {self._most:,} connections at once: those that wait longest are closed, or new ones refused"
        )
        if not waiting:
            return False
        _, oldest = min(waiting, key=lambda each: each[0])
        self._connections.discard(oldest)
        oldest.abort()
        return True

    def _wait_for_files(self, listener: socket.socket) -> None:
        """This process may open no more files: make room, and try again in a moment."""
        self._make_room()
        self._loop.remove_reader(listener)
        self._loop.call_later(self.limits.sweep, self._accept_again, listener)

    def _accept_again(self, listener: socket.socket) -> None:
        if not self.is_closing:
            self._loop.add_reader(listener, self._accept, listener)

    # What connections tell

    def joined(self, connection: Connection) -> None:
        self._connections.add(connection)
        if self._sweeping is None:
            self._set_date()
            self._sweeping = self._loop.call_later(self.limits.sweep, self._sweep)
        if self.is_closing:
            connection.end()

    def left(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._is_empty.set()

    def flush_soon(self, connection: Connection) -> None:
        """Flush it together with all others that have something to send in this turn of the loop."""
        if not self._unflushed:
            self._loop.call_soon(self._flush)
        self._unflushed.append(connection)

    def _flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, []
        for connection in unflushed:
            connection.flush()

    def run(self, exchange: Exchange, scope: Scope) -> None:
        """Operation the application in a task of its own."""
        task = self._loop.create_task(exchange.run(self._app, scope))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self.is_closing:
            self._is_empty.set()

    # By the clock

    def _sweep(self) -> None:
        if not self._connections:
            self._sweeping = None
            return
        self._sweeping = self._loop.call_later(self.limits.sweep, self._sweep)
        self._set_date()
        now = self.now()
        for connection in list(self._connections):
            connection.check(now)

    def _set_date(self) -> None:
        self.date_line = b"date: %b\r\n" % formatdate(usegmt=True).encode()


def _turn_away(accepted: socket.socket) -> None:
    """Say why there is no room."""
    with accepted:
        try:
            accepted.setblocking(False)
            accepted.send(_FULL)
        except OSError:
            pass
