"""The calls on the durable state of jobs: their steps, and the signals that they are sent."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct
from starlette.requests import Request
from starlette.responses import Response

from ...errors import JobNotFoundError
from ...gateway.views import read_cursor
from ...model.durable import Step
from ...model.job import StepInfo, instant
from ...model.request import Id
from ..body import read_any
from ..operation import Operation, json_response
from ..query import StepsQuery
from ..site import Site
from .jobs import id_of


class StepList(Struct, frozen=True):
    """A page of steps, in the order in which they finished, and the cursor of the next page."""

    steps: list[StepInfo]
    next_cursor: str | None


class SentSignal(Struct, frozen=True):
    """A signal that the job has received, now or before."""

    id: str
    name: str


class DurableRoutes:
    """Looking at steps, and sending signals."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._pipe = site.pipe

    @Operation("GET", "/jobs/{id}/steps", "The finished steps of a job, with their results", query=StepsQuery)
    async def steps(self, request: Request) -> StepList:
        id, query = id_of(request), request.scope["query"]
        begin = read_cursor(None if query.cursor is UNSET else query.cursor) or 0
        state = await self._pipe.async_store.call(self._pipe.store.durable, id)
        if state is None:
            raise JobNotFoundError(id)
        end = begin + query.limit
        steps = [_shown(step) for step in state.steps[begin:end]]
        return StepList(steps, str(end) if end < len(state.steps) else None)

    @Operation(
        "POST",
        "/jobs/{id}/signals/{name}",
        "Send a signal to a job, with any JSON value as its payload; 200 if the same was sent before",
        answers={202: SentSignal, 200: SentSignal},
        body=Any,
        is_body_optional=True,
        names={"name": Id},
        refusals=(409,),
    )
    async def signal(self, request: Request) -> Response:
        id, name = id_of(request), request.path_params["name"]
        payload = await read_any(request, self._site.largest_body, None)
        receipt = await self._pipe.signal(id, name, payload)
        return json_response(SentSignal(receipt.id, receipt.name), 202 if receipt.is_new else 200)


def _shown(step: Step) -> StepInfo:
    """The step with its whole result. Why as it is stored: all together they may have megabytes, and are JSON already."""
    began_at, ended_at = instant(step.began_at), instant(step.ended_at)
    return StepInfo(name=step.name, began_at=began_at, ended_at=ended_at, result=Raw(step.result))
