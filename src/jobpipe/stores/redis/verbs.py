"""The verbs: each yields the calls of its scripts, mostly one, and is sent what they brought.

Who drives them, and through a connection of which kind, is no business of theirs.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from ...errors import BadInputError, DuplicateError, JobConflictError
from ...model.admission import Bounds
from ...model.counts import MOST_FAILURES, Counts, Failures, Filter, JobEvent, Page, WorkerInfo
from ...model.durable import DurableState, JobSignal, Received, ReceivedKind, SignalAnswer, Step
from ...model.gate import Limit, Limits, split_limits
from ...model.job import Job, JobStatus, Progress
from ...model.lease import WORKER_LOST, ClaimResult, Lease, LeaseState, QueueChoice, Rescued, Settlement
from ...model.logs import JobLogs, LogChunk
from ...model.newjob import Answer, ExportedJob, NewJob, NewPayload, Receipt, Refusal
from ...model.schedule import ScheduleEntry, Schedules
from ...model.unique import move_refusal, retry_refusal
from ..failures import Failed, error_start, failed_of, failures_of
from ..stored import counts_of
from . import records
from .durable import state_of, step_values
from .records import (
    answer_of,
    choice_values,
    chunk_values,
    claims_of,
    exported_of,
    jobs_of,
    kept_values,
    key_text,
    logs_in,
    new_values,
    outcome_values,
    text_of,
    whole_job_of,
)
from .values import entry_values, events_of, limits_of, schedule_of, schedules_of, workers_of

T = TypeVar("T")

_MOST_AT_ONCE = 1_000
"""Jobs that one claim brings, at the most: while a script runs, the server does nothing else."""
_MOST_INSERTED = 2_000
_MOST_BYTES = 16 * 2**20
"""Jobs, and bytes of payload, in one script. A call with more takes several, each with whole batches."""
_MOST_FAILED = 1_000
"""Failed jobs that one script tells of, so that no other call has to wait for all."""
_LARGEST_BATCH = 10_000
"""Jobs in one batch, which cannot be split."""
_LOST = text_of(WORKER_LOST)
_read = msgspec.msgpack.Decoder().decode


class Call(NamedTuple):
    """A script to be run, and what it is told."""

    script: str
    told: Any = None
    may_repeat: bool = True
    """Does it come to the same when it is run twice?"""


Verb: TypeAlias = Generator[Call, Any, T]
"""Yields calls, and is sent what each brought."""


def insert(
    batches: Sequence[Sequence[NewJob]],
    *,
    capacity: int = 0,
    scheduled: int = 0,
    names: int = 0,
) -> Verb[list[Answer]]:
    bounds = Bounds(capacity, scheduled, names)
    largest = max(map(len, batches), default=0)
    if largest > _LARGEST_BATCH:
        raise BadInputError(
            "jobs",
            f"may be at most {_LARGEST_BATCH:,} in one batch on Redis, got {largest:,}: send several",
        )
    answers: list[Answer] = []
    rest = iter(batches)
    while some := list(_some_of(rest)):
        values = [list(map(new_values, batch)) for batch in some]
        found = _read((yield Call("insert", (bounds, values))))
        answers += [answer_of(each, bounds) for each in found]
    return answers


def claim(
    worker: str,
    types: Sequence[str],
    limit: int,
    lease: float,
    limits: Sequence[Limit] = (),
    begin: int | None = None,
    queues: QueueChoice | None = None,
) -> Verb[ClaimResult]:
    bounds, of_queues = (
        {name: (each.interval, each.burst, each.concurrency, each.is_keyed) for name, each in own.items()}
        for own in split_limits(limits)
    )
    told = (
        worker,
        secrets.token_hex(8),
        list(dict.fromkeys(types)),
        min(limit, _MOST_AT_ONCE),
        lease,
        bounds,
        False if begin is None else begin,
        queues is not None and choice_values(queues),
        of_queues,
    )
    packed, delays, pasts, now, due_in, has_more = yield Call("claim", told, may_repeat=False)
    claims = claims_of(packed, delays, pasts, float(now))
    return ClaimResult(claims, None if due_in is None else float(due_in), bool(has_more))


def begin(leases: Sequence[Lease], started_at: Sequence[float]) -> Verb[list[LeaseState]]:
    states = yield Call("begin", (*_split(leases), list(started_at)))
    return [LeaseState(state.decode()) for state in states]


def extend(leases: Sequence[Lease], seconds: float) -> Verb[list[LeaseState]]:
    states = yield Call("extend", (seconds, *_split(leases)))
    return [LeaseState(state.decode()) for state in states]


def progress(reports: Sequence[tuple[Lease, Progress]]) -> Verb[None]:
    told = [text_of(progress) for _, progress in reports]
    yield Call("progress", (*_split([lease for lease, _ in reports]), told))


def write_logs(chunks: Sequence[tuple[Lease, LogChunk]]) -> Verb[None]:
    told = [[chunk_values(chunk)] for _, chunk in chunks]
    yield Call("write_logs", (*_split([lease for lease, _ in chunks]), told))


def settle(settlements: Sequence[Settlement]) -> Verb[list[bool]]:
    ids = [settlement.lease.id for settlement in settlements]
    return list(map(bool, (yield Call("settle", (ids, list(map(outcome_values, settlements)))))))


def write_steps(steps: Sequence[tuple[Lease, Step]]) -> Verb[list[bool]]:
    told = [step_values(step) for _, step in steps]
    return list(map(bool, (yield Call("write_steps", (*_split([lease for lease, _ in steps]), told)))))


def receive(lease: Lease, name: str) -> Verb[Received]:
    kind, *payload = yield Call("receive", (lease.id, lease.token, name))
    return Received(ReceivedKind(kind.decode()), *payload)


def signal(id: str, signal: JobSignal) -> Verb[SignalAnswer | None]:
    answer = yield Call("signal", (id, signal.name, signal.payload.decode(), signal.fingerprint))
    return None if answer is None else SignalAnswer(answer.decode())


def durable(id: str) -> Verb[DurableState | None]:
    packed = yield Call("durable_of", id)
    return None if packed is None else state_of(packed)


def release(leases: Sequence[Lease], keys: Sequence[str | None] = ()) -> Verb[list[bool]]:
    new = [key_text(key) or False for key in keys]
    return list(map(bool, (yield Call("release", (*_split(leases), new)))))


def rescue(limit: int = 100) -> Verb[list[Rescued]]:
    found = [value.decode() for value in (yield Call("rescue", (limit, _LOST)))]
    return [
        Rescued(id, worker, JobStatus(status), type, int(attempts))
        for id, worker, status, type, attempts in zip(*(found[place::5] for place in range(5)), strict=True)
    ]


def cancel(ids: Sequence[str]) -> Verb[list[JobStatus | None]]:
    return _statuses_of((yield Call("cancel", list(ids))))


def retry(
    ids: Sequence[str], renewed: NewPayload | None = None, *, from_start: bool = False
) -> Verb[list[JobStatus | DuplicateError | None]]:
    payload = False if renewed is None else renewed.payload.decode()
    told = (list(ids), payload, key_text(renewed.key if renewed else None), from_start)
    return [
        retry_refusal(*(value.decode() for value in found))
        if isinstance(found, list)
        else JobStatus(found.decode())
        if found
        else None
        for found in (yield Call("retry", told))
    ]


def delete(ids: Sequence[str]) -> Verb[list[JobStatus | None]]:
    return _statuses_of((yield Call("delete", list(ids))))


def pause(queue: str) -> Verb[None]:
    yield Call("pause", (queue, True))


def resume(queue: str) -> Verb[None]:
    yield Call("pause", (queue, False))


def get(id: str) -> Verb[Job | None]:
    packed = yield Call("get", id)
    return None if packed is None else whole_job_of(packed)


def logs(id: str, after: int = 0) -> Verb[JobLogs | None]:
    packed = yield Call("logs_of", (id, after))
    return None if packed is None else logs_in(packed, after)


def page(filter: Filter, limit: int, before: int | None = None) -> Verb[Page]:
    statuses = list(JobStatus) if filter.status is None else [filter.status]
    named = (filter.type or False, filter.queue or False, filter.tag or False)
    if "" in (filter.type, filter.queue, filter.tag):
        return Page([], None)
    start = False if filter.error is None else error_start(filter.error)
    jobs: list[Job] = []
    while True:
        told = (statuses, *named, before or False, limit - len(jobs), start)
        packed, following = yield Call("page", told)
        jobs += jobs_of(packed)
        before = None if following is None else int(following)
        if before is None or len(jobs) == limit:
            return Page(jobs, before)


def counts() -> Verb[Counts]:
    now, ever, paused = yield Call("counts")
    count = {field: int(value) for field, value in zip(now[::2], now[1::2], strict=True)}
    rows = (
        (*field.decode().split("/"), count.get(field, 0), int(total))
        for field, total in zip(ever[::2], ever[1::2], strict=True)
    )
    return counts_of(rows, (queue.decode() for queue in paused))


def failures(limit: int = MOST_FAILURES) -> Verb[Failures]:
    failed: list[Failed] = []
    seen: set[str] = set()
    for first in range(0, limit + 1, _MOST_FAILED):
        rows = _read((yield Call("failures", (first, min(limit + 1 - first, _MOST_FAILED)))))
        # Why not those that were seen: others that failed meanwhile move them on.
        failed += [failed_of(row) for row in rows if row[3] not in seen]
        seen.update(row[3] for row in rows)
        if len(rows) < _MOST_FAILED:
            break
    return failures_of(failed, limit)


def ahead(id: str) -> Verb[int]:
    return int((yield Call("ahead", id)))


def key_of(id: str) -> Verb[str | None]:
    return records.key_of((yield Call("key_of", id)).decode())


def running_of(unique: str) -> Verb[str | None]:
    found = yield Call("running_of", unique)
    return None if found is None else str(found.decode())


def limits(
    type: str | None = None, key: str | None = None, limit: int = 100, queues: Sequence[str] = ()
) -> Verb[Limits]:
    told = (False if type is None else type, False if key is None else key, limit, list(queues))
    return limits_of((yield Call("limits", told)))


def events(after: int, limit: int) -> Verb[list[JobEvent]]:
    numbers, packed = yield Call("events", (after, limit))
    return events_of(numbers, packed, after, limit)


def last_event() -> Verb[int]:
    return int((yield Call("last_event")))


def beat(worker: WorkerInfo, seconds: float) -> Verb[None]:
    yield Call("beat", (worker.name, text_of(worker), seconds))


def workers() -> Verb[list[WorkerInfo]]:
    return workers_of((yield Call("workers")))


def put_schedule(entry: ScheduleEntry) -> Verb[ScheduleEntry]:
    return schedule_of((yield Call("put_schedule", (entry.name, entry_values(entry)))))


def drop_schedule(name: str) -> Verb[bool]:
    return bool((yield Call("drop_schedule", name)))


def pause_schedule(name: str) -> Verb[bool]:
    return bool((yield Call("pause_schedule", name)))


def resume_schedule(name: str, tick_at: float, next_at: float) -> Verb[bool]:
    return bool((yield Call("resume_schedule", (name, tick_at, next_at))))


def schedules() -> Verb[Schedules]:
    now, packed = yield Call("schedules")
    return Schedules(float(now), schedules_of(packed))


def fire_tick(
    name: str, tick_at: float, next_at: float, job: NewJob | None, *, capacity: int = 0
) -> Verb[Receipt | Refusal | None]:
    bounds = Bounds(capacity)
    told = (name, tick_at, next_at, new_values(job) if job else False, bounds)
    # Why not twice: the second time would find the next tick, and say that another process was first.
    packed = yield Call("fire_tick", told, may_repeat=False)
    if packed is None or job is None:
        return None
    answer = answer_of(_read(packed), bounds)
    return answer[0] if isinstance(answer, list) else answer


def export(limit: int, after: int = 0) -> Verb[list[ExportedJob]]:
    return exported_of(*(yield Call("export", (limit, after))))


def adopt(exported: Sequence[ExportedJob]) -> Verb[int]:
    told = ([new_values(job.job) for job in exported], list(map(kept_values, exported)))
    answer = yield Call("adopt", told)
    if isinstance(answer, bytes):
        raise JobConflictError(answer.decode())
    if isinstance(answer, list):
        raise move_refusal(*(value.decode() for value in answer))
    return int(answer)


def discard(ids: Sequence[str]) -> Verb[int]:
    return int((yield Call("discard", list(ids))))


def prune(keep: float, limit: int = 1_000, keep_failed: float | None = None) -> Verb[int]:
    return int((yield Call("prune", (keep, keep if keep_failed is None else keep_failed, limit))))


def _statuses_of(answers: Sequence[bytes | None]) -> list[JobStatus | None]:
    return [JobStatus(status.decode()) if status else None for status in answers]


def _split(leases: Sequence[Lease]) -> tuple[list[str], list[str]]:
    return [lease.id for lease in leases], [lease.token for lease in leases]


def _some_of(batches: Iterator[Sequence[NewJob]]) -> Iterator[Sequence[NewJob]]:
    """The next batches, until they are as much as one script should have."""
    jobs = size = 0
    for batch in batches:
        jobs += len(batch)
        size += sum(len(job.payload) for job in batch)
        yield batch
        if jobs >= _MOST_INSERTED or size >= _MOST_BYTES:
            return
