"""DirectRun: what a handler records that a test calls directly: the first run of a job that only a store of its own knows.

Nothing runs it again: a sleep moves the clock, and there is nobody who could send a signal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any

from rate_envelope_queue import Context

from ...jobtypes.current import CurrentJob
from ...jobtypes.durable import DurableRun, here
from ...jobtypes.jobtype import JobType
from ...model.ids import new_id
from ...model.job import Move, Progress
from ...model.lease import Claim, Outcome
from ...model.logs import LogChunk
from ...model.newjob import NewJob
from .clock import BlockClock, MovedByWaiting
from .session import WORKER
from .store import BlockStore

if TYPE_CHECKING:
    from ...gateway.lazy_store import Gateway


def current_of(
    job_type: JobType[..., Any],
    clock: BlockClock,
    gateway_of: Callable[[BlockStore], Gateway],
    most_result: int,
) -> CurrentJob:
    """What `current_job()` is in a handler that is called directly."""
    defaults = job_type.defaults
    job = NewJob(
        id=new_id(),
        type=job_type.name,
        queue=defaults.queue,
        payload=b"null",
        max_retries=defaults.max_retries,
        priority=defaults.priority,
        delay=0.0,
        run_at=None,
        deadline=defaults.deadline,
        fingerprint="",
    )
    store = BlockStore(clock.now, lambda: None)
    store.insert([[job]])
    (claim,) = store.claim_job(job.id, WORKER, inf)
    context = Context(clock=MovedByWaiting(clock))
    run = _HeldDirectly(claim, clock)
    durable = cache(lambda: DirectRun(gateway_of(store), run, run, context, most_result))
    return CurrentJob(claim, context, run.report, durable=durable)


class DirectRun(DurableRun):
    """Goes on where another run is suspended."""

    def _suspend(self, outcome: Outcome) -> None:
        if outcome.move is Move.SLEEP:
            self._context.wait(outcome.delay)
            return
        raise RuntimeError(
            f"a handler that is called directly cannot wait for the signal {outcome.name!r}: enqueue the job, "
            "drain, and send it with `jobs.signal(…)`"
        )


class _HeldDirectly:
    """The run, and who holds it: nobody takes it away."""

    is_gone = False

    def __init__(self, claim: Claim, clock: BlockClock) -> None:
        self.claim = claim
        self.is_finishing = False
        self.progress: Progress | None = None
        self.started_at = claim.started_at
        self._clock = clock

    @property
    def owner(self) -> object:
        """Why whoever asks: a coroutine may be awaited in another task than the one that called the handler."""
        return here()

    def report(self, progress: Progress) -> None:
        self.progress = progress

    def store_now(self, run: Any) -> float:
        return self._clock.now()

    def lose(self, run: Any) -> None: ...

    def unstored_logs_of(self, run: Any) -> tuple[LogChunk, ...]:
        return ()
