"""Begins: jobs that were claimed ahead, whose handlers run, and whose begin is not stored yet.

Most end within milliseconds, and are settled in one step with their begin. Of those that take longer the store is told
soon, so that others see them run: by a timer on the event loop, and by the heartbeat, since a handler may block the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..errors import StoreError
from ..model.lease import Lease, LeaseState
from .held import HeldJob

if TYPE_CHECKING:
    from ..gateway.lazy_store import Gateway
    from .held_jobs import HeldJobs

logger = logging.getLogger("jobpipe")

_TOLD_AFTER = 0.005
"""Seconds after which the store is told."""
_BUSY_PAUSE = 0.05
"""Seconds after which it is told again of a job that was locked: for long, if by a transaction of its own handler."""
_AWAY_PAUSE = 1.0

Told = tuple[list[Lease], list[float]]
"""The leases of jobs that have begun, and when each did, by the clock of the store."""


class Begins:
    """Those of one runner. Handlers in threads and the heartbeat use it, too."""

    def __init__(self, gateway: Gateway, held: HeldJobs) -> None:
        self._store, self._async_store, _ = gateway
        self._held = held
        self._begun: set[HeldJob] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self._telling: asyncio.Task[None] | None = None

    def add(self, run: HeldJob) -> None:
        """Its handler is about to be called."""
        self._begun.add(run)

    def discard(self, run: HeldJob) -> None:
        """It has ended, or was given back."""
        self._begun.discard(run)

    def due(
        self, after: float = _TOLD_AFTER, pick: Callable[[list[HeldJob]], list[HeldJob]] | None = None
    ) -> Told:
        """Those that began at least `after` seconds ago, or what `pick` makes of them; the store is about to be told."""
        now = self._held.now()
        # Why a list at once: others add and discard in their threads.
        runs = [run for run in list(self._begun) if now - run.began_at >= after]
        if runs and pick is not None:
            runs = pick(runs)
        for run in runs:
            run.is_begin_told = True
        return [run.claim.lease for run in runs], [run.started_at for run in runs]

    def stored(self, states: Mapping[Lease, LeaseState]) -> bool:
        """The store was told of them, and has answered; False if it is to be told of some again."""
        known = {lease: state for lease, state in states.items() if state is not LeaseState.BUSY}
        for run in list(self._begun):
            if run.claim.lease in known:
                self._begun.discard(run)
                run.is_begin_stored = True
        self._held.handle_states(known)
        return len(known) == len(states)

    # On the event loop

    def watch(self, after: float = _TOLD_AFTER) -> None:
        """Tell the store again and again, as long as it is needed."""
        if not self._is_stopped and self._timer is None and (self._telling is None or self._telling.done()):
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(after, self._look)

    async def stop(self) -> None:
        """Tell no more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._telling is not None:
            await self._telling

    def _look(self) -> None:
        self._timer = None
        # Why not all: a job that has ended is `running` in the store until it is settled.
        told = self.due(pick=self._with_slots)
        if told[0]:
            self._telling = asyncio.get_running_loop().create_task(self._tell(*told), name="jobpipe-begins")
        elif self._is_needed():
            self.watch()

    def _is_needed(self) -> bool:
        """May jobs begin of which the store is to be told?"""
        return any(not run.is_begin_stored for run in self._held.all())

    def _with_slots(self, runs: list[HeldJob]) -> list[HeldJob]:
        """Of these, as many as there are slots without a job that is `running` in the store."""
        free = {pool: pool.slots for pool in self._held.pools.all}
        for run in self._held.all():
            free[run.pool] -= run.is_begin_told
        found = []
        for run in runs:
            if free[run.pool] > 0:
                free[run.pool] -= 1
                found.append(run)
        return found

    async def _tell(self, leases: list[Lease], started_at: list[float]) -> None:
        pause = _TOLD_AFTER
        try:
            states = await self._async_store.call(self._store.begin, leases, started_at)
            if not self.stored(dict(zip(leases, states, strict=True))):
                pause = _BUSY_PAUSE
        except StoreError as error:
            logger.debug("%d jobs have begun, which cannot be stored for now: %s", len(leases), error)
            pause = _AWAY_PAUSE
        except Exception:
            logger.exception("that jobs have begun could not be stored; trying again")
            pause = _AWAY_PAUSE
        self._telling = None
        if self._is_needed():
            self.watch(pause)
