"""Inserts, each batch whole or not at all: what to ask the database, and what its answers mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from psycopg import errors as pg

from ....errors import StoreAwayError, StoreError
from ....failpoints import reach
from ....model.admission import Bounds, Lane, Plan, admit, need_of
from ....model.job import JobStatus
from ....model.newjob import Answer, NewJob, Receipt, Refusal
from ....model.unique import Named, Waiting
from ...sql_rows import text_of
from ...stored import status_of
from ..rows import numbers, texts
from ..session import Session
from ..verb import Conversation, Step, Verb

Batch: TypeAlias = Sequence[NewJob]

_TRIES = 30
_PATIENCE = 10_000
"""Milliseconds that an insert waits at the most for another that holds the capacity of the same queue."""
NO_BOUNDS = Bounds()


def insert(
    session: Session, batches: Sequence[Batch], *, capacity: int = 0, scheduled: int = 0, names: int = 0
) -> Verb[list[Answer]]:
    bounds = Bounds(capacity, scheduled, names)
    jobs = [job for batch in batches for job in batch]
    if not jobs:
        return [[] for _ in batches]
    if not any(job.unique is not None for job in jobs):
        new = yield from _insert_new(session, batches, jobs, bounds)
        if new is not None:
            return new

    def insert_any() -> Conversation[list[Answer]]:
        yield session.step("patience", milliseconds=_PATIENCE)
        answers = yield from insert_steps(session, batches, bounds)
        reach("enqueue-inside")
        return answers

    answers = yield from session.converse(insert_any)
    yield from session.tell_work()
    return answers


def _insert_new(
    session: Session, batches: Sequence[Batch], jobs: list[NewJob], bounds: Bounds
) -> Verb[list[Answer] | None]:
    """The usual case, all jobs new and room for all: one statement for everything, or None."""
    insert = _insert_step(session, jobs, bounds)._replace(mark="enqueue-inside")
    locks = _lock_steps(session, jobs, bounds)
    patience = [session.step("patience", milliseconds=_PATIENCE)] if locks else []
    try:
        results = yield from session.write(*patience, *locks, insert, is_work=True, is_counting=any(bounds))
    except StoreError as error:
        if isinstance(error.__cause__, pg.UniqueViolation):
            return None
        raise
    written = results[-1].rows
    if len(written) < len(jobs):
        return None
    statuses = {id: status_of(status) for id, status in written}
    receipts = (Receipt(job.id, statuses[job.id], True) for job in jobs)
    return [list(islice(receipts, len(batch))) for batch in batches]


def _insert_step(
    session: Session,
    jobs: Sequence[NewJob],
    bounds: Bounds = NO_BOUNDS,
    *,
    has_names: bool = False,
    on_conflict: str = "",
) -> Step:
    """Insert jobs, all of them or, where a bound has no room, none."""
    # Why not always the same: most jobs have no bounds and no names, and need not pay for them.
    room = session.statements("has_room").decode() if any(bounds) else "true"
    by_name = "more ->> 2 NULLS FIRST," if has_names else ""
    parts = {"there_is_room": room, "by_name": by_name, "on_conflict": on_conflict}
    return session.step("insert", parts, **insert_values(jobs, bounds))


def insert_values(jobs: Sequence[NewJob], bounds: Bounds = NO_BOUNDS) -> dict[str, Any]:
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


def _lock_steps(session: Session, jobs: Sequence[NewJob], bounds: Bounds) -> list[Step]:
    """What an insert waits for, so that no other takes the same room: always in this order."""
    steps = []
    if bounds.ready:
        steps.append(session.step("lock_queues", queues=sorted({job.queue for job in jobs})))
    if bounds.scheduled and any(job.delay > 0 or job.run_at is not None for job in jobs):
        steps.append(session.step("lock_scheduled"))
    return steps


def insert_steps(session: Session, batches: Sequence[Batch], bounds: Bounds) -> Conversation[list[Answer]]:
    """Insert batches within a transaction that is short: nobody else can fill the queues until it ends."""
    locks = _lock_steps(session, [job for batch in batches for job in batch], bounds)
    for step in locks:  # noqa: UP028 (what is sent back must not reach the list)
        yield step
    return (yield from guest_steps(session, batches, bounds))


def guest_steps(session: Session, batches: Sequence[Batch], bounds: Bounds) -> Conversation[list[Answer]]:
    """The same within one that may take its time, with the bounds as it looks at this moment."""
    if not any(job.unique is not None for batch in batches for job in batch):
        return (yield from _batch_steps(session, batches, bounds))
    answers: list[Answer] = []
    for batch in batches:  # Why one by one: each may change what those before it have written
        answers += yield from _batch_steps(session, [batch], bounds)
    return answers


def _batch_steps(session: Session, batches: Sequence[Batch], bounds: Bounds) -> Conversation[list[Answer]]:
    """Look, decide, write; again if another wrote the same id meanwhile, or began what was to be replaced."""
    ids = sorted({job.id for batch in batches for job in batch})
    queues = sorted({job.queue for batch in batches for job in batch})
    names = sorted({job.unique for batch in batches for job in batch if job.unique is not None})
    for _ in range(_TRIES):
        found = yield session.step("known", ids=ids)
        known = {id: (fingerprint, status_of(status)) for id, fingerprint, status in found.rows}
        named = Names((yield session.step("named", names=names)).rows if names else [])
        taken = None
        if any(bounds):
            taken = Taken((yield session.step("taken", queues=queues, names=bounds.names)).rows)
        plans = decide(batches, known, named, taken, bounds)
        new = [job for plan in plans if isinstance(plan, Plan) for job in plan.new]
        yield Step(b"SAVEPOINT jobpipe")
        insert = _insert_step(session, new, has_names=bool(names), on_conflict="ON CONFLICT DO NOTHING")
        written = (yield insert).rows
        is_done = len(written) == len(new)
        statuses = {id: status for id, (_, status) in known.items()} | named.statuses
        statuses |= {id: JobStatus(status) for id, status in written}
        for plan in plans:
            if is_done and names and isinstance(plan, Plan):
                is_done = yield from _carry_out(session, plan, statuses)
        if is_done:
            yield Step(b"RELEASE SAVEPOINT jobpipe")
            return [_answer(plan, statuses) for plan in plans]
        yield Step(b"ROLLBACK TO SAVEPOINT jobpipe")
        yield Step(b"RELEASE SAVEPOINT jobpipe")
    raise StoreAwayError(f"others inserted the same ids or unique names {_TRIES} times meanwhile")


def _carry_out(session: Session, plan: Plan, statuses: dict[str, JobStatus]) -> Conversation[bool]:
    """What a plan asks for beside the new jobs; False if a job that was to be replaced has begun meanwhile."""
    for id, job in sorted(plan.replaced.items()):
        replaced = (yield session.step("replace", **_replace_values(id, job))).rows
        if not replaced:
            return False
        statuses[id] = JobStatus(replaced[0][1])
    if plan.cancelled:
        yield session.step("cancel", ids=plan.cancelled)
    return True


def _replace_values(id: str, job: NewJob) -> dict[str, Any]:
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
