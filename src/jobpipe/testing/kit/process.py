"""Process: the store as a process sees it that dies at a given place while it runs a job.

What it did before stays. Afterwards nothing of it reaches the store, and whatever its handlers record raises Death. It notes
all places that it comes to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

from ...jobtypes.current import current_job
from ...jobtypes.jobtype import JobType
from ...model.durable import Received, ReceivedKind, Step
from ...model.job import Move
from ...model.lease import ClaimResult, Lease, Outcome, Settlement
from ...model.outcome import Suspension
from .store import BlockStore

_PLACES = {Move.SLEEP: "sleep {!r} is recorded", Move.WAIT: "the wait for {!r} is recorded"}


class Death(Suspension):
    """Ends a handler whose process is dead. Why a Suspension: it comes through all that may be around a handler."""

    def __init__(self) -> None:
        super().__init__(Outcome(move=Move.SLEEP, name="the process is dead"))


class Process:
    """It dies where the job with that id comes to the place, for the first time; never without a place."""

    def __init__(self, store: BlockStore, id: str, place: str | None) -> None:
        self._store = store
        self._id = id
        self._place = place
        self.places: dict[str, None] = {}
        """Those that the job came to, in order."""
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _reach(self, id: str, place: str) -> bool:
        """The job comes to the place; is the process dead?"""
        if id == self._id and not self.is_dead:
            self.places[place] = None
            self.is_dead = place == self._place
        return self.is_dead

    def _pass(self, id: str, place: str) -> None:
        if self._reach(id, place):
            raise Death

    # What a handler records

    def write_steps(self, steps: Sequence[tuple[Lease, Step]]) -> list[bool]:
        recorded = []
        for lease, step in steps:
            self._pass(lease.id, f"before step {step.name!r} is recorded")
            recorded += self._store.write_steps([(lease, step)])
            self._pass(lease.id, f"after step {step.name!r} is recorded")
        return recorded

    # Why only before, in both: who dies after them, and within the transaction, has done nothing either.

    def write_step_in(self, connection: Any, lease: Lease, step: Step) -> None:
        self._pass(lease.id, f"before step {step.name!r} is recorded")
        self._store.write_step_in(connection, lease, step)

    def settle_in(self, connection: Any, settlement: Settlement) -> None:
        self._pass(settlement.lease.id, "before the settle")
        self._store.settle_in(connection, settlement)

    def receive(self, lease: Lease, name: str) -> Received:
        state = self._store.durable(lease.id)
        if state is not None and any(signal.name == name for signal in state.signals):
            self._pass(lease.id, f"before signal {name!r} is received")
        received = self._store.receive(lease, name)
        if received.kind is ReceivedKind.SIGNAL:
            self._pass(lease.id, f"after signal {name!r} is received")
        return received

    # What its runner does

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        for each in settlements:
            place = _PLACES.get(each.outcome.move, "the settle").format(each.outcome.name)
            if not self._reach(each.lease.id, f"before {place}"):
                self._store.settle([each])
                self._reach(each.lease.id, f"after {place}")
        return [True] * len(settlements)

    def claim(self, *args: Any) -> ClaimResult:
        return ClaimResult([], None) if self.is_dead else self._store.claim(*args)

    def release(self, leases: Sequence[Lease], keys: Sequence[str | None] = ()) -> list[bool]:
        return [True] * len(leases) if self.is_dead else self._store.release(leases, keys)

    def write_logs(self, chunks: Any) -> None:
        if not self.is_dead:
            self._store.write_logs(chunks)

    def progress(self, reports: Any) -> None:
        if not self.is_dead:
            self._store.progress(reports)

    # The handler

    def running(self, job_type: JobType[..., Any]) -> JobType[..., Any]:
        """The same type, as this process runs it."""
        mortal, run = copy(job_type), job_type.run

        def call(argument: Any) -> Any:
            with self._around_handler():
                return run(argument)

        async def call_async(argument: Any) -> Any:
            with self._around_handler():
                return await run(argument)

        mortal.run = call_async if job_type.is_async else call
        return mortal

    @contextmanager
    def _around_handler(self) -> Iterator[None]:
        id, is_over = current_job().id, True
        self._pass(id, "before the handler")
        try:
            yield
        except Suspension:
            is_over = False  # it goes on later
            raise
        finally:
            if is_over:
                self._reach(id, "after the handler")
