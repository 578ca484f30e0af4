"""The calls on the service itself: is it well, what does it do, and what can be called."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ...errors import StoreError
from ...gateway.history import Past
from ...gateway.views import Stats, Worker, worker_of
from ...model.counts import Tally
from ..metrics import MEDIA_TYPE, MetricsPage
from ..operation import Operation, json_response
from ..place import root_of
from ..problems import NotReadyError
from ..site import Site
from ..type_schemas import with_types


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
        self.openapi: dict[str, Any] = {}
        """The document, once the whole table is known."""

    def calls(self) -> list[Operation]:
        """The rows of the table."""
        well = {200: Health}
        return [
            Operation(
                method="GET",
                path="/health",
                handler=self.health,
                summary="Is the process alive?",
                answers=well,
                is_probe=True,
            ),
            Operation(
                method="GET",
                path="/livez",
                handler=self.health,
                summary="Is the process alive?",
                answers=well,
                is_probe=True,
            ),
            Operation(
                method="GET",
                path="/readyz",
                handler=self.ready,
                summary="Has it started, and does its store answer?",
                answers=well,
                is_probe=True,
                refusals=frozenset({503}),
            ),
            Operation(
                method="GET",
                path="/stats",
                handler=self.stats,
                summary="The number of jobs by status, and their rates",
                answers={200: Stats},
            ),
            Operation(
                method="GET",
                path="/stats/history",
                handler=self.history,
                summary="The last five minutes, second by second",
                answers={200: Past},
            ),
            Operation(
                method="GET",
                path="/stats/tallies",
                handler=self.tallies,
                summary="The number of jobs by queue, type and status",
                answers={200: TallyList},
            ),
            Operation(
                method="GET",
                path="/workers",
                handler=self.workers,
                summary="The processes that run jobs",
                answers={200: WorkerList},
            ),
            Operation(
                method="GET",
                path="/metrics",
                handler=self.metrics,
                summary="Metrics for Prometheus",
                answers={200: MEDIA_TYPE},
            ),
            Operation(
                method="GET",
                path="/openapi.json",
                handler=self.document,
                summary="This document",
                answers={200: dict},
            ),
        ]

    async def health(self, _: Request) -> Response:
        return json_response(Health())

    async def ready(self, _: Request) -> Response:
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
        return json_response(Health())

    async def stats(self, _: Request) -> Response:
        return json_response(await self._site.pipe.stats())

    async def history(self, _: Request) -> Response:
        return json_response(self._site.pipe.throughput.history.past())

    async def tallies(self, _: Request) -> Response:
        pipe = self._site.pipe
        counts = await pipe.async_store.call(pipe.store.counts)
        return json_response(TallyList([each for each in counts.tallies if each.count or each.total]))

    async def workers(self, _: Request) -> Response:
        return json_response(WorkerList([worker_of(each) for each in await self._site.pipe.workers()]))

    async def metrics(self, _: Request) -> Response:
        return Response(await self._metrics.render(), media_type=MEDIA_TYPE)

    async def document(self, request: Request) -> Response:
        described = with_types(self.openapi, self._site.pipe.types)
        return json_response({**described, "servers": [{"url": root_of(request.scope) or "/"}]})
