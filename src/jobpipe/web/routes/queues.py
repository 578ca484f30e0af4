"""The calls on queues."""

from __future__ import annotations

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ...gateway.views import QueueInfo
from ..operation import Operation, json_response
from ..problems import NoSuchPathError
from ..site import Site


class QueueList(Struct, frozen=True):
    """All queues, by name."""

    queues: list[QueueInfo]


class QueueRoutes:
    """Looking at queues, and holding them up."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._pipe = site.pipe

    def calls(self) -> list[Operation]:
        """The rows of the table."""
        answers, refusals = {200: QueueInfo}, frozenset({404, 422})
        return [
            Operation(
                method="GET", path="/queues", handler=self.all, summary="The queues", answers={200: QueueList}
            ),
            Operation(
                method="POST",
                path="/queues/{name}/pause",
                handler=self.pause,
                summary="Pause a queue: no more of its jobs start",
                answers=answers,
                refusals=refusals,
            ),
            Operation(
                method="POST",
                path="/queues/{name}/resume",
                handler=self.resume,
                summary="Resume a paused queue",
                answers=answers,
                refusals=refusals,
            ),
        ]

    async def all(self, _: Request) -> Response:
        return json_response(QueueList(await self._pipe.queues()))

    async def pause(self, request: Request) -> Response:
        name = _name_of(request)
        counts = await self._pipe.async_store.call(self._pipe.store.counts)
        self._site.check_new_name(counts.paused, name, "paused queues")
        return json_response(await self._pipe.pause(name))

    async def resume(self, request: Request) -> Response:
        return json_response(await self._pipe.resume(_name_of(request)))


def _name_of(request: Request) -> str:
    """The name in the path; no queue has one with a NUL."""
    name: str = request.path_params["name"]
    if "\0" in name:
        raise NoSuchPathError("no queue has a name with the character NUL")
    return name
