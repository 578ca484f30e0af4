"""Serve: the web server and the service as one thing that starts, waits for its stop, and stops gracefully.

At the stop, jobs end first while reads go on; then streams end, the server closes, and the store is let go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import uvicorn

from ..errors import StoreAwayError
from ..service import Service
from .app import WebApp, make_app
from .protocol import Protocol

if TYPE_CHECKING:
    from ..app import Jobpipe

logger = logging.getLogger("jobpipe")

_KEEP_ALIVE = 30
"""Seconds that an idle connection is kept."""
_CLOSING = 1
"""Seconds that connections have to end, after the grace of the jobs."""
_LOOK_AGAIN = 1.0
"""Seconds between two attempts to reach a store that is away at the start."""


class _Server(uvicorn.Server):
    """Without handlers of signals: they are the command's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the event loop, for `asyncio.Runner`: uvloop's where there is one."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def serve(
    pipe: Jobpipe, sockets: list[socket.socket], stop: asyncio.Event, on_ready: Callable[[], None]
) -> None:
    """Serve on the sockets, and run jobs, until `stop` is set; `on_ready` is called once it takes jobs."""
    service = Service(pipe)
    app = make_app(pipe, service)
    server = _server(app)
    serving = asyncio.create_task(server.serve(sockets))
    stopping = asyncio.create_task(stop.wait())
    try:
        if await _start(service, serving, stop):
            on_ready()
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        service.begin_stop()
        if service.is_started:
            await service.stop()
    finally:
        stopping.cancel()
        app.end_streams()
        server.should_exit = True
        try:
            await serving
        finally:
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


async def _start(service: Service, serving: asyncio.Task[None], stop: asyncio.Event) -> bool:
    """Start the service, as soon as its store is there; False if the stop came before."""
    is_away = False
    while not (stop.is_set() or serving.done()):
        try:
            await service.start()
        except StoreAwayError as error:
            if not is_away:
                logger.warning("the store is away, and waited for: %s", error)
            is_away = True
        else:
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_AGAIN):
                await stop.wait()
    return False
