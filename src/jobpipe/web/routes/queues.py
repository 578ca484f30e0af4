"""The calls on queues, and on the limits of queues and job types."""

from __future__ import annotations

from msgspec import Struct
from starlette.requests import Request

from ...gateway.limits import MOST_KEYS, LimitInfo
from ...gateway.views import QueueInfo
from ..operation import Operation
from ..problems import NoSuchPathError
from ..site import Site


class QueueList(Struct, frozen=True):
    """All queues, by name."""

    queues: list[QueueInfo]


class LimitList(Struct, frozen=True):
    """All limits: those of queues, then those of types by type and key."""

    limits: list[LimitInfo]
    is_complete: bool
    """False if more keys than these may be in use."""


class QueueRoutes:
    """Looking at queues, and holding them up; looking at limits, which are set in the program."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._pipe = site.pipe

    @Operation("GET", "/queues", "The queues")
    async def all(self, _: Request) -> QueueList:
        return QueueList(await self._pipe.queues())

    @Operation("POST", "/queues/{name}/pause", "Pause a queue: no more of its jobs start")
    async def pause(self, request: Request) -> QueueInfo:
        name = _name_of(request)
        counts = await self._pipe.async_store.call(self._pipe.store.counts)
        self._site.check_new_name(counts.paused, name, "paused queues")
        return await self._pipe.pause(name)

    @Operation("POST", "/queues/{name}/resume", "Resume a paused queue")
    async def resume(self, request: Request) -> QueueInfo:
        return await self._pipe.resume(_name_of(request))

    @Operation(
        "GET", "/limits", "The limits of queues and job types, their current use, and the jobs that hold them"
    )
    async def limits(self, _: Request) -> LimitList:
        found = await self._pipe.limits()
        return LimitList(found, sum(each.key is not None for each in found) < MOST_KEYS)


def _name_of(request: Request) -> str:
    """The name in the path; no queue has one with a NUL."""
    name: str = request.path_params["name"]
    if "\0" in name:
        raise NoSuchPathError("no queue has a name with the character NUL")
    return name
