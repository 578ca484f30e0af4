"""Why a job is not running, in a word and in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from ..model.counts import WorkerInfo
from ..model.durable import DurableState, timeout_at
from ..model.gate import Gate, GateState, Limit, split_limits
from ..model.job import Job, JobStatus, instant
from ..model.text import counted
from ..stores.base import JobStore, Store
from .limits import rate_text


class Reason(StrEnum):
    """The reason in one word."""

    SCHEDULED = "scheduled"
    UNIQUE = "unique"
    RATE = "rate"
    CONCURRENCY = "concurrency"
    PAUSED = "paused"
    NO_WORKER = "no_worker"
    POSITION = "position"
    RUNNING = "running"
    FINISHED = "finished"
    SLEEP = "sleep"
    SIGNAL = "signal"


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a job is not running, until when (if that is known), and what blocks it."""

    reason: Reason
    until: datetime | None = None
    text: str
    blockers: tuple[str, ...] = ()


def explain(store: Store, id: str, needs: Mapping[str, str]) -> Explanation | None:
    """The reason that comes first; None for an unknown job. `needs`: what workers need to know a type, by its name."""
    job = store.get(id)
    if job is None:
        return None
    if job.status is JobStatus.EXPIRED and job.expires_at is not None:
        when = job.expires_at.isoformat(timespec="seconds")
        return Explanation(reason=Reason.FINISHED, text=f"It expired at {when}: it had not begun by then.")
    if job.is_finished:
        return Explanation(reason=Reason.FINISHED, text=f"It is {job.status}.")
    if job.status is JobStatus.RUNNING:
        return Explanation(reason=Reason.RUNNING, text=f"It is running, attempt {job.attempts}.")
    if job.status is JobStatus.WAITING:
        return _why_waiting(store, job)
    if job.status is JobStatus.SCHEDULED:
        if job.started_at is not None:
            sleep = (store.durable(id) or DurableState()).sleep_until(job.run_at.timestamp())
            if sleep is not None:
                when = job.run_at.isoformat(timespec="seconds")
                words = f"It sleeps ({sleep.name!r}) until {when}, and then continues."
                return Explanation(reason=Reason.SLEEP, until=job.run_at, text=words)
        when = job.run_at.isoformat(timespec="seconds")
        words = f"It waits for its retry at {when}." if job.attempts else f"It is scheduled for {when}."
        return Explanation(reason=Reason.SCHEDULED, until=job.run_at, text=words)
    return _why_queued(store, job, needs.get(job.type, ""))


def _why_waiting(store: Store, job: Job) -> Explanation:
    wait = (store.durable(job.id) or DurableState()).pending_wait()
    name = "?" if wait is None else wait.name
    until = None if wait is None else timeout_at(wait.until)
    deadline = "" if until is None else f", until {until.isoformat(timespec='seconds')}"
    return Explanation(
        reason=Reason.SIGNAL,
        until=until,
        text=f"It waits for the signal {name!r}{deadline}: send it with jobpipe signal {job.id} {name}.",
        blockers=(name,),
    )


def _why_queued(store: Store, job: Job, needs: str) -> Explanation:
    other = None if job.unique is None else store.running_of(job.unique)
    if other is not None and other != job.id:
        return Explanation(
            reason=Reason.UNIQUE,
            text=f"The job {other!r} with the same unique name {job.unique!r} has begun: this one starts when that one "
            "is finished.",
            blockers=(other,),
        )
    if job.queue in store.counts().paused:
        return Explanation(
            reason=Reason.PAUSED,
            text=f"Its queue {job.queue!r} is paused: resume the queue to let it run.",
            blockers=(job.queue,),
        )
    workers = store.workers()
    able = [worker for worker in workers if job.type in worker.types]
    if not able:
        known = {0: "no worker is running", 1: "the only running worker does not"}.get(
            len(workers), f"none of the {len(workers):,} running workers does"
        )
        return Explanation(
            reason=Reason.NO_WORKER,
            text=f"No worker knows the type {job.type!r} ({known}): start one that does{f' ({needs})' if needs else ''}.",
            blockers=tuple(worker.name for worker in workers),
        )
    serving = [worker for worker in able if worker.serves(job.queue)]
    if not serving:
        others = any(worker.serves(job.queue) for worker in workers)
        who = f"No worker that knows the type {job.type!r}" if others else "No worker"
        return Explanation(
            reason=Reason.NO_WORKER,
            text=f"{who} serves the queue {job.queue!r}: start one that does (jobpipe worker --queues {job.queue}).",
            blockers=tuple(worker.name for worker in able),
        )
    limited = _why_limited(store, job, able)
    if limited is not None:
        return limited
    ahead = store.ahead(job.id)
    slots, taken = map(sum, zip(*(worker.slots_for(job.queue) for worker in serving), strict=True))
    words = "It is next in its queue" if not ahead else f"{counted(ahead, 'job', 'is', 'are')} before it"
    return Explanation(
        reason=Reason.POSITION,
        text=f"{words}; {taken} of {slots} slots of its workers are taken.",
        blockers=tuple(id for worker in serving for id in worker.running),
    )


def _why_limited(store: JobStore, job: Job, workers: list[WorkerInfo]) -> Explanation | None:
    """Its type is cooling, or it or its queue has a limit that is reached; None if nothing of that holds it up."""
    limits, of_queues = split_limits(each for worker in workers for each in worker.limits)
    limit, queue_limit = limits.get(job.type), of_queues.get(job.queue)
    key = (store.key_of(job.id) if limit is not None and limit.is_keyed else None) or ""
    found = store.limits(job.type, key, queues=() if queue_limit is None else (job.queue,))
    until = found.cooling.get(job.type)
    if until is not None:
        return Explanation(
            reason=Reason.RATE,
            until=instant(until),
            text=f"Its type {job.type!r} is cooling until {_when(until)}: another service has limited its rate.",
            blockers=(job.type,),
        )
    if queue_limit is not None:
        whose = f"the queue {job.queue!r}"
        held_up = _why_closed(queue_limit, found.queues[0], found.now, whose, job.queue)
        if held_up is not None:
            return held_up
    if limit is None or (limit.is_keyed and not key):
        return None
    whose = f"the type {job.type!r} with the key {key!r}" if limit.is_keyed else f"the type {job.type!r}"
    state = found.gates[0] if found.gates else GateState(type=job.type)
    return _why_closed(limit, state, found.now, whose, f"{job.type}:{key}" if key else job.type)


def _why_closed(limit: Limit, state: GateState, now: float, whose: str, name: str) -> Explanation | None:
    gate = Gate(limit, now, state.next_at, state.running)
    starts_at = gate.starts_at(now)
    if starts_at is None:
        running = counted(gate.running, "job", f"of {whose} runs", f"of {whose} run")
        return Explanation(
            reason=Reason.CONCURRENCY,
            text=f"{running}; at most {limit.concurrency:,} may run at once.",
            blockers=state.holders,
        )
    if starts_at > now:
        return Explanation(
            reason=Reason.RATE,
            until=instant(starts_at),
            text=f"The rate of {whose} is {rate_text(limit.interval)}: the next job may start at {_when(starts_at)}.",
            blockers=(name,),
        )
    return None


def _when(at: float) -> str:
    return instant(at).isoformat(timespec="milliseconds")
