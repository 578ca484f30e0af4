"""Why a job is not running, in a word and in words."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from .job import Job, JobStatus
from .stores.base import Store


class Reason(StrEnum):
    """The word."""

    SCHEDULED = "scheduled"
    RATE = "rate"
    CONCURRENCY = "concurrency"
    PAUSED = "paused"
    NO_WORKER = "no_worker"
    POSITION = "position"
    RUNNING = "running"
    FINISHED = "finished"


class Explanation(Struct, frozen=True, kw_only=True):
    """Why it is not running, until when (where that is known), and what is in its way."""

    reason: Reason
    until: datetime | None = None
    text: str
    blockers: tuple[str, ...] = ()


def explain(store: Store, id: str) -> Explanation | None:
    """The reason that comes first; None for an unknown job."""
    job = store.get(id)
    if job is None:
        return None
    if job.is_finished:
        return Explanation(reason=Reason.FINISHED, text=f"It is {job.status}.")
    if job.status is JobStatus.RUNNING:
        return Explanation(reason=Reason.RUNNING, text=f"It is running, attempt {job.attempts}.")
    if job.status is JobStatus.SCHEDULED:
        when = job.run_at.isoformat(timespec="seconds")
        words = f"It waits for its retry at {when}." if job.attempts else f"It is scheduled for {when}."
        return Explanation(reason=Reason.SCHEDULED, until=job.run_at, text=words)
    return _why_queued(store, job)


def _why_queued(store: Store, job: Job) -> Explanation:
    if job.queue in store.counts().paused:
        return Explanation(
            reason=Reason.PAUSED,
            text=f"Its queue {job.queue!r} is paused: resume the queue to let it run.",
            blockers=(job.queue,),
        )
    workers = store.workers()
    able = [worker for worker in workers if job.type in worker.types]
    if not able:
        known = (
            "no worker runs at all" if not workers else f"{len(workers)} run, but none of them knows the type"
        )
        return Explanation(
            reason=Reason.NO_WORKER,
            text=f"No worker knows the type {job.type!r} ({known}): start one that does.",
            blockers=tuple(worker.name for worker in workers),
        )
    ahead = store.ahead(job.id)
    running = tuple(id for worker in able for id in worker.running)
    words = (
        "It is the next in its queue"
        if not ahead
        else f"{ahead} {'job is' if ahead == 1 else 'jobs are'} before it"
    )
    return Explanation(
        reason=Reason.POSITION,
        text=f"{words}; {len(running)} of {sum(worker.slots for worker in able)} places of its workers are taken.",
        blockers=running,
    )
