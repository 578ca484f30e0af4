"""Session: the real runner and maintenance of one event loop, which a manual clock drives as it drives a queue.

The clock asks when something comes due, has it seen to, and waits until nothing is under way. One job after the other is
claimed, so that tests see the same order each time; none is claimed ahead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from math import inf, nextafter
from typing import Any

from ...app import Jobpipe
from ...gateway.lazy_store import Gateway
from ...gateway.sync import run_now
from ...jobtypes.jobtype import JobType
from ...worker.capture import OFF
from ...worker.failures import Failures
from ...worker.maintenance import Maintenance
from ...worker.meters import Meters
from ...worker.prefetch import Prefetch
from ...worker.runner import Runner
from .clock import BlockClock
from .inline import Inline
from .store import BlockStore

WORKER = "testing"
_LOOK_AGAIN = 1.0
"""Seconds after which is tried again what is due and cannot be done."""
_MOST_FRUITLESS = 100
"""Looks in a row that bring nothing though they say that something is due; each has moved jobs out of the way."""


class Session:
    """What runs jobs on one event loop; made there."""

    def __init__(
        self,
        pipe: Jobpipe,
        gateway: Gateway,
        due: BlockStore,
        clock: BlockClock,
        *,
        workers: int,
        claimed: dict[str, None],
        types: Mapping[str, JobType[..., Any]] | None = None,
        inline: Inline | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._due = due
        self._clock = clock
        self._failures = Failures(gateway, pipe.failure_hooks)
        self.lease = pipe.settings.lease
        self.runner = Runner(
            gateway,
            pipe.types if types is None else types,
            pipe.signals,
            Meters(),
            self._failures,
            slots=workers,
            lease=self.lease,
            queue_limits=pipe.queue.limits,
            tracing=pipe.tracing,
            clock=clock,
            keeps_logs=pipe.settings.job_logs != OFF,
            max_result=pipe.settings.max_payload,
            name=WORKER,
        )
        self._maintenance = _Maintenance(
            gateway.store,
            self.runner,
            lease=self.lease,
            keep=inf,
            keep_failed=inf,
            tick=pipe.schedules.tick,
            on_counts=lambda _: None,
            on_failed=self._failures.after_rescue,
        )
        for pool in self.runner.held.pools.all:
            pool.prefetch = _NoPrefetch(pool.slots)
        if inline is not None:
            self.runner.queue._threads = inline  # Why: it calls plain functions
        self._is_inline = inline is not None
        self._claimed = claimed  # the ids of all that was begun, in order
        self._claims = 0
        self._pulling: asyncio.Task[None] | None = None
        self._is_idle = False
        self._polled_at = -inf
        self._claim_at = inf
        self._ring: Callable[[], object] = lambda: None

    async def start(self) -> None:
        """Be ready to run jobs."""
        await self.runner.start(by_itself=False)
        self._clock.attach(self)

    async def drive(self, by: float) -> None:
        """Run all that is due, move the clock, and run all that comes due meanwhile."""
        self._clock.inline_until = self._clock.now() + by if self._is_inline else None
        self._pulling = self.loop.create_task(self._pull(), name="jobpipe-testing")
        try:
            await self._drain()
            if by:
                self._clock.moves = True
                await self._clock.advance(by)
                self._clock.moves = False
                await self._drain()
        finally:
            self._clock.inline_until = None
            self._clock.moves = False
            self._pulling.cancel()
            await asyncio.wait([self._pulling])
            pulling, self._pulling = self._pulling, None
        if not pulling.cancelled():
            pulling.result()  # it raises

    async def _drain(self) -> None:
        while True:
            before = self._claims
            self._poll()
            await self._clock.advance(0)
            if self._claims == before:
                return

    async def run_one(self, id: str) -> None:
        """Run that job, until it has ended or is suspended."""
        held = self.runner.held
        claims = self._due.claim_job(id, WORKER, self.lease)
        held.expect(claims, held.now())
        self._clock.inline_until = inf
        try:
            await self.runner.claims.take_on(claims)
            await held.wait_until_none()
        finally:
            self._clock.inline_until = None
        await self._failures.finish()

    async def end(self) -> None:
        """Run no more; what waits for the clock is given back."""
        await self.runner.stop(0)
        await self._failures.finish()
        self._polled_at = inf
        if self.runner.queue._tasks:
            await asyncio.wait(self.runner.queue._tasks)

    def abandon(self) -> None:
        """Break off what waits for the clock, from another place than its event loop."""
        self._polled_at = inf
        try:
            run_now(self.runner.queue.terminate())
        except RuntimeError:
            pass  # the loop is closed

    async def _pull(self) -> None:
        """Claim job after job, each when those before it are settled; rest when there is nothing to claim."""
        held = self.runner.held
        fruitless = 0
        while True:
            held.wake.clear()
            await self._failures.finish()
            await held.wait_until_settled()
            result = await self.runner.claims.look()
            if result is not None:
                now = self._clock.now()
                self._claim_at = (
                    inf if result.due_in is None else max(now + result.due_in, nextafter(now, inf))
                )
                self._claims += len(result.claims)
                self._claimed.update(dict.fromkeys(claim.id for claim in result.claims))
                fruitless = 0 if result.claims or result.due_in != 0 else fruitless + 1
                has_room = any(pool.unended < pool.slots for pool in held.pools.all)
                if (result.claims and has_room) or 0 < fruitless < _MOST_FRUITLESS:
                    continue
            self._is_idle = True
            self._ring()
            await held.wake.wait()
            self._is_idle = False

    # For the clock, as if it were a queue

    def _next_alarm_at(self) -> float:
        """When something happens by itself; infinity if nothing will."""
        if self._polled_at == inf:
            return inf
        now = self._clock.now()
        due_at = min(self._due.next_at(), self._claim_at)
        # Why later: it was seen to at this instant, and is due all the same, such as a tick that finds its queue full.
        return due_at if due_at > now or self._polled_at < now else now + _LOOK_AGAIN

    def _poll(self) -> None:
        """See to what has come due."""
        if self._pulling is not None:
            self._polled_at = self._clock.now()
            self._maintenance.do(inf)  # Why infinity: each time all of it is due
            self.runner.held.wake.set()

    def _unfinished(self) -> set[object]:
        """Something while it is about to claim, or to settle. Why a new one each time: the clock gives up on what stays."""
        is_busy = self._pulling is not None and not self._pulling.done()
        return {object()} if is_busy and (not self._is_idle or self.runner.held.wake.is_set()) else set()

    def _watch(self, ring: Callable[[], object]) -> Callable[[], None]:
        """Ring at each change, until the returned function is called."""
        self._ring = ring

        def unwatch() -> None:
            self._ring = lambda: None

        return unwatch


class _NoPrefetch(Prefetch):
    """Claims no more jobs than there are slots, and wants to look whenever one has ended, and is settled."""

    def ended(self, now: float) -> None:
        pass

    def is_low(self, held: int) -> bool:
        return True


class _Maintenance(Maintenance):
    """As a service has it; but nobody asks for counts or reads sums, and jobs are not deleted: tests look at them."""

    def _look(self) -> None:
        pass

    def _sum_up(self) -> None:
        pass

    def _prune(self) -> None:
        pass
