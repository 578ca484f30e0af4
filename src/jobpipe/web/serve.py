"""Serve: the web server and the service as one thing that starts, waits for its stop, and stops gracefully.

At the stop, jobs end first while reads go on; then streams end, the server closes, and the store is let go.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from .app import WebApp, make_app
from .server.limits import Limits
from .server.server import Server

if TYPE_CHECKING:
    from ..app import Jobpipe


async def serve(
    pipe: Jobpipe,
    sockets: list[socket.socket],
    stop: asyncio.Event,
    on_ready: Callable[[], None],
    commands: Callable[[], Awaitable[bool]] | None = None,
    on_closed: Callable[[], None] = lambda: None,
    limits: Limits | None = None,
) -> None:
    """Serve on the sockets, and run jobs, until `stop` is set; `on_ready` is called once it takes jobs.

    With `commands`, it accepts connections only while the last one was true.
    """
    service = pipe.make_service()

    def make() -> tuple[Server, WebApp]:
        app = make_app(pipe, service)
        return Server(app, limits or Limits()), app

    listener = Listener(make, sockets)
    if commands is None:
        listener.open()
        commands = asyncio.Event().wait  # none ever comes
    keeping = asyncio.create_task(listener.follow(commands, on_closed))
    stopping = asyncio.create_task(stop.wait())
    try:
        if await service.start_when_possible(stop):
            on_ready()
        await asyncio.wait([keeping, stopping], return_when=asyncio.FIRST_COMPLETED)
        if keeping.done():
            keeping.result()  # it goes on for ever, unless it fails
        service.begin_stop()
        if service.is_started:
            await service.stop()
    finally:
        stopping.cancel()
        keeping.cancel()
        try:
            await listener.close()
        finally:
            for each in sockets:
                each.close()
            await service.close()


class Listener:
    """Accepts connections while it is open; the supervisor says when (`acceptors.py`).

    A server and its application are made anew each time it opens. Closing it ends streams, and lets requests under way end.
    """

    def __init__(self, make: Callable[[], tuple[Server, WebApp]], sockets: Sequence[socket.socket]) -> None:
        self._make = make
        self._sockets = sockets
        self._open: tuple[Server, WebApp] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def follow(self, commands: Callable[[], Awaitable[bool]], on_closed: Callable[[], None]) -> None:
        """Open or close as told, for ever."""
        while True:
            if await commands():
                self.open()
            else:
                await self.close()
                on_closed()

    def open(self) -> None:
        """Accept connections; does nothing if it is open."""
        if self._open is None:
            self._open = self._make()
            # Why copies: a server closes its sockets, and another one may follow.
            self._open[0].start([each.dup() for each in self._sockets])

    async def close(self) -> None:
        """Accept no more, and return when none is left; does nothing if it is closed."""
        if self._open is not None:
            server, app = self._open
            self._open = None
            app.end_streams()
            self._closing = asyncio.create_task(server.close())
        if self._closing is not None:
            await asyncio.shield(self._closing)  # Why: if this is cancelled, the server goes on closing
