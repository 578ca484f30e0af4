"""The ASGI application: the guard, the short way for the hot path, and Starlette's router for all else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from . import problems
from .asgi import cut, path_of, root_of, safely
from .auth import Guard
from .body import HELD, Bodies, HeldBody
from .operation import endpoints_of
from .pages import Pages
from .problems import NoSuchPathError, WrongMethodError
from .routes.durable import DurableRoutes
from .routes.enqueue import Enqueue
from .routes.jobs import JobRoutes
from .routes.queues import QueueRoutes
from .routes.schedules import ScheduleRoutes
from .routes.service import ServiceRoutes
from .site import Site
from .sse.events import Events
from .sse.job_stream import JobStream
from .sse.stream import HEARTBEAT
from .tally import Tally

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from ..app import Jobpipe
    from ..worker.service import Service


_MOST_DELAYED = 100
"""Answers to wrong tokens that wait at the same time; the connections of more are cut."""


class WebApp:
    """A pipe as an ASGI application, and the service that runs its jobs in this process.

    Without a service it is the one that the pipe knows at the time of a call, if any; with `lifespan` a server that knows
    of lifespans starts and stops it. With `only_local`, none but this machine may call unless a token is set.
    """

    def __init__(
        self,
        pipe: Jobpipe,
        service: Service | None = None,
        *,
        lifespan: bool = False,
        heartbeat: float = HEARTBEAT,
        allowed_hosts: Collection[str] = (),
        only_local: bool = False,
    ) -> None:
        self._allowed_hosts = allowed_hosts
        self._only_local = only_local
        self.site = Site(pipe, service)
        self.events = Events(self.site, heartbeat)
        self.bodies = Bodies()
        self._tally = Tally()
        self._delayed = 0
        self._enqueue = Enqueue(self.site)
        own = ServiceRoutes(self.site)
        parts = (
            own,
            self._enqueue,
            JobRoutes(self.site),
            DurableRoutes(self.site),
            QueueRoutes(self.site),
            ScheduleRoutes(self.site),
            self.events,
            JobStream(self.site, heartbeat),
        )
        endpoints = [endpoint for part in parts for endpoint in endpoints_of(part)]
        self.calls = [endpoint.operation for endpoint in endpoints]
        """The table of all that can be called."""
        own.calls = self.calls
        self._probes = frozenset(call.path for call in self.calls if call.is_probe)
        self._pages = Pages()
        calls = [Route(each.operation.path, each, methods=[each.operation.method]) for each in endpoints]
        self._starlette = Starlette(
            routes=[*calls, *self._pages.routes()],
            exception_handlers={404: _no_such_path, 405: self._wrong_method},
            lifespan=self._lifespan if lifespan else None,
        )
        self._starlette.router.redirect_slashes = False

    @cached_property
    def _guard(self) -> Guard:
        # Why not before the first call: the settings of a pipe may be given after its application was made.
        return Guard(
            self.site.pipe.settings, self._allowed_hosts, only_local=self._only_local, tally=self._tally
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._starlette(scope, receive, send)
            return
        scope[HELD] = held = HeldBody(self.bodies)
        try:
            await self._answer(scope, receive, safely(send))
        finally:
            held.release()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (path := path_of(scope)) not in self._probes:
            try:
                if self._pages.has(path):
                    self._guard.check_place(scope)
                else:
                    self._guard.check(scope)
                    self.site.check_is_started()
            except problems.TooManyWrongTokensError as error:
                if await self._slow_down(error.delay) or not await cut(scope, receive):
                    await problems.answer(error, scope)(scope, receive, send)
                return
            except problems.HttpError as error:
                await problems.answer(error, scope)(scope, receive, send)
                return
            # Why past the router: it would cost as much as the rest of the call.
            if path == "/enqueue" and scope["method"] == "POST":
                await self._enqueue(scope, receive, send)
                return
        await self._starlette(scope, receive, send)

    async def _slow_down(self, delay: float) -> bool:
        """Let a guesser wait; False for one of a crowd, which would hold the connections of others."""
        if self._delayed >= _MOST_DELAYED:
            return False
        self._delayed += 1
        try:
            await asyncio.sleep(delay)
        finally:
            self._delayed -= 1
        return True

    def end_streams(self) -> None:
        """Have calls that take long, such as event streams, end at once."""
        self.site.end()
        self._tally.close()

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with self.site.pipe as pipe, pipe.running():
            yield
            self.end_streams()

    def _wrong_method(self, request: Request, _: Exception) -> Response:
        routes = [route for route in self._starlette.routes if isinstance(route, Route)]
        found = [route.methods or () for route in routes if route.path_regex.match(path_of(request.scope))]
        allowed = ", ".join(sorted({method for methods in found for method in methods}))
        error = WrongMethodError(f"{request.method} is not allowed here; allowed: {allowed}", allow=allowed)
        return problems.answer(error, request.scope)


def _no_such_path(request: Request, _: Exception) -> Response:
    place = f"{root_of(request.scope)}/openapi.json"
    return problems.answer(NoSuchPathError(f"there is nothing at this path; see {place}"), request.scope)


make_app = WebApp
"""The application for a pipe; the name by which other rooms know it."""
