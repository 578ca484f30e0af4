"""Witness: stands before the real store, sees every verb in the order in which the store does them, and holds the promises.

It knows of each job only what the answers of the store say, and speaks up at the first answer that no promise allows:
a second lease, an outcome without a lease, an attempt too many, a tick twice, a limit passed.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jobpipe.errors import DuplicateError
from jobpipe.model.durable import DurableState, JobSignal, Received, SignalAnswer, Step
from jobpipe.model.gate import Limit
from jobpipe.model.job import FINISHED, PENDING, TRANSITIONS, JobStatus, Move
from jobpipe.stores.base import (
    Answer,
    Claim,
    ClaimResult,
    Lease,
    LeaseState,
    NewJob,
    NewPayload,
    Outcome,
    QueueChoice,
    Receipt,
    Refusal,
    Rescued,
    Settlement,
    Store,
)

from .recorded import Recorded
from .world import Violation, World

if TYPE_CHECKING:
    from collections.abc import Callable

_EPSILON = 1e-5
_UNCOUNTED = (Move.SNOOZE, Move.SLEEP, Move.WAIT, Move.RELEASE)
_SUSPENDING = (Move.SLEEP, Move.WAIT)


@dataclass(slots=True)
class Held:
    """A lease that is alive."""

    lease: Lease
    until: float
    gate: tuple[str, str] | None


@dataclass(slots=True)
class Life:
    """What is known of a job; `scheduled` and `queued` are not told apart, both are queued."""

    new: NewJob
    status: JobStatus = JobStatus.QUEUED
    attempts: int = 0
    held: Held | None = None
    settled: str | None = None
    """The token of the last settlement, until the next claim."""
    worker: str = ""
    """Whose outcome is recorded."""
    result: bytes | None = None
    is_cancel_asked: bool = False
    is_suspect: bool = False
    """Was it lost while it was claimed ahead?"""
    ends: int = 0
    """How often it came to its end, since it was put in or revived."""


@dataclass(slots=True)
class Pace:
    """The starts in one gate."""

    first: float
    number: int = 0
    latest: deque[float] = field(default_factory=deque)


class Witness:
    """The store, watched."""

    def __init__(self, store: Store, world: World) -> None:
        self.store = store
        self.lives: dict[str, Life] = {}
        self.violations: list[str] = []
        self.rescues = 0
        self.claims_by: defaultdict[tuple[str, str], int] = defaultdict(int)
        """How often each worker claimed each job."""
        self.ticks: set[tuple[str, float]] = set()
        self.recorded = Recorded(world.clock, lambda lease: self._held(lease) is not None, self.fail)
        self._world = world
        self._tokens: set[tuple[str, str]] = set()
        self._paces: dict[tuple[str, str], Pace] = {}
        self._cooling: dict[str, float] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The verbs that change nothing of what is promised."""
        verb: Callable[..., Any] = getattr(self.store, name)
        return verb

    def fail(self, problem: str) -> Violation:
        """Remember what is wrong. Why not only raise: the code under test may catch everything."""
        self._world.tell("!", problem)
        self.violations.append(problem)
        return Violation(problem)

    def _tell(self, what: str) -> None:
        self._world.tell("store", what)

    # Putting in

    def insert(self, batches: Sequence[Sequence[NewJob]], **bounds: int) -> list[Answer]:
        answers = self.store.insert(batches, **bounds)
        for batch, answer in zip(batches, answers, strict=True):
            for new, receipt in zip(batch, answer, strict=True) if isinstance(answer, list) else ():
                self._inserted(new, receipt)
        return answers

    def _inserted(self, new: NewJob, receipt: Receipt) -> None:
        self._tell(f"insert {new.id} {'new' if receipt.is_new else 'known'}")
        if receipt.is_new == (new.id in self.lives):
            raise self.fail(f"{new.id} was told to be {'new' if receipt.is_new else 'known'}, and is not")
        self.lives.setdefault(new.id, Life(new))

    def fire_tick(
        self, name: str, tick_at: float, next_at: float, job: NewJob | None, *, capacity: int = 0
    ) -> Receipt | Refusal | None:
        before = self._next_at(name)
        answer = self.store.fire_tick(name, tick_at, next_at, job, capacity=capacity)
        after = self._next_at(name)
        if isinstance(answer, Receipt) and job is not None:
            self._inserted(job, answer)
            if not answer.is_new:
                raise self.fail(f"the tick of {name} at {tick_at} was put in twice")
        elif answer is not None:
            raise self.fail(f"the tick of {name} at {tick_at} was refused: {answer}")
        if before != after or isinstance(answer, Receipt):
            self._tell(f"tick {name} {tick_at:.3f}")
            if before != tick_at or after is None or after <= tick_at or (name, tick_at) in self.ticks:
                raise self.fail(f"the schedule {name} went from {before} to {after} by the tick {tick_at}")
            self.ticks.add((name, tick_at))
        return answer

    def _next_at(self, name: str) -> float | None:
        return next((each.next_at for each in self.store.schedules().entries if each.name == name), None)

    # Running

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
        result = self.store.claim(worker, types, limit, lease, limits, begin, queues)
        if len(result.claims) > limit:
            raise self.fail(f"a claim of {limit} brought {len(result.claims)}")
        for number, claim in enumerate(result.claims):
            life = self.lives[claim.id]
            if queues is not None and queues.rooms:
                number = sum(each.queue == claim.queue for each in result.claims[:number])
                most, begin = queues.rooms[claim.queue]
                if number >= most:
                    raise self.fail(
                        f"{claim.id} is the {number + 1}th of {claim.queue}, which has room for {most}"
                    )
            if claim.has_begun != (begin is None or number < begin):
                raise self.fail(f"{claim.id}, the {number + 1}th of {begin} to begin: {claim.has_begun}")
            if life.is_suspect and not claim.has_begun:
                raise self.fail(f"{claim.id} was lost, and is claimed ahead again")
            self._claimed(claim, lease, {each.type: each for each in limits})
            of_queue = [each.concurrency for each in limits if each.queue == claim.queue]
            leased = sum(
                each.held is not None and each.new.queue == claim.queue for each in self.lives.values()
            )
            if of_queue and leased > of_queue[0]:
                raise self.fail(f"{claim.id} is the {leased}th of {claim.queue}, of {of_queue[0]} at once")
            if claim.has_begun:
                self._begin(life)
        return result

    def _begin(self, life: Life) -> None:
        life.attempts += 1
        if life.attempts > 1 + life.new.max_retries:
            raise self.fail(
                f"{life.new.id} runs for the {life.attempts}th time of {1 + life.new.max_retries}"
            )
        life.status, life.is_cancel_asked = JobStatus.RUNNING, False

    def begin(self, leases: Sequence[Lease], started_at: Sequence[float]) -> list[LeaseState]:
        states = self.store.begin(leases, started_at)
        for lease, state in zip(leases, states, strict=True):
            held, life = self._held(lease), self.lives[lease.id]
            self._tell(f"begin {lease.id} by {lease.worker}: {state}")
            if (held is None) != (state is LeaseState.LOST):
                raise self.fail(f"{lease.worker} began {lease.id}, and heard that its lease is {state}")
            if held is not None and life.status in PENDING:
                self._begin(life)
        return states

    def _claimed(self, claim: Claim, seconds: float, limits: dict[str, Limit]) -> None:
        life, now, lease = self.lives[claim.id], self._world.now, claim.lease
        self._tell(f"claim {claim.id} by {lease.worker} attempt {claim.attempts}")
        if life.held is not None:
            raise self.fail(f"{claim.id} was leased to {lease.worker} and to {life.held.lease.worker}")
        if life.status not in PENDING:
            raise self.fail(f"{claim.id} was claimed, and is {life.status}")
        if claim.attempts != life.attempts + 1:
            raise self.fail(f"{claim.id} has had {life.attempts} attempts, the store counts {claim.attempts}")
        if claim.run_at > now + _EPSILON:
            raise self.fail(f"{claim.id} was claimed {claim.run_at - now:.3f} s too early")
        if (claim.id, lease.token) in self._tokens:
            raise self.fail(f"{claim.id} was claimed twice with one token")
        self._tokens.add((claim.id, lease.token))
        self.recorded.go_on(claim.id)
        self.claims_by[lease.worker, claim.id] += 1
        gate = self._enter(claim, limits.get(claim.type))
        life.settled = None
        life.held = Held(lease, now + seconds, gate)

    def _enter(self, claim: Claim, limit: Limit | None) -> tuple[str, str] | None:
        """Hold the limits of its type."""
        if claim.started_at + _EPSILON < self._cooling.get(claim.type, 0.0):
            raise self.fail(f"{claim.id} starts while {claim.type} is cooling")
        if limit is None or (limit.is_keyed and claim.key is None):
            return None
        gate = (claim.type, claim.key or "" if limit.is_keyed else "")
        running = sum(life.held is not None and life.held.gate == gate for life in self.lives.values())
        if limit.concurrency and running >= limit.concurrency:
            raise self.fail(f"{claim.id} is the {running + 1}th of {gate}, of {limit.concurrency} at once")
        if limit.interval:
            self._keep_pace(claim, gate, limit)
        return gate

    def _keep_pace(self, claim: Claim, gate: tuple[str, str], limit: Limit) -> None:
        pace = self._paces.setdefault(gate, Pace(claim.started_at))
        pace.number += 1
        pace.latest.append(claim.started_at)
        if len(pace.latest) > limit.burst:
            gap = claim.started_at - pace.latest.popleft()
            least = (pace.number - limit.burst) * limit.interval
            if gap + _EPSILON < limit.interval or claim.started_at - pace.first + _EPSILON < least:
                raise self.fail(f"{claim.id} starts too soon: {gate} has a rate of 1 in {limit.interval} s")

    def _held(self, lease: Lease) -> Held | None:
        held = self.lives[lease.id].held
        return held if held is not None and held.lease == lease else None

    def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
        states = self.store.extend(leases, seconds)
        for lease, state in zip(leases, states, strict=True):
            held, life = self._held(lease), self.lives[lease.id]
            self._tell(f"extend {lease.id} by {lease.worker}: {state}")
            if (held is None) != (state is LeaseState.LOST):
                raise self.fail(f"{lease.worker} heard that its lease of {lease.id} is {state}")
            if held is not None:
                held.until = self._world.now + seconds
                if life.is_cancel_asked != (state is LeaseState.CANCELLING):
                    raise self.fail(
                        f"{lease.worker} heard {state} of {lease.id}, cancelled: {life.is_cancel_asked}"
                    )
        return states

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        answers = self.store.settle(settlements)
        for each, is_recorded in zip(settlements, answers, strict=True):
            life, lease = self.lives[each.lease.id], each.lease
            self._tell(f"settle {lease.id} by {lease.worker}: {each.outcome.move} {is_recorded}")
            if self._held(lease) is not None:
                if not is_recorded:
                    raise self.fail(f"{lease.worker} has the lease of {lease.id}, its outcome was refused")
                if life.status in PENDING:
                    self._begin(life)
                self._end_run(life, each.outcome)
                life.settled, life.is_suspect = lease.token, False
            elif is_recorded and life.settled != lease.token:
                raise self.fail(
                    f"an outcome of {lease.id} was recorded for {lease.worker}, without its lease"
                )
        return answers

    def release(self, leases: Sequence[Lease], keys: Sequence[str | None] = ()) -> list[bool]:
        answers = self.store.release(leases, keys)
        for lease, is_released in zip(leases, answers, strict=True):
            self._tell(f"release {lease.id} by {lease.worker}: {is_released}")
            if is_released != (self._held(lease) is not None):
                raise self.fail(f"{lease.worker} gave {lease.id} back, and heard {is_released}")
            if is_released:
                self._end_lease(self.lives[lease.id], Outcome(move=Move.RELEASE))
        return answers

    def rescue(self, limit: int = 100) -> list[Rescued]:
        found = self.store.rescue(limit)
        for each in found:
            life = self.lives[each.id]
            self._tell(f"rescue {each.id} of {each.worker}: {each.status}")
            if life.held is None or life.held.lease.worker != each.worker:
                raise self.fail(f"{each.id} was rescued from {each.worker}, who did not have it")
            if life.held.until > self._world.now + _EPSILON:
                raise self.fail(f"{each.id} was rescued from {each.worker}, whose lease was alive")
            self.rescues += 1
            life.is_suspect |= life.status in PENDING
            is_last = life.attempts > life.new.max_retries
            self._end_lease(life, Outcome(move=Move.FAIL if is_last else Move.RESCUE))
            if each.status is not life.status:
                raise self.fail(f"{each.id} was rescued to be {each.status} instead of {life.status}")
        return found

    def _end_lease(self, life: Life, outcome: Outcome) -> None:
        """What was claimed ahead loses nothing."""
        if life.status in PENDING:
            life.held = None
        else:
            self._end_run(life, outcome)

    def _end_run(self, life: Life, outcome: Outcome) -> None:
        assert life.held is not None
        move = Move.CANCEL if life.is_cancel_asked else outcome.move
        life.worker, life.held = life.held.lease.worker, None
        life.attempts -= outcome.move in _UNCOUNTED
        life.result = outcome.result if move is Move.SUCCEED else None
        if outcome.cools:
            until = self._world.now + outcome.cools
            self._cooling[life.new.type] = max(until, self._cooling.get(life.new.type, 0.0))
        self._move(life, TRANSITIONS[JobStatus.RUNNING][move])
        if move in _SUSPENDING and self.recorded.suspend(life.new.id, outcome):
            self._check_queued(life.new.id)

    def _move(self, life: Life, status: JobStatus) -> None:
        life.status = JobStatus.QUEUED if status in PENDING else status
        if status in FINISHED:
            life.ends += 1
            if life.ends > 1:
                raise self.fail(f"{life.new.id} came to an end {life.ends} times")

    # Recording

    def write_steps(self, steps: Sequence[tuple[Lease, Step]]) -> list[bool]:
        answers = self.store.write_steps(steps)
        for (lease, step), is_recorded in zip(steps, answers, strict=True):
            self._tell(f"step {step.name} of {lease.id} by {lease.worker}: {is_recorded}")
            self.recorded.write_step(lease, step, is_recorded)
        return answers

    def receive(self, lease: Lease, name: str) -> Received:
        answer = self.store.receive(lease, name)
        self._tell(f"receive {name} of {lease.id} by {lease.worker}: {answer.kind}")
        self.recorded.receive(lease, name, answer)
        return answer

    def signal(self, id: str, signal: JobSignal) -> SignalAnswer | None:
        answer = self.store.signal(id, signal)
        self._tell(f"signal {signal.name} of {id}: {answer}")
        life = self.lives.get(id)
        if (life is None) != (answer is None):
            raise self.fail(f"a signal of {id} was {answer}")
        if life is not None and self.recorded.signal(id, signal, life.status, answer):
            self._check_queued(id)
        return answer

    def _check_queued(self, id: str) -> None:
        job = self.store.get(id)
        if job is None or job.status is not JobStatus.QUEUED:
            raise self.fail(f"{id} has the signal that it waits for, and is {job and job.status}")

    def durable(self, id: str) -> DurableState | None:
        found = self.store.durable(id)
        self.recorded.check(id, found)
        return found

    # Steering

    def cancel(self, ids: Sequence[str]) -> list[JobStatus | None]:
        found = self.store.cancel(ids)
        for id, status in zip(ids, found, strict=True):
            life = self._found(id, status)
            self._tell(f"cancel {id}: {status}")
            if life.status is JobStatus.RUNNING:
                life.is_cancel_asked = True
            elif life.status in PENDING:
                life.held = None
                self.recorded.rest(id)
                self._move(life, JobStatus.CANCELLED)
        return found

    def retry(
        self, ids: Sequence[str], renewed: NewPayload | None = None, *, from_start: bool = False
    ) -> list[JobStatus | DuplicateError | None]:
        found = self.store.retry(ids, renewed, from_start=from_start)
        for id, status in zip(ids, found, strict=True):
            assert not isinstance(status, DuplicateError), "no job here has a unique name"
            life = self._found(id, status)
            self._tell(f"retry {id}: {status}")
            if Move.REVIVE in TRANSITIONS[life.status]:
                life.status, life.attempts, life.ends, life.result = JobStatus.QUEUED, 0, 0, None
                self.recorded.begin_anew(id, from_start=from_start)
        return found

    def _found(self, id: str, status: JobStatus | None) -> Life:
        life = self.lives[id]
        seen = JobStatus.QUEUED if status in PENDING else status
        if seen is not life.status:
            raise self.fail(f"{id} was found {status}, and is {life.status}")
        return life

    # At the end

    @property
    def is_quiet(self) -> bool:
        """Is every job finished?"""
        return all(life.status in FINISHED for life in self.lives.values())

    def check_store(self) -> None:
        """Does the store say of every job what its answers have said?"""
        for id, life in self.lives.items():
            job = self.store.get(id)
            if job is None:
                raise self.fail(f"{id} was accepted and is lost")
            if (job.status, job.attempts) != (life.status, life.attempts):
                raise self.fail(
                    f"{id} is {job.status} after {job.attempts} attempts, not {life.status} after {life.attempts}"
                )
            if life.ends != 1:
                raise self.fail(f"{id} has {life.ends} outcomes")
            self.durable(id)
