"""The call on limits."""

from __future__ import annotations

from msgspec import Struct
from starlette.requests import Request

from ...gateway.limits import MOST_KEYS, LimitInfo
from ..operation import Operation
from ..site import Site


class LimitList(Struct, frozen=True):
    """All limits: those of queues, then those of types by type and key."""

    limits: list[LimitInfo]
    is_complete: bool
    """False if more keys than these may be in use."""


class LimitRoutes:
    """Looking at limits; they are set in the program."""

    def __init__(self, site: Site) -> None:
        self._pipe = site.pipe

    @Operation(
        "GET",
        "/limits",
        "The limits of queues and job types, their current use, and the jobs that hold them",
    )
    async def all(self, _: Request) -> LimitList:
        found = await self._pipe.limits()
        return LimitList(found, sum(each.key is not None for each in found) < MOST_KEYS)
