"""Recorded: what each job has recorded, and what it was sent, as the answers of the store say; and what its runs may see of it.

A naive model: a few dicts for each job. A run is held to it only while it has the lease: what a stale one reads or does
comes to nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from jobpipe.model.durable import DurableState, JobSignal, Received, ReceivedKind, SignalAnswer, Step
from jobpipe.model.job import FINISHED, JobStatus, Move
from jobpipe.stores.base import Lease, Outcome

Fail = Callable[[str], Exception]

_EPSILON = 1e-5
_TIMEOUT = "timed out"
_LONG = 1e6
"""Seconds that no wait with a timeout lasts here."""


@dataclass(slots=True)
class Memory:
    """Of one job."""

    steps: dict[str, bytes] = field(default_factory=dict)
    sleeps: dict[str, float] = field(default_factory=dict)
    waits: dict[str, float] = field(default_factory=dict)
    timed_out: set[str] = field(default_factory=set)
    signals: dict[str, JobSignal] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    outcomes: dict[str, object] = field(default_factory=dict)
    """By wait: what a run was told. Every other is told the same."""
    goes_on_at: float = 0.0
    """Not before."""
    waits_for: str | None = None

    def is_over(self, name: str, now: float) -> bool:
        """Is it too late for a signal?"""
        return name in self.timed_out or (name in self.waits and self.waits[name] <= now)


class Recorded:
    """The memories of all jobs."""

    def __init__(self, now: Callable[[], float], has_lease: Callable[[Lease], bool], fail: Fail) -> None:
        self.of: defaultdict[str, Memory] = defaultdict(Memory)
        self.steps = self.suspensions = self.signals = 0
        """How many there were."""
        self._now = now
        self._has_lease = has_lease
        self.fail = fail
        self._lost: set[Lease] = set()
        """Of which a run knows that they are lost."""
        self._refused: set[tuple[Lease, str]] = set()

    # What the store does

    def write_step(self, lease: Lease, step: Step, is_recorded: bool) -> None:
        if is_recorded != self._has_lease(lease):
            raise self.fail(
                f"{lease.worker} told the step {step.name} of {lease.id}, recorded: {is_recorded}"
            )
        if not is_recorded:
            self._refused.add((lease, step.name))
        elif step.name not in self.of[lease.id].steps:
            self.of[lease.id].steps[step.name] = step.result
            self.steps += 1

    def suspend(self, id: str, outcome: Outcome) -> bool:
        """A run ended with a sleep or a wait; is the signal there already?"""
        memory, name, until = self.of[id], outcome.name or "", self._now() + outcome.delay
        self.suspensions += 1
        if outcome.move is Move.SLEEP:
            memory.goes_on_at = memory.sleeps.setdefault(name, until)
            return False
        memory.waits = {
            other: end for other, end in memory.waits.items() if other == name or other in memory.timed_out
        }
        memory.goes_on_at, memory.waits_for = memory.waits.setdefault(name, until), name
        return name in memory.signals and self._wake(memory)

    def _wake(self, memory: Memory) -> bool:
        memory.goes_on_at, memory.waits_for = self._now(), None
        return True

    def go_on(self, id: str) -> None:
        """It is claimed."""
        memory = self.of[id]
        if memory.goes_on_at > self._now() + _EPSILON:
            raise self.fail(f"{id} goes on {memory.goes_on_at - self._now():.3f} s too early")
        memory.goes_on_at, memory.waits_for = 0.0, None

    def receive(self, lease: Lease, name: str, answer: Received) -> None:
        memory, expected = self.of[lease.id], Received(ReceivedKind.NOTHING)
        if not self._has_lease(lease):
            expected = Received(ReceivedKind.LOST)
        elif name in memory.signals:
            expected = Received(ReceivedKind.SIGNAL, memory.signals[name].payload)
            memory.used.add(name)
        elif memory.is_over(name, self._now()):
            expected = Received(ReceivedKind.TIMED_OUT)
            memory.timed_out.add(name)
        if answer != expected:
            raise self.fail(f"{lease.id} asked for {name}, and got {answer} instead of {expected}")

    def signal(self, id: str, signal: JobSignal, status: JobStatus, answer: SignalAnswer | None) -> bool:
        """One was sent to a job of that status; does the job go on with it?"""
        memory, known, expected = self.of[id], self.of[id].signals.get(signal.name), SignalAnswer.ACCEPTED
        if known is not None:
            expected = SignalAnswer.SAME if known.payload == signal.payload else SignalAnswer.CONFLICT
        elif status in FINISHED:
            expected = SignalAnswer.FINISHED
        elif memory.is_over(signal.name, self._now()):
            expected = SignalAnswer.TIMED_OUT
        if answer is not expected:
            raise self.fail(f"the signal {signal.name} of {id} was {answer} instead of {expected}")
        if expected is SignalAnswer.ACCEPTED:
            memory.signals[signal.name] = signal
            self.signals += 1
            return memory.waits_for == signal.name and self._wake(memory)
        return False

    def begin_anew(self, id: str, *, from_start: bool) -> None:
        """It was retried by hand."""
        memory = self.of[id]
        if from_start:
            memory.steps, memory.sleeps = {}, {}
            for name in memory.used:
                del memory.signals[name]
            memory.used, memory.outcomes = set(), {}
        memory.outcomes = {name: told for name, told in memory.outcomes.items() if told != _TIMEOUT}
        memory.waits, memory.timed_out = {}, set()
        self.rest(id)

    def rest(self, id: str) -> None:
        """It was cancelled: it waits for nothing any more."""
        self.of[id].goes_on_at, self.of[id].waits_for = 0.0, None

    def check(self, id: str, found: DurableState | None) -> None:
        """Does the store say of it what its answers have said?"""
        memory = self.of[id]
        if found is None:
            raise self.fail(f"what {id} has recorded is lost")
        kept = (
            {step.name: step.result for step in found.steps},
            {sleep.name for sleep in found.sleeps},
            {(wait.name, wait.is_timed_out) for wait in found.waits},
            {(signal.name, signal.payload, signal.is_used) for signal in found.signals},
        )
        expected = (
            memory.steps,
            set(memory.sleeps),
            {(name, name in memory.timed_out) for name in memory.waits},
            {(name, signal.payload, name in memory.used) for name, signal in memory.signals.items()},
        )
        if kept != expected:
            raise self.fail(f"{id} has recorded {expected}, and the store has {kept}")

    def waiting(self) -> list[tuple[str, str]]:
        """The jobs that a signal alone can wake, and which."""
        late = self._now() + _LONG
        return [
            (id, each.waits_for) for id, each in self.of.items() if each.waits_for and each.goes_on_at > late
        ]

    # What runs see

    def call(self, lease: Lease, name: str) -> None:
        """The function of a step is called."""
        if lease in self._lost:
            self.fail(f"{lease.worker} goes on with {name} of {lease.id}, and knows that its lease is lost")
        if self._has_lease(lease) and name in self.of[lease.id].steps:
            self.fail(f"the step {name} of {lease.id} is recorded, and was run again")

    def returned(self, lease: Lease, name: str, result: bytes) -> None:
        """A run got the result of a step."""
        if (lease, name) in self._refused:
            self.fail(f"{lease.worker} was refused {name} of {lease.id}, and goes on")
        if self._has_lease(lease) and self.of[lease.id].steps.get(name) != result:
            self.fail(f"{lease.id} got {result!r} from {name}, which is not what is recorded")

    def received(self, lease: Lease, name: str, value: object = _TIMEOUT) -> None:
        """A run got a signal, or a timeout."""
        if self._has_lease(lease):
            before = self.of[lease.id].outcomes.setdefault(name, value)
            if before != value:
                self.fail(f"the wait of {lease.id} for {name} came to {before}, and to {value}")

    def lose(self, lease: Lease) -> None:
        """A run was told that its lease is lost."""
        self._lost.add(lease)
