"""The calls on schedules."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request

from ...errors import BadInputError, ScheduleNotFoundError
from ...gateway.timetable import Expression, Interval, ScheduleInfo, ScheduleRequest, Zone
from ...model.request import Id, Instant, Name
from ...model.schedule import Missed
from ..body import read_as
from ..operation import Operation
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

    @Operation("GET", "/schedules", "The schedules")
    async def all(self, _: Request) -> ScheduleList:
        return ScheduleList(await self._schedules.all())

    @Operation("GET", "/schedules/{name}", "A schedule")
    async def get(self, request: Request) -> ScheduleInfo:
        return await self._schedules.get(_name_of(request))

    @Operation(
        "PUT",
        "/schedules/{name}",
        "Create or change a schedule; with the same timing it keeps its ticks",
        body=ScheduleBody,
    )
    async def put(self, request: Request) -> ScheduleInfo:
        name = _name_of(request)
        wanted = await read_as(ScheduleBody, request, self._site.largest_body)
        if wanted.name is not UNSET and wanted.name != name:
            raise BadInputError("name", f"must be the name in the path, {name[:100]!r}, got {wanted.name!r}")
        if wanted.next_at:
            await self._check_ticks(name, wanted)
        known = await self._site.pipe.async_store.call(self._site.pipe.store.schedules)
        self._site.check_new_name({entry.name for entry in known.entries}, name, "schedules")
        return await self._schedules.put(name, wanted.request())

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

    @Operation("DELETE", "/schedules/{name}", "Delete a schedule; its jobs stay")
    async def drop(self, request: Request) -> None:
        await self._schedules.drop(_name_of(request))

    @Operation("POST", "/schedules/{name}/pause", "Pause a schedule: no tick fires until it is resumed")
    async def pause(self, request: Request) -> ScheduleInfo:
        return await self._schedules.pause(_name_of(request))

    @Operation("POST", "/schedules/{name}/resume", "Resume a schedule with its next tick from now")
    async def resume(self, request: Request) -> ScheduleInfo:
        return await self._schedules.resume(_name_of(request))

    @Operation(
        "POST",
        "/schedules/{name}/run",
        "Enqueue its job now, in addition to its ticks",
        answers={202: Accepted},
    )
    async def run(self, request: Request) -> Accepted:
        self._site.check_takes_jobs()
        receipt = await self._schedules.run(_name_of(request), self._site.door)
        return Accepted(receipt.id, receipt.status)


def _name_of(request: Request) -> str:
    """The name in the path; no store has one with a NUL, and not every store can be asked for it."""
    name: str = request.path_params["name"]
    if "\0" in name:
        raise ScheduleNotFoundError(name[:100])
    return name
