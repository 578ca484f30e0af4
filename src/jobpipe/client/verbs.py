"""Verbs: each call that a client can make, described once; `client.py` makes a coroutine and a blocking method of each.

They have the names, arguments and results of those of `Jobpipe`. Reads, `enqueue` and `signal` may be repeated, as the id
of a new job is made before it is first sent, and the same signal counts once; what changes something else is sent once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar, Unpack
from urllib.parse import quote, urlencode

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from ..errors import BadInputError, JobNotFoundError, JobpipeError, ScheduleNotFoundError, seconds_of
from ..gateway.explain import Explanation
from ..gateway.history import Past
from ..gateway.limits import LimitInfo
from ..gateway.timetable import ScheduleInfo, ScheduleRequest
from ..gateway.views import JobFilter, JobPage, QueueInfo, Stats, Worker, chosen_of, filter_of
from ..model import json
from ..model.counts import Failures
from ..model.durable import SignalReceipt
from ..model.ids import check_id, check_name, check_text, new_id
from ..model.job import Job, JobStatus, StepInfo
from ..model.logs import JobLogs
from ..model.newjob import Receipt
from ..model.request import JobOptions, JobRequest, check_search, read_many, request_of
from .call import Answer, Call, Verb

T = TypeVar("T")

_LONGEST_WAIT = 60.0
"""Seconds that one call waits: many a proxy ends those that take longer."""
_ONCE = ("replace", "restart")
"""Values of `on_duplicate` that change another job: done twice, they may undo what came between."""
_MOST_STEPS = 500
"""Steps that one call asks for."""


class _StepPage(Struct):
    """Steps, and where to go on."""

    steps: list[StepInfo]
    next_cursor: str | None


class _Sent(Struct):
    """A signal that the job has."""

    id: str
    name: str


class _Accepted(Struct):
    """A job that was enqueued; of one that was there already, the service tells more."""

    id: str
    status: JobStatus
    is_new: bool = True
    warning: str | None = None


# Enqueue


def enqueue(type: str | JobRequest, payload: Any = None, **options: Unpack[JobOptions]) -> Verb[Receipt]:
    """Enqueue a job, of a type and a payload or as a request; options and errors are those of `Jobpipe.enqueue`.

    Without an `id`, one is made before the job is first sent, so that a lost answer makes no second job.
    """
    request = request_of(type, payload, options)
    made, raw = _sent(request)
    answer = yield Call(
        method="POST", path="/enqueue", body=msgspec.json.encode(raw), is_repeatable=_is_repeatable(request)
    )
    return _receipt(_read(answer, _Accepted), made, is_new=answer.status == 202)


def enqueue_many(requests: Iterable[JobRequest]) -> Verb[list[Receipt]]:
    """Enqueue up to 1,000 jobs: all of them, or none."""
    jobs = list(read_many(requests))
    if not jobs:
        return []
    sent = [_sent(job, f"jobs[{index}].") for index, job in enumerate(jobs)]
    answer = yield Call(
        method="POST",
        path="/enqueue/batch",
        body=msgspec.json.encode({"jobs": [raw for _, raw in sent]}),
        is_repeatable=all(map(_is_repeatable, jobs)),
    )
    found = _listed(answer, "jobs", _Accepted)
    if len(found) != len(sent):
        raise _foreign()
    return [
        _receipt(job, made, is_new=job.is_new and answer.status == 202)
        for job, (made, _) in zip(found, sent, strict=True)
    ]


def _sent(request: JobRequest, where: str = "") -> tuple[str | None, JobRequest]:
    """The id, if it was made here, and the request as it is sent; BadInputError for what no service takes."""
    raw = Raw(json.encode(request.payload, f"{where}payload"))
    if request.id is not UNSET:
        return None, replace(request, payload=raw)
    made = new_id()
    return made, replace(request, payload=raw, id=made)


def _is_repeatable(request: JobRequest) -> bool:
    return request.on_duplicate not in _ONCE


def _receipt(job: _Accepted, made: str | None, *, is_new: bool) -> Receipt:
    # Why by its id, too: the answer to the first time may have been lost, and no other job has an id that was made.
    return Receipt(job.id, job.status, is_new or job.id == made, job.warning)


# Inspect


def get(id: str) -> Verb[Job]:
    """The whole job with its history and its first steps; JobNotFoundError."""
    return _read((yield _get(_job(id))), Job)


def steps(id: str) -> Verb[list[StepInfo]]:
    """All finished steps of a job, in that order, with their whole results; JobNotFoundError."""
    found: list[StepInfo] = []
    query: dict[str, Any] = {"limit": _MOST_STEPS}
    while True:
        page = _read((yield _get(f"{_job(id)}/steps?{urlencode(query)}")), _StepPage)
        found += page.steps
        if page.next_cursor is None:
            return found
        query["cursor"] = page.next_cursor


def logs(id: str, *, after: int = 0) -> Verb[JobLogs]:
    """What the runs of the job have logged, the oldest line first; `after` as in `Jobpipe.logs`. JobNotFoundError."""
    return _read((yield _get(f"{_job(id)}/logs?{urlencode({'after': after})}")), JobLogs)


def page(
    *, limit: int = 50, cursor: str | None = None, text: str | None = None, **filters: Unpack[JobFilter]
) -> Verb[JobPage]:
    """The newest jobs, at most `limit`; give `next_cursor` as `cursor` for the next page.

    With `text`, those that have it in their id, tags or error; each call searches 10,000 jobs.
    """
    if text is not None:
        check_search("text", text)
    query = {"limit": limit, "cursor": cursor, "text": text, **_checked(filters)}
    given = {name: value for name, value in query.items() if value is not None}
    return _read((yield _get(f"/jobs?{urlencode(given)}")), JobPage)


def failures() -> Verb[Failures]:
    """The failed jobs by type and type of error: of the 10,000 that failed last."""
    return _read((yield _get("/failures")), Failures)


def wait(id: str, timeout: float | timedelta = 30.0) -> Verb[Job]:
    """Wait until the job is finished; after `timeout` seconds, returns it as it is then."""
    until = time.monotonic() + seconds_of("timeout", timeout)
    while True:
        remaining = max(until - time.monotonic(), 0.0)
        asked = min(remaining, _LONGEST_WAIT)
        job = _read((yield _get(f"{_job(id)}/wait?timeout={asked:.3f}", asked)), Job)
        if job.is_finished or asked == remaining:
            return job


def explain(id: str) -> Verb[Explanation]:
    """Why the job is not running; JobNotFoundError."""
    return _read((yield _get(f"{_job(id)}/explain")), Explanation)


def stats() -> Verb[Stats]:
    """The number of jobs by status, and their recent rates."""
    return _read((yield _get("/stats")), Stats)


def history() -> Verb[Past]:
    """The last five minutes, second by second."""
    return _read((yield _get("/stats/history")), Past)


def queues() -> Verb[list[QueueInfo]]:
    """The queues that have, or had, jobs, and those that are paused; by name."""
    return _listed((yield _get("/queues")), "queues", QueueInfo)


def limits() -> Verb[list[LimitInfo]]:
    """The limits of the types that workers know, their current use, and the types that are cooling."""
    return _listed((yield _get("/limits")), "limits", LimitInfo)


def workers() -> Verb[list[Worker]]:
    """The processes that run jobs."""
    return _listed((yield _get("/workers")), "workers", Worker)


def check() -> Verb[None]:
    """UnreachableError unless the service has started and its store answers."""
    yield _get("/readyz")


# Manage


def cancel(id: str) -> Verb[Job]:
    """Cancel a job: at once if it waits; if it runs, its context is cancelled. WrongStatusError for a done or failed one."""
    return _read((yield _post(f"{_job(id)}/cancel")), Job)


def signal(id: str, name: str, payload: Any = None) -> Verb[SignalReceipt]:
    """Send a signal to a job: `wait_for` of that name returns its payload. Errors are those of `Jobpipe.signal`.

    It is sent again if the answer is lost; the receipt may then say that it is not new.
    """
    path = f"{_job(id)}/signals/{_quoted(check_id(name, 'name'))}"
    answer = yield Call(method="POST", path=path, body=json.encode(payload), is_repeatable=True)
    sent = _read(answer, _Sent)
    return SignalReceipt(id=sent.id, name=sent.name, is_new=answer.status == 202)


def retry(id: str, *, payload: Any = UNSET, from_start: bool = False) -> Verb[Job]:
    """Run a failed or cancelled job again, at once and with all its retries; WrongStatusError for others.

    Finished steps are not run again, unless `from_start`. A new `payload` is checked as in `enqueue`, replaces that
    of the job, and runs from the start.
    """
    fields: dict[str, Any] = {"from": "start"} if from_start else {}
    if payload is not UNSET:
        fields["payload"] = Raw(json.encode(payload))
    return _read((yield _post(f"{_job(id)}/retry", fields or None)), Job)


def delete(id: str) -> Verb[None]:
    """Delete a finished job: its id is free again; WrongStatusError unless it is finished."""
    yield Call(method="DELETE", path=_job(id))


def cancel_many(*, all: bool = False, **filters: Unpack[JobFilter]) -> Verb[int]:
    """Cancel all jobs that match and are not finished; returns the number of jobs.

    Filters are those of `page`, at least one of them; without a filter, only with `all=True`.
    """
    return _read((yield _post("/jobs/cancel", _chosen(all, filters))), dict[str, int])["count"]


def retry_many(*, all: bool = False, **filters: Unpack[JobFilter]) -> Verb[int]:
    """Run all failed and cancelled jobs that match again; returns the number of jobs."""
    return _read((yield _post("/jobs/retry", _chosen(all, filters))), dict[str, int])["count"]


def delete_many(*, all: bool = False, **filters: Unpack[JobFilter]) -> Verb[int]:
    """Delete all finished jobs that match; returns the number of jobs."""
    return _read((yield _post("/jobs/delete", _chosen(all, filters))), dict[str, int])["count"]


def pause(queue: str) -> Verb[QueueInfo]:
    """Start no more jobs of the queue."""
    return _read((yield _post(f"{_queue(queue)}/pause")), QueueInfo)


def resume(queue: str) -> Verb[QueueInfo]:
    """Undo a pause."""
    return _read((yield _post(f"{_queue(queue)}/resume")), QueueInfo)


# Schedules


def all_schedules() -> Verb[list[ScheduleInfo]]:
    """All schedules, by name."""
    return _listed((yield _get("/schedules")), "schedules", ScheduleInfo)


def get_schedule(name: str) -> Verb[ScheduleInfo]:
    """One schedule; ScheduleNotFoundError."""
    return _read((yield _get(_schedule(name))), ScheduleInfo)


def put_schedule(name: str, request: ScheduleRequest) -> Verb[ScheduleInfo]:
    """Create or change a schedule; BadInputError naming the field."""
    if not isinstance(request, ScheduleRequest):
        raise BadInputError("request", f"must be a ScheduleRequest, got {request!r}")
    if isinstance(request.every, timedelta):
        request = replace(request, every=request.every.total_seconds())
    body = msgspec.json.encode(replace(request, payload=Raw(json.encode(request.payload))))
    call = Call(method="PUT", path=f"/schedules/{_quoted(check_name('name', name))}", body=body)
    return _read((yield call), ScheduleInfo)


def drop_schedule(name: str) -> Verb[None]:
    """Delete a schedule; ScheduleNotFoundError. Its jobs stay."""
    yield Call(method="DELETE", path=_schedule(name))


def pause_schedule(name: str) -> Verb[ScheduleInfo]:
    """Pause a schedule: no tick fires until it is resumed; `run` still works. ScheduleNotFoundError."""
    return _read((yield _post(f"{_schedule(name)}/pause")), ScheduleInfo)


def resume_schedule(name: str) -> Verb[ScheduleInfo]:
    """Resume a schedule with its next tick from now; ticks during the pause do not count as missed."""
    return _read((yield _post(f"{_schedule(name)}/resume")), ScheduleInfo)


def run_schedule(name: str) -> Verb[Receipt]:
    """Enqueue its job now, in addition to its ticks."""
    answer = yield _post(f"{_schedule(name)}/run")
    return _receipt(_read(answer, _Accepted), None, is_new=True)


# What they have in common


def _get(path: str, seconds: float = 0.0) -> Call:
    return Call(method="GET", path=path, seconds=seconds, is_repeatable=True)


def _post(path: str, fields: Mapping[str, Any] | None = None) -> Call:
    return Call(method="POST", path=path, body=None if fields is None else msgspec.json.encode(fields))


def _job(id: str) -> str:
    return f"/jobs/{_known('id', id, check_id, JobNotFoundError)}"


def _schedule(name: str) -> str:
    return f"/schedules/{_known('name', name, partial(check_name, 'name'), ScheduleNotFoundError)}"


def _known(field: str, name: str, check: Callable[[str], str], missing: Callable[[str], JobpipeError]) -> str:
    """Its part of a path; what cannot be a name is one that nothing has."""
    try:
        return _quoted(check(check_text(field, name)))
    except BadInputError:
        if not isinstance(name, str):
            raise
    raise missing(name[:100])


def _queue(name: str) -> str:
    return f"/queues/{_quoted(check_name('queue', name))}"


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _checked(filters: JobFilter) -> dict[str, str]:
    """Those that were given; BadInputError naming the one that is wrong."""
    found = filter_of(**filters)
    return {name: value for name in filters if (value := getattr(found, name)) is not None}


def _chosen(all: bool, filters: JobFilter) -> dict[str, Any]:
    chosen_of(all, filters)
    return _checked(filters) or {"all": True}


def _read(answer: Answer, type: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.body, type=type)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _foreign() from None


def _listed(answer: Answer, name: str, type: type[T]) -> list[T]:
    """The list of that name in the answer."""
    try:
        found: list[T] = msgspec.convert(_read(answer, dict[str, Any])[name], list[type])  # type: ignore[valid-type]
    except (KeyError, msgspec.ValidationError):
        raise _foreign() from None
    return found


def _foreign() -> JobpipeError:
    return JobpipeError("the server is not a jobpipe service, or has another version")
