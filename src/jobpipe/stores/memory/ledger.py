"""Ledger: where each job stands, and every collection in which it is found there.

A status changes in `move` alone, as TRANSITIONS says. Whoever uses it holds the store's lock.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from heapq import heappop, heappush
from itertools import count
from math import inf

from msgspec import structs

from ...model.counts import JobEvent
from ...model.job import FINISHED, PENDING, TRANSITIONS, JobStatus, Move
from ...model.lease import Lease
from ...model.newjob import ExportedJob, NewJob
from .gates import Gates
from .names import Names
from .record import Durable, Heap, Lane, Record

KEPT_EVENTS = 10_000


class Ledger:
    """The jobs."""

    def __init__(self) -> None:
        self.jobs: dict[str, Record] = {}
        self.order: list[Record] = []
        """By number; the removed are dropped when they are half of it."""
        self.tagged: defaultdict[str, dict[int, Record]] = defaultdict(dict)
        """By tag, and by number, in its order."""
        self.scheduled = Heap()
        """By run_at; also those that wait for a signal, until its time is over."""
        self._expiring: list[tuple[float, int, Record]] = []
        """A heap by expires_at, of those that wait; also of some that do no more."""
        self.lanes: dict[str, dict[str, Lane]] = {}
        """By type and queue."""
        self.gates = Gates()
        self.names = Names()
        self.behind = Heap()
        """Queued jobs that wait for the one of their unique name that runs; in no order."""
        self.leased: dict[str, Record] = {}
        """Those that run, and those that are queued but claimed ahead."""
        self.finished: OrderedDict[str, Record] = OrderedDict()
        """In the order in which they finished; without the failed."""
        self.failed: OrderedDict[str, Record] = OrderedDict()
        """The same of these. Why apart: they may be kept for another time."""
        self.queued: Counter[str] = Counter()
        """How many jobs are queued, by queue."""
        self.lane_count = 0
        self.retired: Counter[tuple[str, JobStatus]] = Counter()
        """As `Counts.retired` says."""
        self.events: deque[JobEvent] = deque(maxlen=KEPT_EVENTS)
        self.last_event = 0
        self.changes = 0
        self._numbers = count(1)

    def fingerprint(self, id: str) -> str | None:
        """Of the job of that id, if there is one."""
        known = self.jobs.get(id)
        return None if known is None else known.new.fingerprint

    def add(self, new: NewJob, now: float, kept: ExportedJob | None = None) -> Record:
        """Take in a job that is not there yet, with what is kept of it if it comes from another store."""
        run_at = new.due_at(now) if kept is None else new.run_at or 0.0
        later = JobStatus.WAITING if kept is not None and kept.is_waiting else JobStatus.SCHEDULED
        status = JobStatus.QUEUED if run_at <= now else later
        lane, number = self._lane(new), next(self._numbers)
        record = Record(new, lane, number, status, run_at, now, new.expires(now), key=new.key)
        if kept is not None:
            record.attempts, record.runs = kept.attempts, kept.runs
            record.created_at, record.started_at = kept.created_at, kept.started_at
            record.error, record.progress, record.history = kept.error, kept.progress, kept.history
            record.logs = kept.logs
            record.durable = None if kept.durable is None else Durable.of(kept.durable)
        self.jobs[new.id] = record
        self.order.append(record)
        if new.tags:
            self._tag(record)
        self._enter(record)
        if new.unique is not None:
            self._look_at(new.unique)
        return record

    def _lane(self, new: NewJob) -> Lane:
        lanes = self.lanes.get(new.type)
        if lanes is None:
            lanes = self.lanes[new.type] = {}
        lane = lanes.get(new.queue)
        if lane is None:
            lane = lanes[new.queue] = Lane(new.queue, new.type)
            self.lane_count += 1
        return lane

    @property
    def next_expiry(self) -> float:
        """When to look next at what may have expired; infinity if nothing can."""
        return self._expiring[0][0] if self._expiring else inf

    def come_due(self, now: float) -> None:
        """End what has expired, and queue what is scheduled for now or before, or has waited until then."""
        while self._expiring and self._expiring[0][0] <= now:
            self._expire(heappop(self._expiring)[2], now)
        while (record := self.scheduled.first()) and record.run_at <= now:
            self.move(record, Move.COME_DUE, now)

    def _expire(self, record: Record, now: float) -> None:
        """End it, unless it was replaced by one with more time, or has begun, or is gone."""
        # Why not what is leased: whether it began before, its worker knows.
        can_expire = Move.EXPIRE in TRANSITIONS[record.status] and record.token is None
        if can_expire and record.is_late(now) and self.jobs.get(record.new.id) is record:
            self.move(record, Move.EXPIRE, now)

    def replace(self, record: Record, new: NewJob, now: float) -> None:
        """Let a job that has not begun take the content of a new one."""
        if record.token is not None:
            self.give_back(record, now)
        record.run_at = new.due_at(now, record.created_at)
        record.key, record.expires_at = new.key, new.expires(now)
        old = record.new
        self._untag(record)
        record.new = structs.replace(new, id=old.id, fingerprint=old.fingerprint, former=old.former)
        self._tag(record)
        status = JobStatus.QUEUED if record.run_at <= now else JobStatus.SCHEDULED
        if status is not record.status:
            self.move(record, Move.COME_DUE if status is JobStatus.QUEUED else Move.POSTPONE, now)
        else:
            record.heap.discard(record)
            self._wait(record)
            self._watch_expiry(record)
            if old.unique is not None:
                self._look_at(old.unique)
            self.changes += 1

    def move(self, record: Record, move: Move, now: float) -> None:
        """The only way in which a status changes."""
        status = TRANSITIONS[record.status][move]
        self._leave(record, now, keeps_lease=move is Move.BEGIN)
        record.status = status
        if status in FINISHED:
            record.finished_at = now
        self._enter(record)
        if record.new.unique is not None:
            self._look_at(record.new.unique)

    def lease(self, record: Record, lease: Lease, until: float) -> None:
        """Take a queued job out of its lane."""
        record.heap.discard(record)
        record.worker = lease.worker
        record.token, record.settled = lease.token, None
        record.lease_until = until
        self.leased[record.new.id] = record
        self.changes += 1

    def give_back(self, record: Record, now: float) -> None:
        """Put a job that was claimed ahead back into its lane."""
        self._end_lease(record, now)
        self._wait(record)
        self._watch_expiry(record)
        self.changes += 1

    def _watch_expiry(self, record: Record) -> None:
        if record.expires_at is not None and record.may_expire:
            heappush(self._expiring, (record.expires_at, record.number, record))

    def _end_lease(self, record: Record, now: float) -> None:
        del self.leased[record.new.id]
        record.token = None
        if record.gate is not None:
            self.gates.leave(record, now)
        if record.is_in_queue_gate:
            self.gates.leave_queue(record)

    def remove(self, record: Record, now: float) -> None:
        """Forget a job."""
        self._leave(record, now)
        del self.jobs[record.new.id]
        self._untag(record)
        if record.new.unique is not None:
            self._look_at(record.new.unique)

    def _tag(self, record: Record) -> None:
        for tag in record.new.tags:
            tagged = self.tagged[tag]
            is_last = not tagged or next(reversed(tagged)) < record.number
            tagged[record.number] = record
            if not is_last:
                self.tagged[tag] = dict(sorted(tagged.items()))

    def _untag(self, record: Record) -> None:
        for tag in record.new.tags:
            del self.tagged[tag][record.number]
            if not self.tagged[tag]:
                del self.tagged[tag]

    def tidy(self) -> None:
        """Drop what was removed from the order, once it is half of it."""
        if len(self.order) > 2 * len(self.jobs) + 16:
            self.order = [each for each in self.order if self.jobs.get(each.new.id) is each]

    def forget_names(self) -> None:
        """Forget the lanes that have no jobs; their totals stay with their type, while that has some."""
        for type, lanes in list(self.lanes.items()):
            for lane in [lane for lane in lanes.values() if not any(lane.counts.values())]:
                del lanes[lane.queue]
                self.lane_count -= 1
                self.retired.update({(type, status): total for status, total in lane.totals.items() if total})
            if not lanes:
                del self.lanes[type]
        self.retired = Counter({key: total for key, total in self.retired.items() if key[0] in self.lanes})

    def ended(self, status: JobStatus) -> OrderedDict[str, Record]:
        """Where finished jobs of the status are."""
        return self.failed if status is JobStatus.FAILED else self.finished

    def _count_queued(self, queue: str, change: int) -> None:
        self.queued[queue] += change
        if not self.queued[queue]:
            del self.queued[queue]

    def _leave(self, record: Record, now: float, *, keeps_lease: bool = False) -> None:
        new, status, lane = record.new, record.status, record.lane
        lane.counts[status] -= 1
        if new.unique is not None:
            self.names.leave(record)
        if status is JobStatus.QUEUED:
            self._count_queued(new.queue, -1)
        if record.token is not None:
            if not keeps_lease:
                self._end_lease(record, now)
        elif status in PENDING:
            record.heap.discard(record)
        else:
            del self.ended(status)[new.id]

    def _enter(self, record: Record) -> None:
        new, status, lane = record.new, record.status, record.lane
        lane.counts[status] += 1
        lane.totals[status] += 1
        if new.unique is not None:
            self.names.enter(record)
        if status in PENDING:
            if record.expires_at is not None:
                self._watch_expiry(record)
            if status is JobStatus.QUEUED:
                self._count_queued(new.queue, 1)
            self._wait(record)
        elif status in FINISHED:
            self.ended(status)[new.id] = record
        self.changes += 1
        self.last_event += 1
        self.events.append(
            JobEvent(self.last_event, new.id, new.type, new.queue, status, record.attempts),
        )

    def _wait(self, record: Record) -> None:
        if record.status is JobStatus.QUEUED:
            record.lane.ready.push(record, record.precedence())
        else:
            self.scheduled.push(record, (record.run_at, record.number))

    def _look_at(self, name: str) -> None:
        """See to it that the job of a name that waits is behind the one that runs, and only while it does."""
        holders = self.names[name]
        waiting = holders.waiting
        if waiting and waiting.status is JobStatus.QUEUED and waiting.token is None:
            is_behind = holders.running is not None
            if is_behind is not (waiting.heap is self.behind):
                waiting.heap.discard(waiting)
                (self.behind if is_behind else waiting.lane.ready).push(waiting, waiting.precedence())


class Taken:
    """What the jobs take up, as an `Occupancy`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def ready(self, queue: str) -> int:
        return self._ledger.queued[queue]

    def scheduled(self) -> int:
        return self._ledger.scheduled.live

    def has_lane(self, lane: tuple[str, str]) -> bool:
        queue, type = lane
        return queue in self._ledger.lanes.get(type, {})

    def lanes(self) -> int:
        return self._ledger.lane_count
