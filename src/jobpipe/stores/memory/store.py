"""MemoryStore: the jobs of one process in its memory, gone when it ends.

It is the plainest store that keeps the contract, and what the others are held against. One lock, held once
a verb; no verb on the way of a job looks at all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition
from typing import Any, Self

from msgspec import json
from msgspec.structs import replace

from ...errors import BadInputError, DuplicateError
from ...model.admission import Bounds, Plan, admit
from ...model.counts import MOST_FAILURES, Counts, Failures, Filter, JobEvent, Page, WorkerInfo
from ...model.durable import DurableState, JobSignal, Received, SignalAnswer, Step
from ...model.gate import Limit, Limits
from ...model.job import FINISHED, Job, JobStatus, Move, Progress
from ...model.lease import ClaimResult, Lease, LeaseState, Outcome, QueueChoice, Rescued, Settlement
from ...model.logs import JobLogs, LogChunk, logs_of
from ...model.newjob import Answer, ExportedJob, NewJob, NewPayload, Receipt, Refusal
from ...model.schedule import ScheduleEntry, Schedules
from ..base import Capabilities, News
from . import durable, inspecting, transfer
from .claiming import Order, claim
from .entries import Entries
from .ledger import Ledger, Taken
from .pruning import prune
from .record import Record
from .runs import begin_run, cancel, end_run, keep_logs, rescue, revive
from .watch import MemoryWatch


class MemoryStore:
    """A store for one process; whoever holds it, or its sibling, sees the same jobs."""

    capabilities = Capabilities(durable=False, shared=False, transactional=False, push=True, blocking=False)

    def __init__(self, url: str = "memory://", *, clock: Callable[[], float] = time.time) -> None:
        self.url = url
        self._clock = clock
        self._changed = Condition()
        """The one lock, and the bell of the watches."""
        self._ledger = Ledger()
        self._paused: set[str] = set()
        self._workers: dict[str, tuple[float, WorkerInfo]] = {}
        self._entries = Entries()

    @contextmanager
    def _step(self) -> Iterator[float]:
        """One atomic step: the lock is held, what is due is queued, and time stands still."""
        with self._changed:
            before = self._ledger.changes
            now = self._clock()
            self._ledger.come_due(now)
            yield now
            if self._ledger.changes != before:
                self._changed.notify_all()

    def migrate(self) -> list[str]:
        return []

    def check(self) -> list[str]:
        return ["memory:// keeps jobs only until this process ends"]

    def sibling(self) -> Self:
        return self  # Why: there is no connection that one could hold up for the other.

    def close(self) -> None:
        pass

    def insert(
        self,
        batches: Sequence[Sequence[NewJob]],
        *,
        capacity: int = 0,
        scheduled: int = 0,
        names: int = 0,
    ) -> list[Answer]:
        bounds = Bounds(capacity, scheduled, names)
        with self._step() as now:
            return [self._insert(batch, bounds, now) for batch in batches]

    def _insert(self, batch: Sequence[NewJob], bounds: Bounds, now: float) -> Answer:
        ledger = self._ledger
        plan = admit(batch, ledger.fingerprint, bounds, Taken(ledger), now, ledger.names.look)
        if not isinstance(plan, Plan):
            return plan
        for new in plan.new:
            ledger.add(new, now)
        for id, new in plan.replaced.items():
            ledger.replace(ledger.jobs[id], new, now)
        for id in plan.cancelled:
            cancel(ledger, ledger.jobs[id], now)
        return [Receipt(id, ledger.jobs[id].status, is_new) for id, is_new in plan.receipts]

    def insert_in(self, connection: Any, batch: Sequence[NewJob], *, capacity: int = 0) -> Answer:
        raise self._no_transactions()

    def _no_transactions(self) -> BadInputError:
        return BadInputError("connection", f"cannot be used with {self.url}, which has no transactions")

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
        with self._step() as now:
            order = Order(worker, types, limit, lease, limits, begin, queues)
            return claim(self._ledger, self._paused, order, now)

    def begin(self, leases: Sequence[Lease], started_at: Sequence[float]) -> list[LeaseState]:
        states: list[LeaseState] = []
        with self._step() as now:
            for lease, at in zip(leases, started_at, strict=True):
                record = self._held(lease)
                if record and record.status is JobStatus.QUEUED:
                    if record.is_late(at or now):
                        self._ledger.move(record, Move.EXPIRE, now)
                        record = None
                    else:
                        begin_run(self._ledger, record, at or now, now)
                states.append(_state_of(record))
        return states

    def _held(self, lease: Lease) -> Record | None:
        record = self._ledger.leased.get(lease.id)
        return record if record and record.is_held(lease) else None

    def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
        states: list[LeaseState] = []
        with self._step() as now:
            for lease in leases:
                record = self._held(lease)
                if record:
                    record.lease_until = now + seconds
                states.append(_state_of(record))
        return states

    def progress(self, reports: Sequence[tuple[Lease, Progress]]) -> None:
        with self._step():
            for lease, progress in reports:
                record = self._held(lease)
                if record and record.status is JobStatus.RUNNING:
                    record.progress = progress
                    self._ledger.changes += 1

    def write_logs(self, chunks: Sequence[tuple[Lease, LogChunk]]) -> None:
        with self._step():
            for lease, chunk in chunks:
                record = self._held(lease)
                if record:
                    keep_logs(record, lease, [chunk])
                    self._ledger.changes += 1

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        with self._step() as now:
            return [self._settle(each, now) for each in settlements]

    def _settle(self, settlement: Settlement, now: float) -> bool:
        lease = settlement.lease
        record = self._held(lease)
        if record is None:
            known = self._ledger.jobs.get(lease.id)
            return known is not None and known.settled == lease.token
        keep_logs(record, lease, settlement.logs)
        if record.status is JobStatus.QUEUED:
            begin_run(self._ledger, record, settlement.started_at or now, now)
        end_run(self._ledger, record, settlement.outcome, now)
        record.settled = lease.token
        record.is_suspect = False
        return True

    def write_steps(self, steps: Sequence[tuple[Lease, Step]]) -> list[bool]:
        with self._step():
            return [durable.keep_step(self._held(lease), step) for lease, step in steps]

    def write_step_in(self, connection: Any, lease: Lease, step: Step) -> None:
        raise self._no_transactions()

    def settle_in(self, connection: Any, settlement: Settlement) -> None:
        raise self._no_transactions()

    def receive(self, lease: Lease, name: str) -> Received:
        with self._step() as now:
            return durable.receive(self._held(lease), name, now)

    def signal(self, id: str, signal: JobSignal) -> SignalAnswer | None:
        with self._step() as now:
            record = self._ledger.jobs.get(id)
            return None if record is None else durable.send(self._ledger, record, signal, now)

    def durable(self, id: str) -> DurableState | None:
        with self._step():
            record = self._ledger.jobs.get(id)
            if record is None or record.durable is None:
                return None if record is None else DurableState()
            return record.durable.look()

    def release(self, leases: Sequence[Lease], keys: Sequence[str | None] = ()) -> list[bool]:
        with self._step() as now:
            held = [self._held(lease) for lease in leases]
            for record, key in zip(held, keys or [None] * len(held), strict=True):
                if record:
                    record.key = record.key if key is None else key
                    if record.status is JobStatus.QUEUED:
                        self._ledger.give_back(record, now)
                    else:
                        end_run(self._ledger, record, Outcome(move=Move.RELEASE), now)
            return [record is not None for record in held]

    def rescue(self, limit: int = 100) -> list[Rescued]:
        with self._step() as now:
            return rescue(self._ledger, limit, now)

    def cancel(self, ids: Sequence[str]) -> list[JobStatus | None]:
        found: list[JobStatus | None] = []
        with self._step() as now:
            for id in ids:
                record = self._ledger.jobs.get(id)
                found.append(record.status if record else None)
                if record is not None:
                    cancel(self._ledger, record, now)
        return found

    def retry(
        self, ids: Sequence[str], renewed: NewPayload | None = None, *, from_start: bool = False
    ) -> list[JobStatus | DuplicateError | None]:
        with self._step() as now:
            jobs = self._ledger.jobs
            return [revive(self._ledger, jobs.get(id), renewed, now, from_start=from_start) for id in ids]

    def delete(self, ids: Sequence[str]) -> list[JobStatus | None]:
        found: list[JobStatus | None] = []
        with self._step() as now:
            for id in ids:
                record = self._ledger.jobs.get(id)
                found.append(record.status if record else None)
                if record and record.status in FINISHED:
                    self._ledger.remove(record, now)
                    self._ledger.changes += 1
            self._ledger.tidy()
        return found

    def pause(self, queue: str) -> None:
        with self._step():
            self._paused.add(queue)
            self._ledger.changes += 1

    def resume(self, queue: str) -> None:
        with self._step() as now:
            self._paused.discard(queue)
            self._ledger.gates.look_again(now)
            self._ledger.changes += 1

    def get(self, id: str) -> Job | None:
        with self._step():
            record = self._ledger.jobs.get(id)
            if record is None:
                return None
            job, new, result, history = record.look(), record.new, record.result, record.history
        return replace(
            job,
            payload=json.decode(new.payload),
            result=None if result is None else json.decode(result),
            history=history,
            on_duplicate=new.on_duplicate,
            max_wait=new.max_wait,
        )

    def logs(self, id: str, after: int = 0) -> JobLogs | None:
        with self._step():
            record = self._ledger.jobs.get(id)
        return None if record is None else logs_of(record.logs, after)

    def page(self, filter: Filter, limit: int, before: int | None = None) -> Page:
        with self._step():
            return inspecting.page(self._ledger, filter, limit, before)

    def counts(self) -> Counts:
        with self._step():
            return inspecting.counts(self._ledger, self._paused)

    def ahead(self, id: str) -> int:
        with self._step():
            return inspecting.ahead(self._ledger, id)

    def failures(self, limit: int = MOST_FAILURES) -> Failures:
        with self._step():
            return inspecting.failures(self._ledger, limit)

    def key_of(self, id: str) -> str | None:
        with self._step():
            record = self._ledger.jobs.get(id)
            return None if record is None else record.key

    def running_of(self, unique: str) -> str | None:
        with self._step():
            return self._ledger.names.look(unique).running

    def limits(
        self, type: str | None = None, key: str | None = None, limit: int = 100, queues: Sequence[str] = ()
    ) -> Limits:
        with self._step() as now:
            return self._ledger.gates.look(type, key, limit, queues, now)

    def events(self, after: int, limit: int) -> list[JobEvent]:
        with self._step():
            return inspecting.events(self._ledger, after, limit)

    def last_event(self) -> int:
        with self._step():
            return self._ledger.last_event

    def watch(self, news: News) -> MemoryWatch:
        return MemoryWatch(self._changed, lambda: self._ledger.changes)

    def beat(self, worker: WorkerInfo, seconds: float) -> None:
        with self._step() as now:
            self._workers = {name: each for name, each in self._workers.items() if each[0] > now}
            self._workers.pop(worker.name, None)
            if seconds > 0:
                self._workers[worker.name] = (now + seconds, replace(worker, seen_at=now))

    def workers(self) -> list[WorkerInfo]:
        with self._step() as now:
            return [info for _, (until, info) in sorted(self._workers.items()) if until > now]

    def put_schedule(self, entry: ScheduleEntry) -> ScheduleEntry:
        with self._step():
            return self._entries.put(entry)

    def drop_schedule(self, name: str) -> bool:
        with self._step():
            return self._entries.drop(name)

    def pause_schedule(self, name: str) -> bool:
        with self._step():
            return self._entries.pause(name)

    def resume_schedule(self, name: str, tick_at: float, next_at: float) -> bool:
        with self._step():
            return self._entries.resume(name, tick_at, next_at)

    def schedules(self) -> Schedules:
        with self._step() as now:
            return Schedules(now, self._entries.all())

    def fire_tick(
        self, name: str, tick_at: float, next_at: float, job: NewJob | None, *, capacity: int = 0
    ) -> Receipt | Refusal | None:
        with self._step() as now:
            if not self._entries.is_next_tick(name, tick_at):
                return None
            receipt = None
            if job is not None:
                answer = self._insert([job], Bounds(capacity), now)
                if not isinstance(answer, list):
                    return answer
                (receipt,) = answer
            self._entries.advance(name, next_at, None if job is None else job.id)
            return receipt

    def export(self, limit: int, after: int = 0) -> list[ExportedJob]:
        with self._step():
            return transfer.export(self._ledger, limit, after)

    def adopt(self, exported: Sequence[ExportedJob]) -> int:
        with self._step() as now:
            return transfer.adopt(self._ledger, exported, now)

    def discard(self, ids: Sequence[str]) -> int:
        with self._step() as now:
            return transfer.discard(self._ledger, ids, now)

    def prune(self, keep: float, limit: int = 1_000, keep_failed: float | None = None) -> int:
        with self._step() as now:
            return prune(self._ledger, keep, limit, keep if keep_failed is None else keep_failed, now)


def _state_of(record: Record | None) -> LeaseState:
    """Of the lease by which a record was found."""
    if record is None:
        return LeaseState.LOST
    return LeaseState.CANCELLING if record.is_cancel_asked else LeaseState.HELD


def open_memory(url: str) -> MemoryStore:
    """A new, empty store."""
    return MemoryStore(url)
