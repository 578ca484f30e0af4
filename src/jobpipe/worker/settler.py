"""Settler: writes outcomes to the store, all that there are at once, and keeps them while it is away."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from ..errors import LeaseLostError, StoreAwayError
from ..failpoints import reach
from ..gateway.async_store import AWAY_PAUSES
from ..model.job import Move
from ..model.lease import Outcome, Settlement
from ..model.text import counted
from .held import HeldJob

if TYPE_CHECKING:
    from ..gateway.lazy_store import Gateway
    from .failures import Failures
    from .held_jobs import HeldJobs
    from .outcome_log import OutcomeLog

logger = logging.getLogger("jobpipe")

_MOST = 1_000
_LAST_WORD = 1.0
"""Seconds that outcomes may still take when the service ends."""


class Settler:
    """The outcomes that are to be recorded; used on one event loop."""

    def __init__(self, gateway: Gateway, held: HeldJobs, failures: Failures | None, log: OutcomeLog) -> None:
        self._store, self._async_store, _ = gateway
        self._held = held
        self._failures = failures
        self._log = log
        self._settlements: list[Settlement] = []
        self._task: asyncio.Task[None] | None = None

    def end(self, run: HeldJob, outcome: Outcome, error: BaseException | None = None) -> None:
        """A run has ended, maybe with an error: record its outcome soon, with those of all that end meanwhile."""
        if not self._held.end(run):
            return
        logs = () if run.log is None else run.log.close()
        settlement = Settlement(run.claim.lease, outcome, run.started_at, logs)
        if self._failures and outcome.move is Move.FAIL:
            self._failures.before_settle(run.claim, outcome, partial(self._settle_soon, settlement))
        else:
            self._settle_soon(settlement)
        if outcome.cools:
            self._held.cool(run.claim.type)
        wake = self._held.wake
        if run.pool.is_low and not wake.is_set():
            wake.set()
        # Why last: the program's own log handlers may raise, and the outcome is to be recorded nevertheless.
        self._log.add(run, outcome, error)

    def _settle_soon(self, settlement: Settlement) -> None:
        self._settlements.append(settlement)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(
                self._settle_all(), name="jobpipe-settlements"
            )

    async def finish(self) -> None:
        """Wait a little longer for what is not recorded yet."""
        if self._task is None:
            return
        _, pending = await asyncio.wait([self._task], timeout=_LAST_WORD)
        if pending:
            self._task.cancel()
            jobs = counted(len(self._settlements), "job")
            logger.warning("%s will run again: the outcome could not be recorded", jobs)

    async def _settle_all(self) -> None:
        failures = 0
        size = _MOST
        while self._settlements:
            batch = self._settlements[:size]
            reach("settle-before")
            try:
                recorded = await self._async_store.call(self._store.settle, batch)
                reach("settle-after")
            except StoreAwayError as error:
                if not failures:
                    logger.warning("outcomes cannot be recorded for now, they are kept: %s", error)
                await asyncio.sleep(AWAY_PAUSES[min(failures, len(AWAY_PAUSES) - 1)])
                failures += 1
                continue
            except Exception:
                # Why one by one: an outcome that the store cannot take must not hold up the others.
                if len(batch) > 1:
                    size = 1
                    continue
                logger.exception("the outcome of job %s cannot be recorded", batch[0].lease.id)
                recorded = [False]
            failures = 0
            del self._settlements[: len(batch)]
            for settlement, is_recorded in zip(batch, recorded, strict=True):
                self._settled(settlement, is_recorded)
            if self._held.pools.is_low:
                self._held.wake.set()  # Why again: some jobs are only claimed where they can begin at once

    def _settled(self, settlement: Settlement, is_recorded: bool) -> None:
        lease, outcome = settlement.lease, settlement.outcome
        run = self._held.settled(lease)
        if run is not None:
            if outcome.cools:
                self._held.cooled(run.claim.type)
            if run.is_limited or outcome.waits_again:
                self._held.wake.set()  # only now its place is free, or the time of its next run known
        if not is_recorded and not (run is not None and run.is_cancelling):
            logger.warning("%s", LeaseLostError(lease.id))
