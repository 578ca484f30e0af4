"""A store held against the memory store by random steps, verb by verb, with the same manual clock.

    class MyMachine(StoreMachine):
        def make_store(self, time: ManualTime) -> Store: ...

    TestMyMachine = MyMachine.TestCase

After every step all that can be read must be equal; only claim tokens and the numbers of pages and events may
differ. Times are multiples of half a second, so that no store's rounding matters. Needs hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from ...errors import DuplicateError
from ...model.counts import JobEvent, WorkerInfo
from ...model.gate import Limit, Limits
from ...model.job import Progress
from ...model.lease import Claim, Lease, Outcome, QueueChoice, Settlement
from ...model.newjob import NewJob
from ...stores.base import Store
from ...stores.memory import MemoryStore
from ..durable.tools import signal_of, step
from ..harness import ManualTime
from ..reading import pages
from ..tools import new_job
from .strategies import (
    FILTERS,
    IDS,
    LIMITS,
    NAMES,
    QUEUES,
    SECONDS,
    SIGNALS,
    TYPES,
    UNIQUE,
    WORKERS,
    choices,
    entries,
    first_jobs,
    jobs,
    outcomes,
    picks,
    some_ids,
    some_tick,
    suspensions,
    ticks,
)

T = TypeVar("T")


def verb(name: str, /, **arguments: Any) -> Any:
    """A step that calls a verb of both with the same arguments; they must answer the same."""

    def step(self: StoreMachine, **given: Any) -> None:
        self._same(lambda store: getattr(store, name)(**given))

    step.__name__ = name
    decorate: Any = rule(**arguments)
    return decorate(step)


class StoreMachine(RuleBasedStateMachine):
    """The steps; a subclass makes the store, empty and migrated."""

    def __init__(self) -> None:
        super().__init__()
        self.time = ManualTime()
        self.oracle = MemoryStore(clock=self.time)
        self.store = self.make_store(self.time)
        self.leases: list[tuple[Lease, Lease]] = []
        """Every lease that there ever was: the store's, and the oracle's."""
        self.limits: tuple[Limit, ...] = ()
        self.seen = (0, 0)
        """The last event of each that was compared."""

    def make_store(self, time: ManualTime) -> Store:
        """The store to be held against the memory store, on that clock."""
        raise TypeError(f"{type(self).__name__} must say in make_store() which store it is about")

    def teardown(self) -> None:
        self.store.close()

    def _same(self, ask: Callable[[Store], T], shown: Callable[[T], Any] = lambda answer: answer) -> None:
        actual, expected = shown(ask(self.store)), shown(ask(self.oracle))
        assert actual == expected

    def _same_of(self, numbers: Sequence[int], ask: Callable[[Store, list[Lease]], object]) -> None:
        """Ask both about some leases, the newest most often; about none if there never was one."""
        pairs = [self.leases[-1 - number % len(self.leases)] for number in numbers if self.leases]
        assert ask(self.store, [mine for mine, _ in pairs]) == ask(self.oracle, [its for _, its in pairs])

    @initialize(limits=st.sampled_from(LIMITS), batch=first_jobs, begin=st.sampled_from([None, 1]))
    def begin_with_leases(self, limits: tuple[Limit, ...], batch: list[NewJob], begin: int | None) -> None:
        """Why not without: most of what can go wrong is about them, and random steps rarely lead to many."""
        self.limits = limits
        self._same(lambda store: store.insert([batch]))
        self._claim(worker=WORKERS[0], types=TYPES, limit=2, lease=3.0, begin=begin, queues=None)

    @rule(
        batches=st.lists(st.lists(jobs, max_size=4), max_size=3),
        capacity=st.sampled_from([0, 0, 0, 2, 4]),
        scheduled=st.sampled_from([0, 0, 0, 1, 3]),
        names=st.sampled_from([0, 0, 0, 1, 3]),
    )
    def insert(self, batches: list[list[NewJob]], capacity: int, scheduled: int, names: int) -> None:
        self._same(
            lambda store: store.insert(batches, capacity=capacity, scheduled=scheduled, names=names),
            lambda answers: [
                each if isinstance(each, list) else (type(each), vars(each)) for each in answers
            ],
        )

    @rule(number=st.integers(0, 5))
    def insert_again(self, number: int) -> None:
        known = self.oracle.get(IDS[number])
        if known:
            delay = (known.run_at - known.created_at).total_seconds()
            options = {name: getattr(known, name) for name in ("type", "queue", "max_retries", "priority")}
            again = new_job(known.id, known.payload, delay=delay, **options)
            self._same(lambda store: store.insert([[again]]), lambda answers: [isinstance(answers[0], list)])

    @rule(
        worker=st.sampled_from(WORKERS),
        types=st.lists(st.sampled_from([*TYPES, "unknown"]), max_size=3),
        limit=st.integers(0, 4),
        lease=st.sampled_from([1.0, 3.0, 10.0]),
        begin=st.sampled_from([None, None, 0, 1]),
        queues=choices,
    )
    def claim(self, limit: int, queues: QueueChoice | None, **asked: Any) -> None:
        if queues is not None and queues.rooms:
            limit = sum(room.most for room in queues.rooms.values())
        self._claim(limit=limit, queues=queues, **asked)

    def _claim(self, queues: QueueChoice | None, **asked: Any) -> None:
        asked |= {"limits": self.limits, "queues": queues}
        actual, expected = self.store.claim(**asked), self.oracle.claim(**asked)
        # else it is a hint, and a store may know more or less of its gates, and of queues that are not meant
        if not self.limits and queues is None:
            assert actual.due_in == expected.due_in
        assert [_without_token(claim) for claim in actual.claims] == [
            _without_token(claim) for claim in expected.claims
        ]
        self.leases += [
            (mine.lease, its.lease) for mine, its in zip(actual.claims, expected.claims, strict=True)
        ]

    @rule(numbers=picks, ago=st.sampled_from(SECONDS))
    def begin(self, numbers: list[int], ago: float) -> None:
        at = self.time() - ago
        self._same_of(numbers, lambda store, leases: store.begin(leases, [at] * len(leases)))

    @rule(numbers=picks, outcome=outcomes, ago=st.sampled_from([None, *SECONDS]))
    def settle(self, numbers: list[int], outcome: Outcome, ago: float | None) -> None:
        at = 0.0 if ago is None else self.time() - ago
        self._same_of(
            numbers, lambda store, leases: store.settle([Settlement(lease, outcome, at) for lease in leases])
        )

    @rule(numbers=picks, seconds=st.sampled_from([1.0, 3.0, 10.0]))
    def extend(self, numbers: list[int], seconds: float) -> None:
        self._same_of(numbers, lambda store, leases: store.extend(leases, seconds))

    @rule(numbers=picks, key=st.sampled_from([None, None, "k0", "k1"]))
    def release(self, numbers: list[int], key: str | None) -> None:
        once = list(dict.fromkeys(number % max(len(self.leases), 1) for number in numbers))
        self._same_of(once, lambda store, leases: store.release(leases, [key] * len(leases)))

    @rule(ids=some_ids)
    def move_out_and_in(self, ids: list[str]) -> None:
        exported = [job for job in self.oracle.export(100) if job.job.id in ids]
        self._same(lambda store: [replace(job, number=0) for job in store.export(100)])
        self._same(lambda store: store.discard(ids))
        self._same(lambda store: store.adopt(exported))

    @rule(numbers=picks, value=st.sampled_from([0.0, 0.25, 1.0]), note=st.sampled_from([None, "", "page 1"]))
    def progress(self, numbers: list[int], value: float, note: str | None) -> None:
        report = Progress(value=value, note=note)
        self._same_of(numbers, lambda store, leases: store.progress([(lease, report) for lease in leases]))

    @rule(numbers=picks, outcome=suspensions)
    def suspend(self, numbers: list[int], outcome: Outcome) -> None:
        self._same_of(
            numbers, lambda store, leases: store.settle([Settlement(lease, outcome) for lease in leases])
        )

    @rule(numbers=picks, name=st.sampled_from(SIGNALS), result=st.sampled_from([None, {"x": 1}]))
    def write_steps(self, numbers: list[int], name: str, result: object) -> None:
        told = step(name, result)
        self._same_of(numbers, lambda store, leases: store.write_steps([(lease, told) for lease in leases]))

    @rule(numbers=picks, name=st.sampled_from(SIGNALS))
    def receive(self, numbers: list[int], name: str) -> None:
        self._same_of(numbers, lambda store, leases: [store.receive(lease, name) for lease in leases])

    @rule(id=st.sampled_from(IDS), name=st.sampled_from(SIGNALS), payload=st.sampled_from([None, {"x": 1}]))
    def signal(self, id: str, name: str, payload: object) -> None:
        self._same(lambda store: store.signal(id, signal_of(name, payload)))

    rescue = verb("rescue", limit=st.integers(1, 100))
    cancel = verb("cancel", ids=some_ids)
    delete = verb("delete", ids=some_ids)
    pause = verb("pause", queue=st.sampled_from(QUEUES))
    resume = verb("resume", queue=st.sampled_from(QUEUES))
    put_schedule = verb("put_schedule", entry=entries)
    drop_schedule = verb("drop_schedule", name=st.sampled_from(NAMES))
    pause_schedule = verb("pause_schedule", name=st.sampled_from(NAMES))
    # Why all: which of those that finished at one instant goes first is nobody's business.
    prune = verb("prune", keep=st.sampled_from(SECONDS), keep_failed=st.sampled_from([None, *SECONDS]))

    @rule(ids=some_ids, from_start=st.booleans())
    def retry(self, ids: list[str], from_start: bool) -> None:
        self._same(
            lambda store: store.retry(ids, from_start=from_start),
            lambda found: [vars(each) if isinstance(each, DuplicateError) else each for each in found],
        )

    @rule(worker=st.sampled_from(WORKERS), slots=st.integers(1, 3), seconds=st.sampled_from(SECONDS))
    def beat(self, worker: str, slots: int, seconds: float) -> None:
        info = WorkerInfo(name=worker, types=("t0",), slots=slots, running=(), started_at=1.5)
        self._same(lambda store: store.beat(info, seconds))

    @rule(name=st.sampled_from(NAMES), tick_at=some_tick, next_at=ticks)
    def resume_schedule(self, name: str, tick_at: float | None, next_at: float) -> None:
        at = self._tick_of(name) if tick_at is None else tick_at
        self._same(lambda store: store.resume_schedule(name, at, next_at))

    def _tick_of(self, name: str) -> float:
        """The one that is next."""
        found = {entry.name: entry.next_at for entry in self.oracle.schedules().entries}
        return found.get(name, 1.5)

    @rule(
        name=st.sampled_from(NAMES),
        tick_at=some_tick,
        next_at=ticks,
        job=st.one_of(st.none(), jobs),
        capacity=st.sampled_from([0, 0, 2]),
    )
    def fire_tick(
        self, name: str, tick_at: float | None, next_at: float, job: NewJob | None, capacity: int
    ) -> None:
        at = self._tick_of(name) if tick_at is None else tick_at
        self._same(
            lambda store: store.fire_tick(name, at, next_at, job, capacity=capacity),
            lambda answer: (type(answer), vars(answer)) if isinstance(answer, Exception) else answer,
        )

    @rule(seconds=st.sampled_from(SECONDS))
    def elapse(self, seconds: float) -> None:
        self.time.elapse(seconds)

    @invariant()
    def jobs_are_equal(self) -> None:
        self._same(lambda store: [store.get(id) for id in IDS])
        self._same(lambda store: [store.ahead(id) for id in IDS])

    @invariant()
    def durable_state_is_equal(self) -> None:
        self._same(lambda store: [store.durable(id) for id in IDS])

    @invariant()
    def limits_are_equal(self) -> None:
        self._same(lambda store: [store.key_of(id) for id in IDS])
        queues = [limit.queue for limit in self.limits if limit.queue]
        self._same(lambda store: store.limits(queues=queues), _with_sets)

    @invariant()
    def of_each_name_one_waits_and_one_runs(self) -> None:
        self._same(lambda store: [store.running_of(name) for name in UNIQUE])
        found = [job for id in IDS if (job := self.store.get(id)) and job.unique and not job.is_finished]
        kinds = [(job.unique, job.started_at is None) for job in found]
        assert len(kinds) == len(set(kinds))

    @invariant()
    def pages_are_equal(self) -> None:
        self._same(lambda store: [list(pages(store, filter, 2)) for filter in FILTERS])

    @invariant()
    def counts_are_equal(self) -> None:
        self._same(
            lambda store: store.counts(),
            lambda counts: ({row for row in counts.tallies if row.total}, counts.paused, counts.retired),
        )

    @invariant()
    def schedules_and_workers_are_equal(self) -> None:
        self._same(lambda store: (store.schedules(), store.workers()))

    @invariant()
    def events_are_equal(self) -> None:
        mine, its = self.store.events(self.seen[0], 1_000), self.oracle.events(self.seen[1], 1_000)
        assert _by_job(mine) == _by_job(its)
        self.seen = (self.store.last_event(), self.oracle.last_event())
        if mine:
            assert self.seen == (mine[-1].number, its[-1].number)


def _without_token(claim: Claim) -> Claim:
    return replace(claim, lease=replace(claim.lease, token=""))


def _with_sets(limits: Limits) -> Limits:
    """Without the order of the holders: those that began at one instant have none."""
    gates, queues = (
        [replace(gate, holders=tuple(sorted(gate.holders))) for gate in found]
        for found in (limits.gates, limits.queues)
    )
    return Limits(limits.now, gates, limits.cooling, queues)


def _by_job(events: list[JobEvent]) -> list[JobEvent]:
    """Each job's events in order. Why not all: a verb may treat its jobs in any order."""
    return sorted((replace(event, number=0) for event in events), key=lambda event: event.id)
