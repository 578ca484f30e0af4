"""Inserts, each batch whole or not at all: what to ask the database, and what its answers mean.

`insert_steps` is a conversation: it yields steps and is sent what they brought. Who leads it, with a connection that
blocks or with one that is awaited, is no business of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ...errors import StoreAwayError
from ...model.admission import Bounds, Lane, Plan, admit, need_of
from ...model.job import JobStatus
from ...model.newjob import Answer, NewJob, Receipt, Refusal
from ...model.unique import Named, Waiting
from ..stored import status_of
from .arrays import numbers, texts
from .connection import Result, Step
from .rows import text_of
from .statements import Statements

Batch: TypeAlias = Sequence[NewJob]
Conversation: TypeAlias = Generator[Step, Result, list[Answer]]

_TRIES = 30
NO_BOUNDS = Bounds()


def insert_step(
    statements: Statements,
    jobs: Sequence[NewJob],
    now: float | None,
    bounds: Bounds = NO_BOUNDS,
    *,
    has_names: bool = False,
    on_conflict: str = "",
) -> Step:
    """Insert jobs, all of them or, where a bound has no room, none."""
    # Why not always the same: most jobs have no bounds and no names, and need not pay for them.
    room = statements("has_room").decode() if any(bounds) else "true"
    by_name = "more ->> 2 NULLS FIRST," if has_names else ""
    query = statements.filled("insert", there_is_room=room, by_name=by_name, on_conflict=on_conflict)
    return Step(query, insert_values(jobs, now, bounds))


def insert_values(jobs: Sequence[NewJob], now: float | None, bounds: Bounds = NO_BOUNDS) -> dict[str, Any]:
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
        "more": texts([None if job.is_plain else _more_of(job) for job in jobs]),
        "now": now,
        "capacity": bounds.ready,
        "scheduled": bounds.scheduled,
        "names": bounds.names,
    }


def _more_of(job: NewJob) -> str:
    """What few jobs have, as insert.sql reads it."""
    return text_of(
        (
            job.expires_at,
            job.expires_in,
            job.unique,
            job.on_duplicate,
            job.max_wait,
            list(job.tags),
            job.trace,
        )
    )


def lock_steps(statements: Statements, jobs: Iterable[NewJob], bounds: Bounds) -> list[Step]:
    """What an insert waits for, so that no other takes the same room: always in this order."""
    jobs = list(jobs)
    steps = []
    if bounds.ready:
        steps.append(Step(statements("lock_queues"), {"queues": sorted({job.queue for job in jobs})}))
    if bounds.scheduled and any(job.delay > 0 or job.run_at is not None for job in jobs):
        steps.append(Step(statements("lock_scheduled")))
    return steps


def insert_steps(
    statements: Statements, batches: Sequence[Batch], bounds: Bounds, now: float | None
) -> Conversation:
    """Insert batches within a transaction that is short: nobody else can fill the queues until it ends."""
    locks = lock_steps(statements, (job for batch in batches for job in batch), bounds)
    for step in locks:  # noqa: UP028 (what is sent back must not reach the list)
        yield step
    return (yield from guest_steps(statements, batches, bounds, now))


def guest_steps(
    statements: Statements, batches: Sequence[Batch], bounds: Bounds, now: float | None
) -> Conversation:
    """The same within one that may take its time, with the bounds as it looks at this moment."""
    if not any(job.unique is not None for batch in batches for job in batch):
        return (yield from _batch_steps(statements, batches, bounds, now))
    answers: list[Answer] = []
    for batch in batches:  # Why one by one: each may change what those before it have written
        answers += yield from _batch_steps(statements, [batch], bounds, now)
    return answers


def _batch_steps(
    statements: Statements, batches: Sequence[Batch], bounds: Bounds, now: float | None
) -> Conversation:
    """Look, decide, write; again if another wrote the same id meanwhile, or began what was to be replaced."""
    ids = sorted({job.id for batch in batches for job in batch})
    queues = sorted({job.queue for batch in batches for job in batch})
    names = sorted({job.unique for batch in batches for job in batch if job.unique is not None})
    for _ in range(_TRIES):
        found = yield Step(statements("known"), {"ids": ids})
        known = {id: (fingerprint, status_of(status)) for id, fingerprint, status in found.rows}
        named = Names((yield Step(statements("named"), {"names": names})).rows if names else [])
        taken = None
        if any(bounds):
            values = {"queues": queues, "names": bounds.names, "now": now}
            taken = Taken((yield Step(statements("taken"), values)).rows)
        plans = decide(batches, known, named, taken, bounds)
        new = [job for plan in plans if isinstance(plan, Plan) for job in plan.new]
        yield Step(b"SAVEPOINT jobpipe")
        insert = insert_step(
            statements, new, now, has_names=bool(names), on_conflict="ON CONFLICT DO NOTHING"
        )
        written = (yield insert).rows
        is_done = len(written) == len(new)
        statuses = {id: status for id, (_, status) in known.items()} | named.statuses
        statuses |= {id: JobStatus(status) for id, status in written}
        for plan in plans:
            if is_done and names and isinstance(plan, Plan):
                is_done = yield from _carry_out(statements, plan, statuses, now)
        if is_done:
            yield Step(b"RELEASE SAVEPOINT jobpipe")
            return [_answer(plan, statuses) for plan in plans]
        yield Step(b"ROLLBACK TO SAVEPOINT jobpipe")
        yield Step(b"RELEASE SAVEPOINT jobpipe")
    raise StoreAwayError(f"others inserted the same ids or unique names {_TRIES} times meanwhile")


def _carry_out(
    statements: Statements, plan: Plan, statuses: dict[str, JobStatus], now: float | None
) -> Generator[Step, Result, bool]:
    """What a plan asks for beside the new jobs; False if a job that was to be replaced has begun meanwhile."""
    for id, job in sorted(plan.replaced.items()):
        replaced = (yield Step(statements("replace"), _replace_values(id, job, now))).rows
        if not replaced:
            return False
        statuses[id] = JobStatus(replaced[0][1])
    if plan.cancelled:
        yield Step(statements("cancel"), {"ids": plan.cancelled, "now": now})
    return True


def _replace_values(id: str, job: NewJob, now: float | None) -> dict[str, Any]:
    """The parameters of replace.sql."""
    same = (
        "max_retries",
        "priority",
        "delay",
        "run_at",
        "deadline",
        "key",
        "max_wait",
        "expires_at",
        "expires_in",
        "trace",
    )
    return {
        "id": id,
        "now": now,
        "payload": job.payload.decode(),
        "on_duplicate": job.on_duplicate,
        "tags": list(job.tags) or None,
        **{name: getattr(job, name) for name in same},
    }


class Names:
    """The rows of named.sql."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self.statuses: dict[str, JobStatus] = {}
        """By id."""
        self._named: dict[str, Named] = {}
        for name, id, type, queue, status, has_begun in rows:
            self.statuses[id] = status_of(status)
            found = self(name)
            self._named[name] = (
                found._replace(running=id) if has_begun else found._replace(waiting=Waiting(id, type, queue))
            )

    def __call__(self, name: str) -> Named:
        return self._named.get(name, Named())


class Taken:
    """What the jobs take up, as an `Occupancy`: the rows of taken.sql, and what is to be written beside them."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        now, scheduled, lanes, *_ = rows[0]
        self.now = float(now)
        self._scheduled, self._lanes = int(scheduled), int(lanes or 0)
        self._ready: Counter[str] = Counter()
        self._known: set[Lane] = set()
        for *_, queue, type, count in rows:
            if queue is not None:
                self._ready[queue] += int(count)
                self._known.add((queue, type))

    def ready(self, queue: str) -> int:
        return self._ready[queue]

    def scheduled(self) -> int:
        return self._scheduled

    def has_lane(self, lane: Lane) -> bool:
        return lane in self._known

    def lanes(self) -> int:
        return self._lanes

    def take(self, jobs: Sequence[NewJob]) -> None:
        """These are written, too."""
        need = need_of(jobs, self.now)
        self._ready += need.ready
        self._scheduled += need.scheduled.total()
        self._lanes += len(need.lanes - self._known)
        self._known |= need.lanes


def decide(
    batches: Sequence[Batch],
    known: Mapping[str, tuple[str, JobStatus]],
    named: Names,
    taken: Taken | None,
    bounds: Bounds,
) -> list[Plan | Refusal]:
    """What becomes of each batch, those before it considered."""
    plans: list[Plan | Refusal] = []
    prints = {id: fingerprint for id, (fingerprint, _) in known.items()}
    for batch in batches:
        plan = admit(batch, prints.get, bounds, taken, 0.0 if taken is None else taken.now, named)
        plans.append(plan)
        if isinstance(plan, Plan):
            if taken is not None:
                taken.take(plan.new)
            prints |= {job.id: job.fingerprint for job in plan.new}
    return plans


def _answer(plan: Plan | Refusal, statuses: Mapping[str, JobStatus]) -> Answer:
    if not isinstance(plan, Plan):
        return plan
    return [Receipt(id, statuses[id], is_new) for id, is_new in plan.receipts]
