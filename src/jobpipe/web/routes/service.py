"""The calls on the service itself: is it well, what does it do, and what can be called."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ...errors import StoreError
from ...gateway.history import Past
from ...gateway.views import Stats, Worker, worker_of
from ...model.counts import Tally
from ..asgi import root_of
from ..metrics import MEDIA_TYPE, MetricsPage
from ..openapi import document, with_types
from ..operation import Operation
from ..problems import NotReadyError
from ..site import Site


class Health(Struct, frozen=True):
    """The service is alive."""

    status: Literal["ok"] = "ok"


class TallyList(Struct, frozen=True):
    """The number of jobs, now and in total, by queue, type and status."""

    tallies: list[Tally]


class WorkerList(Struct, frozen=True):
    """All workers that are alive, by name."""

    workers: list[Worker]


class ServiceRoutes:
    """Probes, numbers, and the description of the API."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._metrics = MetricsPage(site)
        self.calls: Sequence[Operation] = ()
        """The whole table, once it is known."""

    @Operation("GET", "/health", "Is the process alive?", is_probe=True)
    async def health(self, _: Request) -> Health:
        return Health()

    @Operation("GET", "/livez", "Is the process alive?", is_probe=True)
    async def live(self, _: Request) -> Health:
        return Health()

    @Operation("GET", "/readyz", "Has it started, and does its store answer?", is_probe=True, refusals=(503,))
    async def ready(self, _: Request) -> Health:
        service, pipe = self._site.service, self._site.pipe
        if service is None:
            try:
                await pipe.gateway.probe()
            except StoreError:
                raise NotReadyError("the store is unavailable") from None
        elif not await service.is_ready():
            state = (
                "stopping"
                if service.is_stopping
                else "starting"
                if not service.is_started
                else "without its store"
            )
            raise NotReadyError(f"the service is {state}")
        return Health()

    @Operation("GET", "/stats", "The number of jobs by status, and their rates")
    async def stats(self, _: Request) -> Stats:
        return await self._site.pipe.stats()

    @Operation("GET", "/stats/history", "The last five minutes, second by second")
    async def history(self, _: Request) -> Past:
        return self._site.pipe.throughput.history.past()

    @Operation("GET", "/stats/tallies", "The number of jobs by queue, type and status")
    async def tallies(self, _: Request) -> TallyList:
        pipe = self._site.pipe
        counts = await pipe.async_store.call(pipe.store.counts)
        return TallyList([each for each in counts.tallies if each.count or each.total])

    @Operation("GET", "/workers", "The processes that run jobs")
    async def workers(self, _: Request) -> WorkerList:
        return WorkerList([worker_of(each) for each in await self._site.pipe.workers()])

    @Operation("GET", "/metrics", "Metrics for Prometheus", answers={200: MEDIA_TYPE})
    async def metrics(self, _: Request) -> Response:
        return Response(await self._metrics.render(), media_type=MEDIA_TYPE)

    @Operation("GET", "/openapi.json", "This document")
    async def document(self, request: Request) -> dict[str, Any]:
        described = with_types(self._document, self._site.pipe.types)
        return {**described, "servers": [{"url": root_of(request.scope) or "/"}]}

    @cached_property
    def _document(self) -> dict[str, Any]:
        # Why not before the first call: it takes longer than all else that makes an application, and few ask for it.
        return document(self.calls)
