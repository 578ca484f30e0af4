"""Serve: the web server and the service as one thing that starts, waits for its stop, and stops gracefully.

At the stop, jobs end first while reads go on; then streams end, the server closes, and the store is let go.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from .app import WebApp, make_app
from .listener import Listener
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
