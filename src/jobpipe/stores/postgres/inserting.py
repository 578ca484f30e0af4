"""Inserts, each batch whole or not at all: what to ask the database, and what its answers mean.

`insert_steps` is a conversation: it yields steps and is sent what they brought. Who leads it, with a connection that
blocks or with one that is awaited, is no business of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Any, TypeAlias

from ...errors import JobConflictError, QueueFullError, StoreAwayError
from ...job import JobStatus
from ..base import NewJob, Receipt
from .arrays import numbers, texts
from .connection import Result, Step
from .statements import Statements

Batch: TypeAlias = Sequence[NewJob]
Answer: TypeAlias = list[Receipt] | JobConflictError | QueueFullError
Conversation: TypeAlias = Generator[Step, Result, list[Answer]]

_TRIES = 30


def insert_values(jobs: Sequence[NewJob], now: float | None, capacity: int) -> dict[str, Any]:
    """The parameters of insert.sql."""
    return {
        "ids": texts([job.id for job in jobs]),
        "types": texts([job.type for job in jobs]),
        "queues": texts([job.queue for job in jobs]),
        "payloads": texts([job.payload.decode() for job in jobs]),
        "max_retries": numbers([job.max_retries for job in jobs]),
        "priorities": numbers([job.priority for job in jobs]),
        "delays": numbers([job.delay for job in jobs]),
        "run_ats": numbers([job.run_at for job in jobs]),
        "deadlines": numbers([job.deadline for job in jobs]),
        "fingerprints": texts([job.fingerprint for job in jobs]),
        "keys": texts([job.key for job in jobs]),
        "now": now,
        "capacity": capacity,
    }


def insert_steps(
    statements: Statements, batches: Sequence[Batch], capacity: int, now: float | None
) -> Conversation:
    """Insert batches within a transaction that is short: nobody else can fill the queues until it ends."""
    if capacity:
        yield Step(
            statements("lock_queues"), {"queues": sorted({job.queue for each in batches for job in each})}
        )
    return (yield from guest_steps(statements, batches, capacity, now))


def guest_steps(
    statements: Statements, batches: Sequence[Batch], capacity: int, now: float | None
) -> Conversation:
    """The same within one that may take its time, with the capacity as it looks at this moment.

    Look, decide, write; again if another wrote the same id meanwhile.
    """
    ids = sorted({job.id for batch in batches for job in batch})
    queues = sorted({job.queue for batch in batches for job in batch})
    fresh = statements.filled("insert", on_conflict="ON CONFLICT (id) DO NOTHING")
    for _ in range(_TRIES):
        found = yield Step(statements("known"), {"ids": ids})
        known = {id: (fingerprint, JobStatus(status)) for id, fingerprint, status in found.rows}
        waiting: dict[str, int] = {}
        if capacity:
            waiting = dict((yield Step(statements("waiting"), {"queues": queues})).rows)
        plans, new = decide(batches, known, waiting, capacity)
        yield Step(b"SAVEPOINT jobpipe")
        written = yield Step(fresh, insert_values(new, now, 0))
        if len(written.rows) == len(new):
            yield Step(b"RELEASE SAVEPOINT jobpipe")
            statuses = {id: JobStatus(status) for id, status in written.rows}
            return [_answer(plan, known, statuses) for plan in plans]
        yield Step(b"ROLLBACK TO SAVEPOINT jobpipe")
        yield Step(b"RELEASE SAVEPOINT jobpipe")
    raise StoreAwayError(f"others inserted the same ids {_TRIES} times meanwhile")


Plan: TypeAlias = Sequence[tuple[str, bool]] | JobConflictError | QueueFullError
"""The ids of a batch and whether each is new, or why there will be none."""


def decide(
    batches: Sequence[Batch],
    known: Mapping[str, tuple[str, JobStatus]],
    waiting: Mapping[str, int],
    capacity: int,
) -> tuple[list[Plan], list[NewJob]]:
    """What becomes of each batch, those before it considered, and all jobs that are to be written."""
    plans: list[Plan] = []
    prints = {id: fingerprint for id, (fingerprint, _) in known.items()}
    taken = Counter(waiting)
    accepted: list[NewJob] = []
    for batch in batches:
        problem: JobConflictError | QueueFullError | None = _conflict(batch, prints)
        new = [job for job in batch if job.id not in prints]
        needed = Counter(job.queue for job in new)
        if problem is None and capacity:
            problem = _full(needed, taken, capacity)
        if problem is not None:
            plans.append(problem)
            continue
        fresh = {job.id for job in new}
        plans.append([(job.id, job.id in fresh) for job in batch])
        accepted += new
        taken += needed
        prints |= {job.id: job.fingerprint for job in new}
    return plans, accepted


def _conflict(batch: Batch, prints: Mapping[str, str]) -> JobConflictError | None:
    seen: set[str] = set()
    for job in batch:
        if job.id in seen:
            return JobConflictError(job.id, "is twice in the batch")
        seen.add(job.id)
    for job in batch:
        if prints.get(job.id, job.fingerprint) != job.fingerprint:
            return JobConflictError(job.id)
    return None


def _full(needed: Mapping[str, int], taken: Mapping[str, int], capacity: int) -> QueueFullError | None:
    for queue, count in needed.items():
        waiting = int(taken.get(queue, 0))
        if waiting + count > capacity:
            return QueueFullError(queue, waiting=waiting, needed=count, capacity=capacity)
    return None


def _answer(
    plan: Plan, known: Mapping[str, tuple[str, JobStatus]], statuses: Mapping[str, JobStatus]
) -> Answer:
    if isinstance(plan, JobConflictError | QueueFullError):
        return plan
    # Why not by is_new alone: what an earlier batch of the call wrote is known to this one, and no row yet.
    return [Receipt(id, statuses[id] if id in statuses else known[id][1], is_new) for id, is_new in plan]
