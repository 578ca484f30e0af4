"""From a request to the job that is stored: defaults filled in, payload and names checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import UNSET

from ..errors import BadInputError, JobConflictError, seconds_of
from ..model import json
from ..model.ids import check_id, check_name, new_id
from ..model.job import DEFAULT_RETRIES, FORMER_RETRIES, OnDuplicate
from ..model.newjob import NewJob, NewPayload
from ..model.request import JobRequest, check
from .jobtype import JobType
from .terms import Defaults

_DEFAULTS = Defaults()
"""Of a type that this process does not know."""


def prepare(request: JobRequest, job_type: JobType[..., Any] | None, max_payload: int) -> NewJob:
    """The job, of a type that this process may not know; BadInputError naming the field."""
    type = check_name("type", request.type)
    id = new_id() if request.id is UNSET else check_id(request.id)
    payload = json.encode(request.payload) if job_type is None else job_type.encode(request.payload)
    json.check_size(payload, max_payload)
    defaults = _DEFAULTS if job_type is None else job_type.defaults
    queue = defaults.queue if request.queue is UNSET else check_name("queue", request.queue)
    max_retries = defaults.max_retries if request.max_retries is UNSET else request.max_retries
    priority = defaults.priority if request.priority is UNSET else request.priority
    deadline = defaults.deadline if request.deadline is UNSET else seconds_of("deadline", request.deadline)
    run_at = None if request.run_at is UNSET else request.run_at.timestamp()
    delay = 0.0 if request.delay is UNSET else seconds_of("delay", request.delay)
    more = _more_of(request)
    retries = [max_retries]
    # Why only with an id: one that was made just now can be no other job's.
    if request.id is not UNSET and request.max_retries is UNSET and max_retries == DEFAULT_RETRIES:
        retries += FORMER_RETRIES
    fingerprint, *former = json.fingerprints(
        payload,
        *(
            (type, queue, each, priority, delay, run_at, deadline, *([_sent(more)] if more else []))
            for each in retries
        ),
    )
    return NewJob(
        id=id,
        type=type,
        queue=queue,
        payload=payload,
        max_retries=max_retries,
        priority=priority,
        delay=delay,
        run_at=run_at,
        deadline=deadline,
        fingerprint=fingerprint,
        key=None if job_type is None else job_type.key(payload),
        former=tuple(former),
        **more,
    )


def renew(payload: Any, job_type: JobType[..., Any] | None, max_payload: int) -> NewPayload:
    """A new payload for a job that is there; BadInputError if it does not fit the type, where that is known."""
    raw = json.encode(payload) if job_type is None else job_type.encode(payload)
    json.check_size(raw, max_payload)
    return NewPayload(raw, None if job_type is None else job_type.key(raw))


def _more_of(request: JobRequest) -> dict[str, Any]:
    """The fields of the job that few have, where they are given."""
    more: dict[str, Any] = {}
    if request.expires_at is not UNSET:
        more["expires_at"] = request.expires_at.timestamp()
    if request.expires_in is not UNSET:
        more["expires_in"] = seconds_of("expires_in", request.expires_in)
    if request.unique is not UNSET:
        more["unique"] = check_id(request.unique, "unique")
        given = request.on_duplicate
        more["on_duplicate"] = OnDuplicate.KEEP if given is UNSET else given
        if request.max_wait is not UNSET:
            more["max_wait"] = seconds_of("max_wait", request.max_wait)
    if request.tags is not UNSET and request.tags:
        more["tags"] = tuple(dict.fromkeys(request.tags))
    return more


def _sent(more: dict[str, Any]) -> dict[str, Any]:
    """What counts in the fingerprint. Tags are a set; and only what is given is in it, so that what was stored before
    there was such a field, sent again, is still the same job."""
    return more | ({"tags": sorted(more["tags"])} if "tags" in more else {})


def prepare_many(
    requests: Iterable[JobRequest], prepare: Callable[[JobRequest], NewJob], where: str
) -> list[NewJob]:
    """One batch; BadInputError naming the place, JobConflictError for an id that is there twice."""
    jobs = []
    for index, request in enumerate(requests):
        try:
            jobs.append(prepare(check(request)))
        except BadInputError as error:
            raise error.within(f"{where}[{index}].") from error.__cause__
    seen: set[str] = set()
    for job in jobs:
        if job.id in seen:
            raise JobConflictError(job.id, "appears twice in the batch")
        seen.add(job.id)
    return jobs
