"""Serve: the web server and the service as one thing that starts, waits for its stop, and stops gracefully.

At the stop, jobs end first while reads go on; then streams end, the server closes, and the store is let go.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..service import Service
from .app import make_app
from .server.limits import Limits
from .server.server import Server

if TYPE_CHECKING:
    from ..app import Jobpipe


async def serve(
    pipe: Jobpipe,
    sockets: list[socket.socket],
    stop: asyncio.Event,
    on_ready: Callable[[], None],
    limits: Limits | None = None,
) -> None:
    """Serve on the sockets, and run jobs, until `stop` is set; `on_ready` is called once it takes jobs."""
    service = Service(pipe)
    app = make_app(pipe, service)
    server = Server(app, limits or Limits())
    server.start(sockets)
    try:
        if await service.start_when_possible(stop):
            on_ready()
        await stop.wait()
        service.begin_stop()
        if service.is_started:
            await service.stop()
    finally:
        app.end_streams()
        try:
            await server.close()
        finally:
            await service.close()
