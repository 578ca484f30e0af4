"""The calls on schedules."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from ...errors import BadInputError, ScheduleNotFoundError
from ...gateway.timetable import Expression, Interval, ScheduleInfo, ScheduleRequest, Zone
from ...model.request import Id, Instant, Name, convert
from ...model.schedule import Missed
from ..body import BESIDE_PAYLOAD, read_json
from ..operation import Operation, json_response
from ..site import Site
from .enqueue import Accepted

_TIMING = ("every", "cron", "tz")
_NULL = {"type": "null"}


class ScheduleList(Struct, frozen=True):
    """All schedules, by name."""

    schedules: list[ScheduleInfo]


class ScheduleBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule to create or change; a response may be edited and sent back.

    It has `every`, or `cron` in the time zone `tz`; null counts as not given. `name` must be the name in the path.
    `next_at`, `last_at` and `last_job` follow from the others and have no effect.
    """

    type: Name
    payload: Any = None
    queue: Name | UnsetType = UNSET
    every: Interval | None = None
    cron: Expression | None = None
    tz: Zone | None = None
    missed: Missed = Missed.ONE
    paused: bool | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    next_at: Annotated[tuple[Instant, ...], Meta(max_length=5)] = ()
    last_at: Instant | None = None
    last_job: Id | None = None

    RULES: ClassVar[dict[str, Any]] = {
        "if": {"required": ["every"], "properties": {"every": {"type": "number"}}},
        "then": {"properties": {"cron": _NULL, "tz": _NULL}},
        "else": {"required": ["cron"], "properties": {"cron": {"type": "string"}}},
    }
    """What its schema says beyond the fields."""

    def request(self) -> ScheduleRequest:
        """What it asks for."""
        given = {name: getattr(self, name) for name in ScheduleRequest.__struct_fields__}
        said = {name: value for name, value in given.items() if value is not None or name == "payload"}
        return ScheduleRequest(**said)


class ScheduleRoutes:
    """Looking at schedules, and changing them."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._schedules = site.pipe.schedules

    def calls(self) -> list[Operation]:
        """The rows of the table."""
        path, missing = "/schedules/{name}", frozenset({404})
        return [
            Operation(
                method="GET",
                path="/schedules",
                handler=self.all,
                summary="The schedules",
                answers={200: ScheduleList},
            ),
            Operation(
                method="GET",
                path=path,
                handler=self.get,
                summary="A schedule",
                answers={200: ScheduleInfo},
                refusals=missing,
            ),
            Operation(
                method="PUT",
                path=path,
                handler=self.put,
                summary="Create or change a schedule; with the same timing it keeps its ticks",
                answers={200: ScheduleInfo},
                body=ScheduleBody,
                refusals=missing,
            ),
            Operation(
                method="DELETE",
                path=path,
                handler=self.drop,
                summary="Delete a schedule; its jobs stay",
                answers={204: None},
                refusals=missing,
            ),
            Operation(
                method="POST",
                path=f"{path}/pause",
                handler=self.pause,
                summary="Pause a schedule: no tick fires until it is resumed",
                answers={200: ScheduleInfo},
                refusals=missing,
            ),
            Operation(
                method="POST",
                path=f"{path}/resume",
                handler=self.resume,
                summary="Resume a schedule with its next tick from now",
                answers={200: ScheduleInfo},
                refusals=missing | {422},
            ),
            Operation(
                method="POST",
                path=f"{path}/run",
                handler=self.run,
                summary="Enqueue its job now, in addition to its ticks",
                answers={202: Accepted},
                refusals=missing,
            ),
        ]

    async def all(self, _: Request) -> Response:
        return json_response(ScheduleList(await self._schedules.all()))

    async def get(self, request: Request) -> Response:
        return json_response(await self._schedules.get(_name_of(request)))

    async def put(self, request: Request) -> Response:
        limit = self._site.pipe.settings.max_payload + BESIDE_PAYLOAD
        name = _name_of(request)
        wanted: ScheduleBody = convert(await read_json(request.scope, request.receive, limit), ScheduleBody)
        if wanted.name is not UNSET and wanted.name != name:
            raise BadInputError("name", f"must be the name in the path, {name[:100]!r}, got {wanted.name!r}")
        if wanted.next_at:
            await self._check_ticks(name, wanted)
        known = await self._site.pipe.async_store.call(self._site.pipe.store.schedules)
        self._site.check_new_name({entry.name for entry in known.entries}, name, "schedules")
        return json_response(await self._schedules.put(name, wanted.request()))

    async def _check_ticks(self, name: str, wanted: ScheduleBody) -> None:
        """BadInputError for ticks that are not those of the schedule: who changed them would think that they count."""
        try:
            now = await self._schedules.get(name)
        except ScheduleNotFoundError:
            return
        if now.paused or any(getattr(wanted, each) not in (None, getattr(now, each)) for each in _TIMING):
            return  # it gets others anyhow
        # Why not those of the past: they were to come when somebody looked, and have come since.
        strange = set(wanted.next_at).difference(now.next_at)
        if any(tick > datetime.now(UTC) for tick in strange):
            raise BadInputError("next_at", "cannot be set, it follows from every, cron and tz: leave it out")

    async def drop(self, request: Request) -> Response:
        await self._schedules.drop(_name_of(request))
        return Response(status_code=204)

    async def pause(self, request: Request) -> Response:
        return json_response(await self._schedules.pause(_name_of(request)))

    async def resume(self, request: Request) -> Response:
        return json_response(await self._schedules.resume(_name_of(request)))

    async def run(self, request: Request) -> Response:
        self._site.check_takes_jobs()
        receipt = await self._schedules.run(_name_of(request), self._site.door)
        return json_response(Accepted(receipt.id, receipt.status), 202)


def _name_of(request: Request) -> str:
    """The name in the path; no store has one with a NUL, and not every store can be asked for it."""
    name: str = request.path_params["name"]
    if "\0" in name:
        raise ScheduleNotFoundError(name[:100])
    return name
