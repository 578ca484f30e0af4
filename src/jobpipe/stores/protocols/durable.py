"""DurableStore: steps are recorded, and signals sent and received."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from ...model.durable import DurableState, JobSignal, Received, SignalAnswer, Step
from ...model.lease import Lease, Settlement


class DurableStore(Protocol):
    """The durable state of jobs. It is deleted, and moved to other stores, with its job.

    A settlement SLEEP or WAIT records the sleep or the wait that it names, with `until` that many seconds from now, unless
    one of that name is recorded already: then that one counts. The job is scheduled, or waiting, until then. A wait
    takes the place of all others of the job that have not timed out. If the signal is there already, or comes
    later, the job is queued at once, with run_at now; when the time is over it comes due like a scheduled one.
    A job that is suspended is in no history, its attempt is given back, and it holds no lease and no slot in a gate.
    """

    def write_steps(self, steps: Sequence[tuple[Lease, Step]]) -> list[bool]:
        """Record steps; False for each whose lease is not held any more: of that nothing is stored.

        What is on disk when it answers outlives a crash. A step of a name that the job has recorded stays as it is (True), so that the
        same call may be repeated. The lease of a job that was claimed ahead counts as held.
        """

    def write_step_in(self, connection: Any, lease: Lease, step: Step) -> Awaitable[None] | None:
        """The same of one step in the caller's own transaction.

        LeaseLostError if the lease is not held; BadInputError for a name that is recorded, so that nothing of that
        transaction is; BadInputError for a foreign connection, one that is in no transaction, or where there are none.
        An awaitable where the connection is one that is awaited.
        """

    def settle_in(self, connection: Any, settlement: Settlement) -> Awaitable[None] | None:
        """`JobStore.settle` of one run in the caller's own transaction; errors and awaitables as in `write_step_in`."""

    def receive(self, lease: Lease, name: str) -> Received:
        """Give a run the signal of that name, from now on used; or note that the wait for it has timed out.

        It has if the job has recorded a wait of that name whose time is over, and the signal did not come before. The same call again is
        answered alike.
        """

    def signal(self, id: str, signal: JobSignal) -> SignalAnswer | None:
        """Send a signal to a job, as `model.durable.answer_signal` says; None for an unknown job.

        A wait counts as timed out once a run was told so, or its time is over. If the job waits for that name, it is
        queued.
        """

    def durable(self, id: str) -> DurableState | None:
        """What is recorded of a job; None for an unknown one."""
