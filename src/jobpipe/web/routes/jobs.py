"""The calls on jobs, but for putting one in: see `enqueue`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from starlette.requests import Request

from ...errors import BadInputError, JobNotFoundError
from ...gateway.explain import Explanation
from ...model.counts import Failures
from ...model.ids import check_id
from ...model.job import Job, JobError, JobStatus, Progress
from ...model.logs import JobLogs
from ...model.request import convert
from ..body import BESIDE_PAYLOAD, read_any, read_as
from ..operation import Operation
from ..query import JobFilter, JobsQuery, LogsQuery, WaitQuery
from ..site import Site


class ListedJob(Struct, frozen=True, kw_only=True):
    """A job as lists show it: without payload, result, history and steps."""

    id: str
    type: str
    queue: str
    status: JobStatus
    attempts: int
    max_retries: int
    priority: int
    run_at: datetime
    deadline: float | None
    expires_at: datetime | None
    unique: str | None
    tags: tuple[str, ...]
    error: JobError | None
    progress: Progress | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class JobList(Struct, frozen=True):
    """A page of jobs, newest first, and the cursor of the next page."""

    jobs: list[ListedJob]
    next_cursor: str | None


class Selection(JobFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs: at least one filter, or all of them."""

    all: bool = False

    RULES: ClassVar[dict[str, Any]] = {
        "if": {"properties": {"all": {"const": True}}, "required": ["all"]},
        "then": {"maxProperties": 1},
        "else": {"anyOf": [{"required": [name]} for name in JobFilter.__struct_fields__]},
    }
    """What its schema says beyond the fields."""


class RetryRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to retry a job: with its steps, or from the start; with another payload, always from the start."""

    from_: Literal["start"] | UnsetType = field(default=UNSET, name="from")
    payload: Any | UnsetType = UNSET


class Count(Struct, frozen=True):
    """The number of jobs."""

    count: int


class JobRoutes:
    """Inspecting and managing jobs."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._pipe = site.pipe

    @Operation("GET", "/jobs", "The newest jobs", query=JobsQuery)
    async def page(self, request: Request) -> JobList:
        page = await self._pipe.page(**request.scope["query"].given())
        jobs = [msgspec.convert(job, ListedJob, from_attributes=True) for job in page.jobs]
        return JobList(jobs, page.next_cursor)

    @Operation("POST", "/jobs/cancel", "Cancel all unfinished jobs that match", body=Selection)
    async def cancel_many(self, request: Request) -> Count:
        return await _each(request, self._pipe.cancel_many)

    @Operation("POST", "/jobs/retry", "Retry all failed and cancelled jobs that match", body=Selection)
    async def retry_many(self, request: Request) -> Count:
        self._site.check_takes_jobs()
        return await _each(request, self._pipe.retry_many)

    @Operation(
        "POST",
        "/jobs/delete",
        "Delete all finished jobs that match: their ids are free again",
        body=Selection,
    )
    async def delete_many(self, request: Request) -> Count:
        return await _each(request, self._pipe.delete_many)

    @Operation("GET", "/failures", "The failed jobs in groups, of those that failed last")
    async def failures(self, request: Request) -> Failures:
        return await self._pipe.failures()

    @Operation("GET", "/jobs/{id}", "A job with its history and its first steps")
    async def get(self, request: Request) -> Job:
        return await self._pipe.get(id_of(request))

    @Operation("DELETE", "/jobs/{id}", "Delete a finished job: its id is free again", refusals=(409,))
    async def delete(self, request: Request) -> None:
        await self._pipe.delete(id_of(request))

    @Operation(
        "GET", "/jobs/{id}/wait", "Wait until a job is finished, or the timeout has passed", query=WaitQuery
    )
    async def wait(self, request: Request) -> Job:
        id = id_of(request)
        job = await self._site.patiently(request, self._pipe.wait(id, request.scope["query"].timeout))
        return job or await self._pipe.get(id)

    @Operation(
        "GET",
        "/jobs/{id}/logs",
        "What the runs of a job logged; with after, only the lines after that number",
        query=LogsQuery,
    )
    async def logs(self, request: Request) -> JobLogs:
        return await self._pipe.logs(id_of(request), after=request.scope["query"].after)

    @Operation("GET", "/jobs/{id}/explain", "Why a job is not running")
    async def explain(self, request: Request) -> Explanation:
        return await self._pipe.explain(id_of(request))

    @Operation("POST", "/jobs/{id}/cancel", "Cancel a job", refusals=(409,))
    async def cancel(self, request: Request) -> Job:
        return await self._pipe.cancel(id_of(request))

    @Operation(
        "POST",
        "/jobs/{id}/retry",
        "Retry a failed or cancelled job, after its last step or from the start, with its payload or another",
        body=RetryRequest,
        is_body_optional=True,
        refusals=(409,),
    )
    async def retry(self, request: Request) -> Job:
        self._site.check_takes_jobs()
        id = id_of(request)
        asked = convert(await read_any(request, self._site.largest_body, {}), RetryRequest)
        return await self._pipe.retry(id, payload=asked.payload, from_start=asked.from_ == "start")


async def _each(request: Request, verb: Callable[..., Awaitable[int]]) -> Count:
    chosen = await read_as(Selection, request, BESIDE_PAYLOAD)
    return Count(await verb(**chosen.given()))


def id_of(request: Request) -> str:
    """The id in the path."""
    return known_id(request.path_params["id"])


def known_id(id: str) -> str:
    """An id; JobNotFoundError for what cannot be one, which no job has."""
    try:
        return check_id(id)
    except BadInputError:
        raise JobNotFoundError(id[:100]) from None
