"""BlockStore: the memory store of a block, with what only tests ask: what comes due next, and one job by its id.

What is written on the connection of the caller is there at once, whatever becomes of that transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Any

from ...errors import LeaseLostError
from ...gateway.jobs import get_whole
from ...model.durable import Step, Wait
from ...model.job import Job, JobStatus
from ...model.lease import Claim, Lease, Settlement
from ...model.newjob import Answer, NewJob
from ...stores.memory.claiming import claim_of
from ...stores.memory.runs import begin_run
from ...stores.memory.store import MemoryStore


class BlockStore(MemoryStore):
    """A store by a manual clock."""

    def __init__(self, clock: Callable[[], float], on_insert: Callable[[], object]) -> None:
        super().__init__(clock=clock)
        self._on_insert = on_insert

    def insert_in(self, connection: Any, batch: Sequence[NewJob], *, capacity: int = 0) -> Answer:
        (answer,) = self.insert([batch], capacity=capacity)
        self._on_insert()
        return answer

    def write_step_in(self, connection: Any, lease: Lease, step: Step) -> None:
        if self.write_steps([(lease, step)]) != [True]:
            raise LeaseLostError(lease.id)

    def settle_in(self, connection: Any, settlement: Settlement) -> None:
        if self.settle([settlement]) != [True]:
            raise LeaseLostError(settlement.lease.id)

    def next_at(self) -> float:
        """When something comes due by itself: a job, an expiry, a tick, the end of a lease; infinity if nothing does."""
        with self._changed:
            ledger = self._ledger
            due = [entry.next_at for entry in self._entries.all() if not entry.is_paused]
            due += [record.lease_until for record in ledger.leased.values()]
            due += [ledger.next_expiry]
            first = ledger.scheduled.first()
            return min(due) if first is None else min(*due, first.run_at)

    def goes_on_at(self, id: str) -> float:
        """When that job goes on by itself: it is due, its time to wait is over, or its lease ends."""
        with self._step():
            record = self._ledger.jobs[id]
            return record.run_at if record.token is None else record.lease_until

    def pending_wait(self, id: str) -> Wait | None:
        """What that job is suspended for, if that is a signal."""
        with self._step():
            record = self._ledger.jobs[id]
            if record.status is not JobStatus.WAITING or record.durable is None:
                return None
            return record.durable.look().pending_wait()

    def jobs(self) -> list[tuple[Job, NewJob]]:
        """All jobs in the order of insertion, each with what was asked for."""
        with self._step():
            ledger = self._ledger
            asked = [each.new for each in ledger.order if ledger.jobs.get(each.new.id) is each]
        found = [(get_whole(self, new.id), new) for new in asked]
        return [(job, new) for job, new in found if job is not None]

    def claim_job(self, id: str, worker: str, lease: float) -> list[Claim]:
        """Claim that job, whatever waits before it, and whatever its limits are; it begins."""
        with self._step() as now:
            record = self._ledger.jobs[id]
            held = Lease(id, record.attempts + 1, worker, token_hex(16))
            self._ledger.lease(record, held, now + lease)
            begin_run(self._ledger, record, now, now)
            return [claim_of(record, held, now, 0.0, begins=True, has_run=False)]

    def forget(self, id: str) -> None:
        """Let there be no trace of a job."""
        with self._step() as now:
            record = self._ledger.jobs.get(id)
            if record is not None:
                self._ledger.remove(record, now)
                self._ledger.changes += 1
