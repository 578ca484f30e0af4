"""The calls on jobs, but for putting one in: see `enqueue`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from starlette.requests import Request
from starlette.responses import Response

from ...errors import BadInputError, JobNotFoundError
from ...gateway.explain import Explanation
from ...model.counts import Failures
from ...model.ids import check_id
from ...model.job import Job, JobError, JobStatus, Progress
from ...model.logs import JobLogs
from ...model.request import Name, Search, Tag, convert
from ..body import BESIDE_PAYLOAD, has_body, read_json
from ..operation import Operation, json_response
from ..query import JobsQuery, LogsQuery, WaitQuery
from ..site import Site


class ListedJob(Struct, frozen=True, kw_only=True):
    """A job as lists show it: without payload, result and history."""

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


_FILTERS = ("status", "type", "queue", "tag", "error")


class Selection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs: at least one filter, or all of them."""

    status: JobStatus | UnsetType = UNSET
    type: Name | UnsetType = UNSET
    queue: Name | UnsetType = UNSET
    tag: Tag | UnsetType = UNSET
    error: Search | UnsetType = UNSET
    all: bool = False

    RULES: ClassVar[dict[str, Any]] = {
        "if": {"properties": {"all": {"const": True}}, "required": ["all"]},
        "then": {"maxProperties": 1},
        "else": {"anyOf": [{"required": [name]} for name in _FILTERS]},
    }
    """What its schema says beyond the fields."""


class RetryRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to retry a job: with another payload, from the start."""

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

    def calls(self) -> list[Operation]:
        """The rows of the table."""
        job, job_id = {200: Job}, "/jobs/{id}"
        missing, clash = frozenset({404}), frozenset({404, 409})
        return [
            Operation(
                method="GET",
                path="/jobs",
                handler=self.page,
                summary="The newest jobs",
                answers={200: JobList},
                query=JobsQuery,
            ),
            Operation(
                method="POST",
                path="/jobs/cancel",
                handler=self.cancel_many,
                summary="Cancel all unfinished jobs that match",
                answers={200: Count},
                body=Selection,
            ),
            Operation(
                method="POST",
                path="/jobs/retry",
                handler=self.retry_many,
                summary="Retry all failed and cancelled jobs that match",
                answers={200: Count},
                body=Selection,
            ),
            Operation(
                method="POST",
                path="/jobs/delete",
                handler=self.delete_many,
                summary="Delete all finished jobs that match: their ids are free again",
                answers={200: Count},
                body=Selection,
            ),
            Operation(
                method="GET",
                path="/failures",
                handler=self.failures,
                summary="The failed jobs in groups, of those that failed last",
                answers={200: Failures},
            ),
            Operation(
                method="GET",
                path=job_id,
                handler=self.get,
                summary="A job with its history",
                answers=job,
                refusals=missing,
            ),
            Operation(
                method="DELETE",
                path=job_id,
                handler=self.delete,
                summary="Delete a finished job: its id is free again",
                answers={204: None},
                refusals=clash,
            ),
            Operation(
                method="GET",
                path=f"{job_id}/wait",
                handler=self.wait,
                summary="Wait until a job is finished, or the timeout has passed",
                answers=job,
                query=WaitQuery,
                refusals=missing,
            ),
            Operation(
                method="GET",
                path=f"{job_id}/logs",
                handler=self.logs,
                summary="What the runs of a job logged; with after, only the lines after that number",
                answers={200: JobLogs},
                query=LogsQuery,
                refusals=missing,
            ),
            Operation(
                method="GET",
                path=f"{job_id}/explain",
                handler=self.explain,
                summary="Why a job is not running",
                answers={200: Explanation},
                refusals=missing,
            ),
            Operation(
                method="POST",
                path=f"{job_id}/cancel",
                handler=self.cancel,
                summary="Cancel a job",
                answers=job,
                refusals=clash,
            ),
            Operation(
                method="POST",
                path=f"{job_id}/retry",
                handler=self.retry,
                summary="Retry a failed or cancelled job, with its payload or another",
                answers=job,
                body=RetryRequest,
                is_body_optional=True,
                refusals=clash,
            ),
        ]

    async def page(self, request: Request) -> Response:
        query: JobsQuery = request.scope["query"]
        given = {name: value for name, value in msgspec.structs.asdict(query).items() if value is not UNSET}
        page = await self._pipe.page(**given)
        jobs = [msgspec.convert(job, ListedJob, from_attributes=True) for job in page.jobs]
        return json_response(JobList(jobs, page.next_cursor))

    async def get(self, request: Request) -> Response:
        return json_response(await self._pipe.get(_id_of(request)))

    async def delete(self, request: Request) -> Response:
        await self._pipe.delete(_id_of(request))
        return Response(status_code=204)

    async def wait(self, request: Request) -> Response:
        id = _id_of(request)
        job = await self._site.patiently(request, self._pipe.wait(id, request.scope["query"].timeout))
        return json_response(job or await self._pipe.get(id))

    async def logs(self, request: Request) -> Response:
        return json_response(await self._pipe.logs(_id_of(request), after=request.scope["query"].after))

    async def explain(self, request: Request) -> Response:
        return json_response(await self._pipe.explain(_id_of(request)))

    async def cancel(self, request: Request) -> Response:
        return json_response(await self._pipe.cancel(_id_of(request)))

    async def retry(self, request: Request) -> Response:
        self._site.check_takes_jobs()
        id, asked = _id_of(request), RetryRequest()
        if has_body(request.scope):
            limit = self._pipe.settings.max_payload + BESIDE_PAYLOAD
            asked = convert(await read_json(request.scope, request.receive, limit), RetryRequest)
        return json_response(await self._pipe.retry(id, payload=asked.payload))

    async def cancel_many(self, request: Request) -> Response:
        return await self._each(request, self._pipe.cancel_many)

    async def retry_many(self, request: Request) -> Response:
        self._site.check_takes_jobs()
        return await self._each(request, self._pipe.retry_many)

    async def delete_many(self, request: Request) -> Response:
        return await self._each(request, self._pipe.delete_many)

    async def failures(self, request: Request) -> Response:
        return json_response(await self._pipe.failures())

    async def _each(self, request: Request, verb: Callable[..., Awaitable[int]]) -> Response:
        chosen = convert(await read_json(request.scope, request.receive, BESIDE_PAYLOAD), Selection)
        filters = {name: value for name in _FILTERS if (value := getattr(chosen, name)) is not UNSET}
        return json_response(Count(await verb(all=chosen.all, **filters)))


def _id_of(request: Request) -> str:
    """The id in the path."""
    return known_id(request.path_params["id"])


def known_id(id: str) -> str:
    """An id; JobNotFoundError for what cannot be one, which no job has."""
    try:
        return check_id(id)
    except BadInputError:
        raise JobNotFoundError(id[:100]) from None
