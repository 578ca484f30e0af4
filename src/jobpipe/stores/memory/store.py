"""MemoryStore: the jobs of one process in its memory, gone when it ends.

It is the plainest store that keeps the contract, and what the others are held against. One lock, held once
a verb; no verb on the way of a job looks at all of them. Every status change goes through `_move`.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heapify, heappop, heapreplace
from itertools import count
from secrets import token_hex
from threading import Condition
from typing import Any, Self

from msgspec import json
from msgspec.structs import replace

from ...errors import BadInputError, JobConflictError, QueueFullError
from ...job import (
    FINISHED,
    KEPT_HISTORY,
    TRANSITIONS,
    WAITING,
    Attempt,
    Job,
    JobError,
    JobStatus,
    Move,
    Progress,
    instant,
)
from ..base import (
    Capabilities,
    Claim,
    Counts,
    Filter,
    Haul,
    JobEvent,
    Lease,
    LeaseState,
    NewJob,
    Outcome,
    Page,
    Receipt,
    Rescued,
    ScheduleEntry,
    Schedules,
    Settlement,
    Tally,
    WorkerInfo,
)
from .record import Heap, Lane, Record
from .watch import MemoryWatch

KEPT_EVENTS = 10_000
WORKER_LOST = JobError(type="WorkerLost", message="worker lost")
_UNCOUNTED = frozenset({Move.SNOOZE, Move.RELEASE})
"""A run that ends so was none: its attempt is given back, and the history does not know it."""
_TELLING = frozenset({Move.FAIL, Move.RETRY, Move.RESCUE})
"""A run that ends so has an error to tell of, even where it ends the job as cancelled."""


class MemoryStore:
    """A store for one process; whoever holds it, or its sibling, sees the same jobs."""

    capabilities = Capabilities(durable=False, shared=False, transactional=False, push=True, blocking=False)

    def __init__(self, url: str = "memory://", *, clock: Callable[[], float] = time.time) -> None:
        self.url = url
        self._clock = clock
        self._changed = Condition()
        """The one lock, and the bell of the watches."""
        self._changes = 0
        self._jobs: dict[str, Record] = {}
        self._order: list[Record] = []
        """By number; the pruned are dropped when they are half of it."""
        self._numbers = count(1)
        self._scheduled = Heap()
        self._lanes: dict[str, dict[str, Lane]] = {}
        """By type and queue."""
        self._running: dict[str, Record] = {}
        self._finished: OrderedDict[str, Record] = OrderedDict()
        """In the order in which they finished."""
        self._waiting: defaultdict[str, int] = defaultdict(int)
        """How many jobs wait, by queue."""
        self._paused: set[str] = set()
        self._events: deque[JobEvent] = deque(maxlen=KEPT_EVENTS)
        self._last_event = 0
        self._workers: dict[str, tuple[float, WorkerInfo]] = {}
        self._schedules: dict[str, ScheduleEntry] = {}

    @contextmanager
    def _step(self) -> Iterator[float]:
        """One atomic step: the lock is held, what is due is queued, and time stands still."""
        with self._changed:
            before = self._changes
            now = self._clock()
            while (record := self._scheduled.first()) and record.run_at <= now:
                self._move(record, Move.COME_DUE, now)
            yield now
            if self._changes != before:
                self._changed.notify_all()

    def _move(self, record: Record, move: Move, now: float) -> None:
        """The only way in which a status changes."""
        status = TRANSITIONS[record.status][move]
        self._leave(record)
        record.status = status
        if status in FINISHED:
            record.finished_at = now
        self._enter(record)

    def _leave(self, record: Record) -> None:
        new, status, lane = record.new, record.status, record.lane
        lane.counts[status] -= 1
        if status in WAITING:
            self._waiting[new.queue] -= 1
        if status is JobStatus.SCHEDULED:
            self._scheduled.discard(record)
        elif status is JobStatus.QUEUED:
            lane.ready.discard(record)
        elif status is JobStatus.RUNNING:
            del self._running[new.id]
            record.token = None
        else:
            del self._finished[new.id]

    def _enter(self, record: Record) -> None:
        new, status, lane = record.new, record.status, record.lane
        lane.counts[status] += 1
        lane.totals[status] += 1
        if status in WAITING:
            self._waiting[new.queue] += 1
        if status is JobStatus.SCHEDULED:
            self._scheduled.push(record, (record.run_at, record.number))
        elif status is JobStatus.QUEUED:
            lane.ready.push(record, record.precedence())
        elif status is JobStatus.RUNNING:
            self._running[new.id] = record
        else:
            self._finished[new.id] = record
        self._changes += 1
        self._last_event += 1
        self._events.append(
            JobEvent(self._last_event, new.id, new.type, new.queue, status, record.attempts),
        )

    def migrate(self) -> list[str]:
        return []

    def check(self) -> list[str]:
        return ["memory:// keeps jobs only until this process ends"]

    def sibling(self) -> Self:
        return self  # Why: there is no connection that one could hold up for the other.

    def close(self) -> None:
        pass

    def insert(
        self, batches: Sequence[Sequence[NewJob]], *, capacity: int = 0
    ) -> list[list[Receipt] | JobConflictError | QueueFullError]:
        with self._step() as now:
            return [self._insert(batch, capacity, now) for batch in batches]

    def _insert(
        self, batch: Sequence[NewJob], capacity: int, now: float
    ) -> list[Receipt] | JobConflictError | QueueFullError:
        needed: defaultdict[str, int] = defaultdict(int)
        if len(batch) > 1:
            seen: set[str] = set()
            for new in batch:
                if new.id in seen:
                    return JobConflictError(new.id, "is twice in the batch")
                seen.add(new.id)
        for new in batch:
            known = self._jobs.get(new.id)
            if known is None:
                needed[new.queue] += 1
            elif known.new.fingerprint != new.fingerprint:
                return JobConflictError(new.id)
        for queue, more in needed.items() if capacity else ():
            if self._waiting[queue] + more > capacity:
                return QueueFullError(queue, waiting=self._waiting[queue], needed=more, capacity=capacity)
        return [self._insert_one(new, now) for new in batch]

    def _insert_one(self, new: NewJob, now: float) -> Receipt:
        known = self._jobs.get(new.id)
        if known:
            return Receipt(new.id, known.status, False)
        run_at = now + new.delay if new.run_at is None else new.run_at
        status = JobStatus.QUEUED if run_at <= now else JobStatus.SCHEDULED
        record = Record(new, self._lane(new.type, new.queue), next(self._numbers), status, run_at, now)
        self._jobs[new.id] = record
        self._order.append(record)
        self._enter(record)
        return Receipt(new.id, status, True)

    def _lane(self, type: str, queue: str) -> Lane:
        lanes = self._lanes.get(type)
        if lanes is None:
            lanes = self._lanes[type] = {}
        lane = lanes.get(queue)
        if lane is None:
            lane = lanes[queue] = Lane(queue, type)
        return lane

    def insert_in(
        self, connection: Any, batch: Sequence[NewJob], *, capacity: int = 0
    ) -> list[Receipt] | JobConflictError | QueueFullError:
        raise BadInputError("connection", f"cannot be used with {self.url}, which has no transactions")

    def claim(self, worker: str, types: Sequence[str], limit: int, lease: float) -> Haul:
        token = token_hex(16)
        claims: list[Claim] = []
        with self._step() as now:
            lanes = [
                lane.ready
                for type in set(types)
                for queue, lane in self._lanes.get(type, {}).items()
                if lane.ready.live and queue not in self._paused
            ]
            heads = [(record.precedence(), heap, record) for heap in lanes if (record := heap.first())]
            heapify(
                heads
            )  # Why no tie ever reaches the heap objects: the precedence ends in a unique number.
            while heads and len(claims) < limit:
                _, heap, record = heads[0]
                claims.append(
                    self._claim(record, Lease(record.new.id, record.attempts + 1, worker, token), lease, now)
                )
                following = heap.first()
                if following:
                    heapreplace(heads, (following.precedence(), heap, following))
                else:
                    heappop(heads)
            upcoming = self._scheduled.first()
            return Haul(claims, upcoming.run_at - now if upcoming else None)

    def _claim(self, record: Record, lease: Lease, seconds: float, now: float) -> Claim:
        new = record.new
        record.attempts += 1
        record.runs += 1
        record.worker = lease.worker
        record.token, record.settled = lease.token, None
        record.lease_until = now + seconds
        record.started_at = now
        record.progress = None
        record.is_cancel_asked = False
        self._move(record, Move.CLAIM, now)
        return Claim(
            lease=lease,
            type=new.type,
            queue=new.queue,
            payload=new.payload,
            attempts=record.attempts,
            max_retries=new.max_retries,
            priority=new.priority,
            deadline=new.deadline,
            run_at=record.run_at,
            created_at=record.created_at,
            started_at=now,
        )

    def _held(self, lease: Lease) -> Record | None:
        record = self._running.get(lease.id)
        return record if record and record.is_held(lease) else None

    def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
        states: list[LeaseState] = []
        with self._step() as now:
            for lease in leases:
                record = self._held(lease)
                if record is None:
                    states.append(LeaseState.LOST)
                    continue
                record.lease_until = now + seconds
                states.append(LeaseState.CANCELLING if record.is_cancel_asked else LeaseState.HELD)
        return states

    def progress(self, reports: Sequence[tuple[Lease, Progress]]) -> None:
        with self._step():
            for lease, progress in reports:
                record = self._held(lease)
                if record:
                    record.progress = progress
                    self._changes += 1

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        with self._step() as now:
            return [self._settle(each.lease, each.outcome, now) for each in settlements]

    def _settle(self, lease: Lease, outcome: Outcome, now: float) -> bool:
        record = self._held(lease)
        if record is None:
            known = self._jobs.get(lease.id)
            return known is not None and known.settled == lease.token
        self._end_run(record, outcome, now)
        record.settled = lease.token
        return True

    def _end_run(self, record: Record, outcome: Outcome, now: float) -> None:
        """What every end of a run has in common; a request to cancel wins over what it came to."""
        move = Move.CANCEL if record.is_cancel_asked else outcome.move
        tells = outcome.move in _TELLING or (outcome.move is Move.CANCEL and not record.is_cancel_asked)
        if outcome.move in _UNCOUNTED:
            record.attempts -= 1
            record.runs -= 1
        else:
            record.error = outcome.error if tells else None
            self._remember(record, now)
        record.progress = outcome.progress or record.progress
        if move is Move.SUCCEED:
            record.result = outcome.result
        if move in (Move.RETRY, Move.SNOOZE):
            record.run_at = now + outcome.delay
        self._move(record, move, now)

    @staticmethod
    def _remember(record: Record, now: float) -> None:
        attempt = Attempt(
            number=record.runs,
            began_at=instant(record.started_at or 0.0),
            ended_at=instant(now),
            worker=record.worker,
            error=record.error,
        )
        record.history = (*record.history, attempt)[-KEPT_HISTORY:]

    def release(self, leases: Sequence[Lease]) -> list[bool]:
        with self._step() as now:
            held = [self._held(lease) for lease in leases]
            for record in held:
                if record:
                    self._end_run(record, Outcome(move=Move.RELEASE), now)
            return [record is not None for record in held]

    def rescue(self, limit: int = 100) -> list[Rescued]:
        with self._step() as now:
            lost = [record for record in self._running.values() if record.lease_until <= now]
            lost.sort(key=lambda record: (record.lease_until, record.number))
            for record in lost[:limit]:
                is_last = record.attempts > record.new.max_retries
                move = Move.FAIL if is_last else Move.RESCUE
                self._end_run(record, Outcome(move=move, error=WORKER_LOST), now)
            return [Rescued(record.new.id, record.worker, record.status) for record in lost[:limit]]

    def cancel(self, ids: Sequence[str]) -> list[JobStatus | None]:
        found: list[JobStatus | None] = []
        with self._step() as now:
            for id in ids:
                record = self._jobs.get(id)
                found.append(record.status if record else None)
                if record is None:
                    continue
                if record.status is JobStatus.RUNNING:
                    record.is_cancel_asked = True
                    self._changes += 1
                elif Move.CANCEL in TRANSITIONS[record.status]:
                    self._move(record, Move.CANCEL, now)
        return found

    def retry(self, ids: Sequence[str]) -> list[JobStatus | None]:
        found: list[JobStatus | None] = []
        with self._step() as now:
            for id in ids:
                record = self._jobs.get(id)
                found.append(record.status if record else None)
                if record and Move.REVIVE in TRANSITIONS[record.status]:
                    record.attempts = 0
                    record.run_at = now
                    record.error = record.result = record.progress = None
                    record.started_at = record.finished_at = None
                    self._move(record, Move.REVIVE, now)
        return found

    def pause(self, queue: str) -> None:
        with self._step():
            self._paused.add(queue)
            self._changes += 1

    def resume(self, queue: str) -> None:
        with self._step():
            self._paused.discard(queue)
            self._changes += 1

    def get(self, id: str) -> Job | None:
        with self._step():
            record = self._jobs.get(id)
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
                len(self._order)
                if before is None
                else bisect_left(self._order, before, key=lambda each: each.number)
            )
            for index in range(end - 1, -1, -1):
                record = self._order[index]
                if self._jobs.get(record.new.id) is not record or not _fits(record, filter):
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
                for lanes in self._lanes.values()
                for lane in lanes.values()
                for status, total in lane.totals.items()
                if total
            ]
            return Counts(tallies, frozenset(self._paused))

    def ahead(self, id: str) -> int:
        with self._step():
            record = self._jobs.get(id)
            if record is None or record.status is not JobStatus.QUEUED:
                return 0
            own = record.precedence()
            lanes = [lanes[record.new.queue] for lanes in self._lanes.values() if record.new.queue in lanes]
            return sum(other.precedence() < own for lane in lanes for other in lane.ready)

    def events(self, after: int, limit: int) -> list[JobEvent]:
        with self._step():
            return [event for event in self._events if event.number > after][:limit]

    def last_event(self) -> int:
        with self._step():
            return self._last_event

    def watch(self) -> MemoryWatch:
        return MemoryWatch(self._changed, lambda: self._changes)

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
            known = self._schedules.get(entry.name)
            if known is not None:
                entry = replace(entry, last_at=known.last_at, last_job=known.last_job)
                if known.timing == entry.timing:
                    entry = replace(entry, anchor_at=known.anchor_at, next_at=known.next_at)
            self._schedules[entry.name] = entry
            return entry

    def drop_schedule(self, name: str) -> bool:
        with self._step():
            return self._schedules.pop(name, None) is not None

    def schedules(self) -> Schedules:
        with self._step() as now:
            return Schedules(now, [self._schedules[name] for name in sorted(self._schedules)])

    def fire_tick(
        self, name: str, tick_at: float, next_at: float, job: NewJob | None, *, capacity: int = 0
    ) -> Receipt | JobConflictError | QueueFullError | None:
        with self._step() as now:
            entry = self._schedules.get(name)
            if entry is None or entry.next_at != tick_at:
                return None
            receipt = None
            if job is not None:
                answer = self._insert([job], capacity, now)
                if not isinstance(answer, list):
                    return answer
                (receipt,) = answer
                entry = replace(entry, last_at=tick_at, last_job=job.id)
            self._schedules[name] = replace(entry, next_at=next_at)
            return receipt

    def prune(self, keep: float, limit: int = 1_000) -> int:
        pruned = 0
        with self._step() as now:
            while self._finished and pruned < limit:
                record = next(iter(self._finished.values()))
                if record.finished_at is None or now - record.finished_at <= keep:
                    break
                self._leave(record)
                del self._jobs[record.new.id]
                pruned += 1
            if len(self._order) > 2 * len(self._jobs) + 16:
                self._order = [each for each in self._order if self._jobs.get(each.new.id) is each]
        return pruned


def _fits(record: Record, filter: Filter) -> bool:
    return (
        filter.status in (None, record.status)
        and filter.type in (None, record.new.type)
        and filter.queue in (None, record.new.queue)
    )


def open_memory(url: str) -> MemoryStore:
    """A new, empty store."""
    return MemoryStore(url)
