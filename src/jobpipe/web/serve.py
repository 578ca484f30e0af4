"""Serve: the web server and the service as one thing that starts, waits for its stop, and stops gracefully.

At the stop, jobs end first while reads go on; then streams end, the server closes, and the store is let go.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import uvicorn

from ..service import Service
from .app import WebApp, make_app
from .listener import Listener
from .protocol import Protocol

if TYPE_CHECKING:
    from ..app import Jobpipe

_KEEP_ALIVE = 30
"""Seconds that an idle connection is kept."""
_CLOSING = 1
"""Seconds that connections have to end, after the grace of the jobs."""


class _Server(uvicorn.Server):
    """Without handlers of signals: they are the command's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(
    pipe: Jobpipe,
    sockets: list[socket.socket],
    stop: asyncio.Event,
    on_ready: Callable[[], None],
    commands: Callable[[], Awaitable[bool]] | None = None,
    on_closed: Callable[[], None] = lambda: None,
) -> None:
    """Serve on the sockets, and run jobs, until `stop` is set; `on_ready` is called once it takes jobs.

    With `commands`, it accepts connections only while the last one was true.
    """
    service = Service(pipe)

    def make() -> tuple[_Server, WebApp]:
        app = make_app(pipe, service)
        return _server(app), app

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


def _server(app: WebApp) -> _Server:
    return _Server(
        uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_CLOSING,
        )
    )
