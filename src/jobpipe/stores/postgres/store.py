"""PostgresStore: the verbs, each one transaction, and mostly one round trip, of the statements in `sql/`.

The server's clock decides. Claims and signs of life are not waited for to be on disk: what a crash takes back of
them, happens again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Any, Self

import msgspec
from psycopg import errors as pg

from ...errors import DuplicateError, StoreError
from ...failpoints import reach
from ...model.admission import Bounds
from ...model.counts import MOST_FAILURES, Counts, Failures, Filter, JobEvent, Page, WorkerInfo
from ...model.gate import Limit, Limits
from ...model.job import KEPT_HISTORY, Job, JobError, JobStatus, Progress
from ...model.lease import ClaimResult, Lease, LeaseState, QueueChoice, Rescued, Settlement
from ...model.logs import JobLogs, LogChunk
from ...model.newjob import Answer, ExportedJob, NewJob, NewPayload, Receipt, Refusal
from ...model.schedule import ScheduleEntry, Schedules
from ..base import Capabilities, News, Watch
from ..sql_rows import schedule_of, schedule_values
from ..stored import counts_of, status_of
from . import logs, managing
from .address import Address
from .arrays import numbers, texts
from .checking import remarks
from .claiming import Claimer, Order
from .connection import Connection, Connections, Step
from .guest import Guests
from .inserting import Conversation, insert_step, insert_steps, lock_steps
from .migrate import migrate
from .paging import failures_in, failures_values, page_of, page_step
from .rows import gate_of, job_of, settle_values, text_of
from .session import Session
from .statements import Statements
from .transfer import adopt, exported_of
from .watch import PostgresWatch

_LONG_JOURNAL = 500
"""With more changes than that, a count folds it."""
_PATIENCE = 10_000
"""Milliseconds that an insert waits at the most for another that holds the capacity of the same queue."""
_LOST = text_of(JobError(type="WorkerLost", message="worker lost"))


def open_postgres(url: str) -> PostgresStore:
    """The store at `postgresql://user:password@host:port/database?schema=jobpipe`."""
    return PostgresStore(url)


class PostgresStore:
    """Jobs in a PostgreSQL database."""

    capabilities = Capabilities(durable=True, shared=True, transactional=True, push=True, blocking=True)

    def __init__(self, url: str, *, clock: Callable[[], float] | None = None) -> None:
        self._address = Address.parse(url)
        self._clock = clock
        self.url = self._address.url
        self._full_url = url
        self._connections = Connections(self._address)
        self._sql = Statements(self._address.schema)
        self._session = Session(self._connections, self._sql, clock)
        self._step = self._session.step
        self._claimer = Claimer(self._connections, self._sql)
        self._guests = Guests(self._sql, self._connections)

    # Lifecycle

    def migrate(self) -> list[str]:
        connection = self._connections.open()
        try:
            with self._connections.mapped_errors():
                return migrate(connection, self._sql, self.url)
        finally:
            connection.close()

    def check(self) -> list[str]:
        return self._connections.attempt(lambda connection: remarks(connection, self._sql, self.url))

    def sibling(self) -> Self:
        return type(self)(self._full_url, clock=self._clock)

    def close(self) -> None:
        self._connections.close()

    # Enqueue

    def insert(
        self,
        batches: Sequence[Sequence[NewJob]],
        *,
        capacity: int = 0,
        scheduled: int = 0,
        names: int = 0,
    ) -> list[Answer]:
        bounds = Bounds(capacity, scheduled, names)
        jobs = [job for batch in batches for job in batch]
        if not jobs:
            return [[] for _ in batches]
        has_names = any(job.unique is not None for job in jobs)
        new = None if has_names else self._insert_new(batches, jobs, bounds)
        return new or self._insert_any(batches, bounds)

    def _insert_new(
        self, batches: Sequence[Sequence[NewJob]], jobs: list[NewJob], bounds: Bounds
    ) -> list[Answer] | None:
        """The usual case, all jobs new and room for all: one statement for everything, or None."""
        insert = insert_step(self._sql, jobs, self._session.now(), bounds)._replace(mark="enqueue-inside")
        locks = lock_steps(self._sql, jobs, bounds)
        patience = [self._step("patience", milliseconds=_PATIENCE)] if locks else []
        try:
            steps = *patience, *locks, insert
            written = self._session.write(*steps, is_work=True, is_counting=any(bounds))[-1].rows
        except StoreError as error:
            if isinstance(error.__cause__, pg.UniqueViolation):
                return None
            raise
        if len(written) < len(jobs):
            return None
        statuses = {id: status_of(status) for id, status in written}
        receipts = (Receipt(job.id, statuses[job.id], True) for job in jobs)
        return [list(islice(receipts, len(batch))) for batch in batches]

    def _insert_any(self, batches: Sequence[Sequence[NewJob]], bounds: Bounds) -> list[Answer]:
        """Each batch looked at by itself."""

        def insert() -> Conversation:
            yield self._step("patience", milliseconds=_PATIENCE)
            answers = yield from insert_steps(self._sql, batches, bounds, self._session.now())
            reach("enqueue-inside")
            return answers

        answers = self._session.converse(insert)
        self._session.tell_work()
        return answers

    def insert_in(
        self, connection: Any, batch: Sequence[NewJob], *, capacity: int = 0
    ) -> Answer | Awaitable[Answer]:
        return self._guests.insert(connection, batch, capacity, self._session.now())

    # Run

    def claim(
        self,
        worker: str,
        types: Sequence[str],
        limit: int,
        lease: float,
        limits: Sequence[Limit] = (),
        begin: int | None = None,
        queues: QueueChoice | None = None,
    ) -> ClaimResult:
        order = Order(worker, sorted(set(types)), limit, lease, begin, queues)
        bound = [each for each in limits if each.queue or each.type in order.types]
        result = None if bound else self._claimer.claim(order, self._session.now())
        if result is None:
            result = self._claimer.claim_limited(order, bound, self._session.now())
        if result.claims:
            self._session.changed()
        return result

    def begin(self, leases: Sequence[Lease], started_at: Sequence[float]) -> list[LeaseState]:
        if not leases:
            return []
        (held,) = self._session.write(self._step("begin", **_tokens(leases), started_at=numbers(started_at)))
        states = {(id, token): _LEASE_STATE[is_cancelling] for id, token, is_cancelling, _ in held.rows}
        return [states.get((lease.id, lease.token), LeaseState.LOST) for lease in leases]

    def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
        (found,) = self._session.read(self._step("extend", **_tokens(leases), seconds=seconds))
        return [LeaseState.LOST if row[0] is None else _LEASE_STATE[row[0]] for row in found.rows]

    def progress(self, reports: Sequence[tuple[Lease, Progress]]) -> None:
        told = [text_of(progress) for _, progress in reports]
        self._session.write(self._step("progress", **_tokens([lease for lease, _ in reports]), progress=told))

    def write_logs(self, chunks: Sequence[tuple[Lease, LogChunk]]) -> None:
        if chunks:
            logs.write(self._session, self._connections, chunks)

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        if not settlements:
            return []
        cooling = [each for each in settlements if each.outcome.cools]
        seconds = numbers([each.outcome.cools for each in cooling])
        cool = self._step("cool", **_tokens([each.lease for each in cooling]), seconds=seconds)
        is_work = any(each.outcome.waits_again for each in settlements)
        before = [cool] if cooling else []
        if any(each.logs for each in settlements):
            recorded = logs.settle(self._session, self._connections, before, settlements, is_work=is_work)
        else:
            values = settle_values(settlements, self._session.now())
            settle = Step(self._sql("settle"), values, "settle-inside")
            recorded = self._session.write(*before, settle, is_work=is_work)[-1].touched
        if recorded == len(settlements):
            return [True] * recorded
        # Some were settled before, or lost: those that still have this token are, or were, settled by it.
        found = self._connections.run(self._step("tokens", ids=[each.lease.id for each in settlements]))
        tokens: dict[str, str] = dict(found[0].rows)
        return [tokens.get(each.lease.id) == each.lease.token for each in settlements]

    def release(self, leases: Sequence[Lease], keys: Sequence[str | None] = ()) -> list[bool]:
        if not leases:
            return []
        told = sorted(zip(leases, keys or [None] * len(leases), strict=True), key=lambda each: each[0].id)
        tokens = _tokens([lease for lease, _ in told])
        release = self._step("release", **tokens, keys=[key for _, key in told])
        (released,) = self._session.write(release, is_work=True)
        found = {(id, token) for id, token in released.rows}
        return [(lease.id, lease.token) in found for lease in leases]

    def rescue(self, limit: int = 100) -> list[Rescued]:
        rescue = self._step("rescue", limit=limit, error=_LOST, kept=KEPT_HISTORY)
        found, let_in = self._session.read(rescue._replace(mark="rescue-inside"), self._step("let_in"))
        if found.rows or let_in.touched:
            self._session.tell_work()
        return [Rescued(id, worker, JobStatus(status), *rest) for id, worker, status, *rest in found.rows]

    # Manage

    def cancel(self, ids: Sequence[str]) -> list[JobStatus | None]:
        return managing.cancel(self._session, ids) if ids else []

    def retry(
        self, ids: Sequence[str], renewed: NewPayload | None = None
    ) -> list[JobStatus | DuplicateError | None]:
        return managing.retry(self._session, ids, renewed) if ids else []

    def delete(self, ids: Sequence[str]) -> list[JobStatus | None]:
        return managing.delete(self._session, ids) if ids else []

    def pause(self, queue: str) -> None:
        self._session.write(self._step("pause", queue=queue))

    def resume(self, queue: str) -> None:
        steps = ("resume", "wait_for_gates", "look_again")
        self._session.write(*(self._step(name, queue=queue) for name in steps), is_work=True)

    # Inspect

    def get(self, id: str) -> Job | None:
        (found,) = self._session.read(self._step("get", id=id))
        return job_of(found.rows[0]) if found.rows else None

    def logs(self, id: str, after: int = 0) -> JobLogs | None:
        return logs.look(self._session, id, after)

    def page(self, filter: Filter, limit: int, before: int | None = None) -> Page:
        (found,) = self._session.read(page_step(self._sql, filter, limit, before))
        return page_of(found.rows, limit)

    def counts(self) -> Counts:
        steps = self._step("counts"), self._step("paused"), self._step("is_journal_long", most=_LONG_JOURNAL)
        counted, paused, long = self._session.read(*steps)
        if long.rows[0][0]:
            self._session.fold()  # Why here: guests fold nothing, and every heartbeat counts once a second
        return counts_of(counted.rows, (queue for (queue,) in paused.rows))

    def failures(self, limit: int = MOST_FAILURES) -> Failures:
        (found,) = self._session.read(self._step("failures", **failures_values(limit)))
        return failures_in(found.rows, limit)

    def ahead(self, id: str) -> int:
        ((count,),) = self._session.read(self._step("ahead", id=id))[0].rows
        return int(count)

    def key_of(self, id: str) -> str | None:
        (found,) = self._connections.run(self._step("key_of", id=id))
        return found.rows[0][0] if found.rows else None

    def running_of(self, unique: str) -> str | None:
        (found,) = self._connections.run(self._step("running_of", unique=unique))
        return found.rows[0][0] if found.rows else None

    def limits(
        self, type: str | None = None, key: str | None = None, limit: int = 100, queues: Sequence[str] = ()
    ) -> Limits:
        found, gates, cooling, of_queues = self._session.read(
            self._step("time"),
            self._step("gates", type=type, key=key, limit=limit),
            self._step("cooling"),
            self._step("queue_gates", queues=list(queues)),
        )
        now = found.rows[0][0]
        states = [gate_of(("", queue, at if at > now else 0.0, *rest)) for queue, at, *rest in of_queues.rows]
        return Limits(now, list(map(gate_of, gates.rows)), dict(cooling.rows), states)

    def events(self, after: int, limit: int) -> list[JobEvent]:
        self._session.read()
        (found,) = self._session.fold(self._step("events", after=after, limit=limit))
        return [
            JobEvent(number, id, type, queue, status_of(status), attempts)
            for number, id, type, queue, status, attempts in found.rows
        ]

    def last_event(self) -> int:
        self._session.read()
        ((number,),) = self._session.fold(self._step("last_event"))[0].rows
        return int(number)

    def watch(self, news: News) -> Watch:
        return PostgresWatch(self._connections, self._sql, news)

    # Workers

    def beat(self, worker: WorkerInfo, seconds: float) -> None:
        steps = [self._step("forget", name=worker.name)]
        if seconds > 0:
            steps.append(self._step("beat", name=worker.name, info=text_of(worker), seconds=seconds))
        self._connections.run(*steps)

    def workers(self) -> list[WorkerInfo]:
        (found,) = self._connections.run(self._step("workers"))
        return [
            msgspec.structs.replace(msgspec.json.decode(info, type=WorkerInfo), seen_at=seen_at)
            for info, seen_at in found.rows
        ]

    # Schedules

    def put_schedule(self, entry: ScheduleEntry) -> ScheduleEntry:
        (found,) = self._connections.run(self._step("put_schedule", **schedule_values(entry)))
        return schedule_of(found.rows[0])

    def drop_schedule(self, name: str) -> bool:
        return self._connections.run(self._step("drop_schedule", name=name))[0].touched == 1

    def pause_schedule(self, name: str) -> bool:
        return self._connections.run(self._step("pause_schedule", name=name))[0].touched == 1

    def resume_schedule(self, name: str, tick_at: float, next_at: float) -> bool:
        step = self._step("resume_schedule", name=name, tick_at=tick_at, next_at=next_at)
        return self._connections.run(step)[0].touched == 1

    def schedules(self) -> Schedules:
        now, found = self._connections.run(self._step("time"), self._step("schedules"))
        return Schedules(now.rows[0][0], list(map(schedule_of, found.rows)))

    def fire_tick(
        self, name: str, tick_at: float, next_at: float, job: NewJob | None, *, capacity: int = 0
    ) -> Receipt | Refusal | None:
        answers = self._session.converse(
            lambda: managing.tick_steps(self._session, name, tick_at, next_at, job, Bounds(capacity))
        )
        if not answers:
            return None
        self._session.tell_work()
        (answer,) = answers
        return answer if not isinstance(answer, list) else answer[0] if answer else None

    # Moving to another store

    def export(self, limit: int, after: int = 0) -> list[ExportedJob]:
        (found,) = self._session.read(self._step("export", limit=limit, after=after))
        kept = logs.of_exported(self._session, self._connections, [row[0] for row in found.rows])
        return [exported_of(row, kept.get(row[0], ())) for row in found.rows]

    def adopt(self, exported: Sequence[ExportedJob]) -> int:
        def work(connection: Connection) -> int:
            with connection.transaction():
                return adopt(connection, self._sql, exported, self._session.now())

        if not exported:
            return 0
        new = self._connections.attempt(work)
        self._session.tell_work()
        return new

    def discard(self, ids: Sequence[str]) -> int:
        steps = (self._step(name, ids=list(ids)) for name in ("leave_gates", "discard"))
        return self._session.write(*steps)[-1].touched

    # Maintain

    def prune(self, keep: float, limit: int = 1_000, keep_failed: float | None = None) -> int:
        idle = self._step("forget_gates"), self._step("forget_cooling")
        kept = {"keep": keep, "keep_failed": keep if keep_failed is None else keep_failed}
        *_, pruned = self._session.read(*idle, self._step("prune", **kept, limit=limit))
        self._session.changed()
        if pruned.touched < limit:
            self._session.fold(self._step("forget_lanes"), self._step("forget_types"))
        return pruned.touched


def _tokens(leases: Sequence[Lease]) -> dict[str, str]:
    return {"ids": texts([lease.id for lease in leases]), "tokens": texts([lease.token for lease in leases])}


_LEASE_STATE = (LeaseState.HELD, LeaseState.CANCELLING)
"""By the column is_cancelling."""
