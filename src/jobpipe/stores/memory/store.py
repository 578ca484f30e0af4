"""MemoryStore: the jobs of one process in its memory, gone when it ends.

It is the plainest store that keeps the contract, and what the others are held against. One lock, held once
a verb; no verb on the way of a job looks at all of them.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heapify, heappop, heapreplace
from itertools import islice
from secrets import token_hex
from threading import Condition
from typing import Any, Self

from msgspec import json
from msgspec.structs import replace

from ...errors import BadInputError, JobConflictError
from ...model.admission import Bounds, need_of, refusal
from ...model.counts import Counts, Filter, JobEvent, Page, Tally, WorkerInfo
from ...model.gate import MOST_PASSED_OVER, Limit, Limits
from ...model.job import TRANSITIONS, WAITING, Job, JobError, JobStatus, Move, Progress
from ...model.lease import Claim, ClaimResult, Lease, LeaseState, Outcome, Rescued, Settlement
from ...model.newjob import Answer, ExportedJob, NewJob, Receipt, Refusal
from ...model.schedule import ScheduleEntry, Schedules
from ..base import Capabilities, News
from .entries import Entries
from .gates import Selection
from .ledger import Ledger, Taken, run_at_of
from .record import Record
from .runs import end_run
from .watch import MemoryWatch

WORKER_LOST = JobError(type="WorkerLost", message="worker lost")


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
        if len(batch) > 1:
            seen: set[str] = set()
            for new in batch:
                if new.id in seen:
                    return JobConflictError(new.id, "is twice in the batch")
                seen.add(new.id)
        for new in batch:
            known = self._ledger.jobs.get(new.id)
            if known is not None and not new.is_same(known.new.fingerprint):
                return JobConflictError(new.id)
        if any(bounds):
            fresh = ((new, run_at_of(new, now) <= now) for new in batch if new.id not in self._ledger.jobs)
            refused = refusal(need_of(fresh), bounds, Taken(self._ledger))
            if refused is not None:
                return refused
        return [self._insert_one(new, now) for new in batch]

    def _insert_one(self, new: NewJob, now: float) -> Receipt:
        known = self._ledger.jobs.get(new.id)
        if known:
            return Receipt(new.id, known.status, False)
        return Receipt(new.id, self._ledger.add(new, now, now).status, True)

    def insert_in(self, connection: Any, batch: Sequence[NewJob], *, capacity: int = 0) -> Answer:
        raise BadInputError("connection", f"cannot be used with {self.url}, which has no transactions")

    def claim(
        self,
        worker: str,
        types: Sequence[str],
        limit: int,
        lease: float,
        limits: Sequence[Limit] = (),
        begin: int | None = None,
    ) -> ClaimResult:
        token = token_hex(16)
        claims: list[Claim] = []
        passed_over = 0
        with self._step() as now:
            selection = Selection(self._ledger.gates, limits, now)
            lanes = [
                lane
                for type in set(types)
                for queue, lane in self._ledger.lanes.get(type, {}).items()
                if lane.counts[JobStatus.QUEUED] and queue not in self._paused
            ]
            heads = [
                (record.precedence(), lane, record)
                for lane in selection.opened(lanes, limit)
                if (record := lane.ready.first())
            ]
            heapify(heads)  # Why no tie ever reaches the lanes: the precedence ends in a unique number.
            while heads and len(claims) < limit and passed_over < MOST_PASSED_OVER:
                _, lane, record = heads[0]
                begins = begin is None or len(claims) < begin
                if record.is_suspect and not begins:
                    break
                starts_in = selection.enter(record)
                if starts_in is not None:
                    held = Lease(record.new.id, record.attempts + 1, worker, token)
                    self._ledger.lease(record, held, now + lease)
                    claims.append(self._claim(record, held, now, starts_in, begins))
                    following = lane.ready.first()
                elif record.heap is lane.ready:  # it is not parked: its whole type has to wait
                    following = None
                else:
                    passed_over += 1
                    following = lane.ready.first()
                if following:
                    heapreplace(heads, (following.precedence(), lane, following))
                else:
                    heappop(heads)
            selection.end()
            if passed_over == MOST_PASSED_OVER:
                selection.wait(0.0)
            upcoming = self._ledger.scheduled.first()
            if upcoming:
                selection.wait(upcoming.run_at - now)
            return ClaimResult(claims, selection.due_in, has_more=bool(heads))

    def _claim(self, record: Record, lease: Lease, now: float, starts_in: float, begins: bool) -> Claim:
        new = record.new
        if begins:
            self._begin(record, now + starts_in, now)
        return Claim(
            lease=lease,
            type=new.type,
            queue=new.queue,
            payload=new.payload,
            attempts=lease.attempt,
            max_retries=new.max_retries,
            priority=new.priority,
            deadline=new.deadline,
            run_at=record.run_at,
            created_at=record.created_at,
            started_at=now + starts_in,
            starts_in=starts_in,
            key=record.key,
            has_begun=begins,
        )

    def _begin(self, record: Record, started_at: float, now: float) -> None:
        record.attempts += 1
        record.runs += 1
        record.started_at = started_at
        record.progress = None
        record.is_cancel_asked = False
        self._ledger.move(record, Move.BEGIN, now)

    def begin(self, leases: Sequence[Lease], started_at: Sequence[float]) -> list[LeaseState]:
        states: list[LeaseState] = []
        with self._step() as now:
            for lease, at in zip(leases, started_at, strict=True):
                record = self._held(lease)
                if record and record.status is JobStatus.QUEUED:
                    self._begin(record, at or now, now)
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

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        with self._step() as now:
            return [self._settle(each, now) for each in settlements]

    def _settle(self, settlement: Settlement, now: float) -> bool:
        lease = settlement.lease
        record = self._held(lease)
        if record is None:
            known = self._ledger.jobs.get(lease.id)
            return known is not None and known.settled == lease.token
        if record.status is JobStatus.QUEUED:
            self._begin(record, settlement.started_at or now, now)
        end_run(self._ledger, record, settlement.outcome, now)
        record.settled = lease.token
        record.is_suspect = False
        return True

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
            lost = [record for record in self._ledger.leased.values() if record.lease_until <= now]
            lost.sort(key=lambda record: (record.lease_until, record.number))
            for record in lost[:limit]:
                if record.status is JobStatus.QUEUED:
                    record.is_suspect = True
                    self._ledger.give_back(record, now)
                    continue
                is_last = record.attempts > record.new.max_retries
                move = Move.FAIL if is_last else Move.RESCUE
                end_run(self._ledger, record, Outcome(move=move, error=WORKER_LOST), now)
            return [Rescued(record.new.id, record.worker, record.status) for record in lost[:limit]]

    def cancel(self, ids: Sequence[str]) -> list[JobStatus | None]:
        found: list[JobStatus | None] = []
        with self._step() as now:
            for id in ids:
                record = self._ledger.jobs.get(id)
                found.append(record.status if record else None)
                if record is None:
                    continue
                if record.status is JobStatus.RUNNING:
                    record.is_cancel_asked = True
                    self._ledger.changes += 1
                elif Move.CANCEL in TRANSITIONS[record.status]:
                    self._ledger.move(record, Move.CANCEL, now)
        return found

    def retry(self, ids: Sequence[str]) -> list[JobStatus | None]:
        found: list[JobStatus | None] = []
        with self._step() as now:
            for id in ids:
                record = self._ledger.jobs.get(id)
                found.append(record.status if record else None)
                if record and Move.REVIVE in TRANSITIONS[record.status]:
                    record.attempts = 0
                    record.run_at = now
                    record.error = record.result = record.progress = None
                    record.started_at = record.finished_at = None
                    self._ledger.move(record, Move.REVIVE, now)
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
            job, result, history = record.look(), record.result, record.history
        payload = json.decode(record.new.payload)
        return replace(
            job, payload=payload, result=None if result is None else json.decode(result), history=history
        )

    def page(self, filter: Filter, limit: int, before: int | None = None) -> Page:
        jobs: list[Job] = []
        last = 0
        with self._step():
            end = (
                len(self._ledger.order)
                if before is None
                else bisect_left(self._ledger.order, before, key=lambda each: each.number)
            )
            for index in range(end - 1, -1, -1):
                record = self._ledger.order[index]
                if self._ledger.jobs.get(record.new.id) is not record or not _fits(record, filter):
                    continue
                if len(jobs) == limit:
                    return Page(jobs, last)
                jobs.append(record.look())
                last = record.number
        return Page(jobs, None)

    def counts(self) -> Counts:
        with self._step():
            tallies = [
                Tally(lane.queue, lane.type, status, lane.counts[status], total)
                for lanes in self._ledger.lanes.values()
                for lane in lanes.values()
                for status, total in lane.totals.items()
                if total
            ]
            return Counts(tallies, frozenset(self._paused), dict(self._ledger.retired))

    def ahead(self, id: str) -> int:
        with self._step():
            record = self._ledger.jobs.get(id)
            if record is None or record.status is not JobStatus.QUEUED:
                return 0
            own = record.precedence()
            lanes = [
                lanes[record.new.queue] for lanes in self._ledger.lanes.values() if record.new.queue in lanes
            ]
            ready = sum(other.precedence() < own for lane in lanes for other in lane.ready)
            return ready + self._ledger.gates.parked_before(own, record.new.queue)

    def key_of(self, id: str) -> str | None:
        with self._step():
            record = self._ledger.jobs.get(id)
            return None if record is None else record.key

    def limits(self, type: str | None = None, key: str | None = None, limit: int = 100) -> Limits:
        with self._step() as now:
            return self._ledger.gates.look(type, key, limit, now)

    def events(self, after: int, limit: int) -> list[JobEvent]:
        with self._step():
            events = self._ledger.events
            # Why counted from the end: numbers have no gaps here, and those who follow ask for the last few only.
            first = max(len(events) - max(self._ledger.last_event - after, 0), 0)
            return [events[at] for at in range(first, min(first + limit, len(events)))]

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
            order = self._ledger.order
            begin = bisect_right(order, after, key=lambda each: each.number)
            waiting = (
                record
                for record in islice(order, begin, None)
                if record.status in WAITING and self._ledger.jobs.get(record.new.id) is record
            )
            return [record.pack() for record in islice(waiting, limit)]

    def adopt(self, exported: Sequence[ExportedJob]) -> int:
        with self._step() as now:
            for job in exported:
                known = self._ledger.jobs.get(job.job.id)
                if known and not job.job.is_same(known.new.fingerprint):
                    raise JobConflictError(job.job.id)
            new = [job for job in exported if job.job.id not in self._ledger.jobs]
            for job in new:
                record = self._ledger.add(job.job, now, job.created_at, job.attempts, job.runs)
                record.error, record.history = job.error, job.history
                record.started_at, record.progress = job.started_at, job.progress
            return len(new)

    def discard(self, ids: Sequence[str]) -> int:
        with self._step() as now:
            found = [record for id in set(ids) if (record := self._ledger.jobs.get(id))]
            waiting = [record for record in found if record.status in WAITING]
            for record in waiting:
                self._ledger.remove(record, now)
            self._ledger.tidy()
            return len(waiting)

    def prune(self, keep: float, limit: int = 1_000) -> int:
        pruned = 0
        finished = self._ledger.finished
        with self._step() as now:
            while finished and pruned < limit:
                record = next(iter(finished.values()))
                if record.finished_at is None or now - record.finished_at <= keep:
                    break
                self._ledger.remove(record, now)
                pruned += 1
            self._ledger.tidy()
            self._ledger.gates.tidy(now)
            if pruned < limit:
                self._ledger.forget_names()
        return pruned


def _state_of(record: Record | None) -> LeaseState:
    """Of the lease by which a record was found."""
    if record is None:
        return LeaseState.LOST
    return LeaseState.CANCELLING if record.is_cancel_asked else LeaseState.HELD


def _fits(record: Record, filter: Filter) -> bool:
    return (
        filter.status in (None, record.status)
        and filter.type in (None, record.new.type)
        and filter.queue in (None, record.new.queue)
    )


def open_memory(url: str) -> MemoryStore:
    """A new, empty store."""
    return MemoryStore(url)
