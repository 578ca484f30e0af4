"""The calls on schedules."""

from __future__ import annotations

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ..request import convert
from ..timetable import ScheduleInfo, ScheduleRequest
from .body import BESIDE_PAYLOAD, read_json
from .call import Call, json_response
from .enqueue import Accepted
from .site import Site


class ScheduleList(Struct, frozen=True):
    """All schedules, by name."""

    schedules: list[ScheduleInfo]


class ScheduleRoutes:
    """Looking at schedules, and changing them."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._schedules = site.pipe.schedules

    def calls(self) -> list[Call]:
        """The rows of the table."""
        path, missing = "/schedules/{name}", frozenset({404})
        return [
            Call(
                method="GET",
                path="/schedules",
                handler=self.all,
                summary="The schedules",
                answers={200: ScheduleList},
            ),
            Call(
                method="GET",
                path=path,
                handler=self.get,
                summary="A schedule",
                answers={200: ScheduleInfo},
                refusals=missing,
            ),
            Call(
                method="PUT",
                path=path,
                handler=self.put,
                summary="Make or change a schedule; one whose timing stays keeps its ticks",
                answers={200: ScheduleInfo},
                body=ScheduleRequest,
            ),
            Call(
                method="DELETE",
                path=path,
                handler=self.drop,
                summary="Forget a schedule; jobs that it has put in stay",
                answers={204: None},
                refusals=missing,
            ),
            Call(
                method="POST",
                path=f"{path}/pause",
                handler=self.pause,
                summary="Let no tick fire until it is resumed; a run by hand is none",
                answers={200: ScheduleInfo},
                refusals=missing,
            ),
            Call(
                method="POST",
                path=f"{path}/resume",
                handler=self.resume,
                summary="Undo a pause: it goes on with the next tick from now",
                answers={200: ScheduleInfo},
                refusals=missing | {422},
            ),
            Call(
                method="POST",
                path=f"{path}/run",
                handler=self.run,
                summary="Put its job in now, beside its ticks",
                answers={202: Accepted},
                refusals=missing,
            ),
        ]

    async def all(self, _: Request) -> Response:
        return json_response(ScheduleList(await self._schedules.all()))

    async def get(self, request: Request) -> Response:
        return json_response(await self._schedules.get(request.path_params["name"]))

    async def put(self, request: Request) -> Response:
        limit = self._site.pipe.settings.max_payload + BESIDE_PAYLOAD
        wanted = convert(await read_json(request.scope, request.receive, limit), ScheduleRequest)
        return json_response(await self._schedules.put(request.path_params["name"], wanted))

    async def drop(self, request: Request) -> Response:
        await self._schedules.drop(request.path_params["name"])
        return Response(status_code=204)

    async def pause(self, request: Request) -> Response:
        return json_response(await self._schedules.pause(request.path_params["name"]))

    async def resume(self, request: Request) -> Response:
        return json_response(await self._schedules.resume(request.path_params["name"]))

    async def run(self, request: Request) -> Response:
        self._site.check_takes_jobs()
        receipt = await self._schedules.run(request.path_params["name"])
        return json_response(Accepted(receipt.id, receipt.status), 202)
