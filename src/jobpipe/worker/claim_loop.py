"""ClaimLoop: claims jobs in batches as long as there is room, and sends their envelopes to the slots.

How many it claims ahead of the slots is the policy of `Prefetch`. It looks when it is woken, when the next job is due,
and now and then.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rate_envelope_queue import AsyncRateEnvelopeQueue, Envelope

from ..errors import StoreError
from ..failpoints import reach
from ..gateway.async_store import AWAY_PAUSES
from ..model.job import Move
from ..model.lease import Claim, ClaimResult, Outcome, Room
from ..model.outcome import BrokenJob, error_of
from .held import HeldJob

if TYPE_CHECKING:
    from ..gateway.lazy_store import Gateway
    from ..model.counts import WorkerInfo
    from .executor import Executor
    from .held_jobs import HeldJobs
    from .settler import Settler
    from .slots import Pool

logger = logging.getLogger("jobpipe")

POLL = 1.0
"""Seconds after which it looks for jobs even if it was not woken."""


class ClaimLoop:
    """The one of a runner."""

    def __init__(
        self,
        gateway: Gateway,
        worker: WorkerInfo,
        held: HeldJobs,
        executor: Executor,
        settler: Settler,
        queue: AsyncRateEnvelopeQueue,
        *,
        lease: float,
    ) -> None:
        self._store, self._async_store, _ = gateway
        self._worker = worker
        rated = {limit.type for limit in worker.limits if limit.interval}
        self._types = list(worker.types)
        self._unrated = [type for type in self._types if type not in rated]
        self._pools = held.pools
        self._rated_queues = frozenset(
            limit.queue for limit in worker.limits if limit.queue and limit.interval
        )
        self._has_rates = any(limit.interval for limit in worker.limits)
        self._held = held
        self._executor = executor
        self._settler = settler
        self._queue = queue
        self._lease = lease
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False

    def start(self) -> None:
        """Begin to claim."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="jobpipe-claims")

    async def stop(self) -> None:
        """Claim no more; what a claim under way brings is given back."""
        self._is_stopping = True
        self._held.wake.set()
        if self._task is not None:
            await self._task

    def wake_from_thread(self) -> None:
        """There may be jobs; from any thread."""
        if not self._held.wake.is_set():
            self._held.call_from_thread(self._held.wake.set)

    async def _run(self) -> None:
        failures = 0
        wake = self._held.wake
        while not self._is_stopping:
            wake.clear()
            pause = POLL * random.uniform(0.75, 1.0)  # noqa: S311
            try:
                result = await self.look()
            except StoreError as error:
                if not failures:
                    logger.warning("no jobs can be claimed for now: %s", error)
                pause = AWAY_PAUSES[min(failures, len(AWAY_PAUSES) - 1)]
                failures += 1
            except Exception:
                logger.exception("no jobs could be claimed; trying again")
            else:
                if result is not None:
                    failures = 0
                    if result.has_more and result.claims:
                        continue
                    if result.due_in is not None:
                        # Why not at once: what is due and was not claimed cannot be, for now.
                        pause = min(pause, result.due_in or AWAY_PAUSES[0])
            pause = min(pause, *(pool.prefetch.pause(pool.unended) for pool in self._pools.all))
            try:
                async with asyncio.timeout(max(pause, 0.001)):
                    await wake.wait()
            except TimeoutError:
                pass

    async def look(self) -> ClaimResult | None:
        """Claim what there is room for, and send it to the slots; None if there is no room."""
        await self._give_back_stale()
        rooms = self._rooms()
        if not rooms:
            return None
        result = await self._async_store.call(self._claim, rooms)
        await self.take_on(result.claims)
        return result

    async def _give_back_stale(self) -> None:
        """Give back what waits here while no job ends, or for long: those that run take longer than the ones before."""
        for pool in self._pools.all:
            if pool.unended > pool.slots:
                latest = pool.prefetch.stale_before(self._held.now())
                # Why not those with a child: to start one takes longer, and it would be started again and again.
                waiting = [run for run in self._held.waiting() if run.pool is pool and not run.has_child]
                await self._held.give_back([run for run in waiting if run.taken_at < latest])

    def _rooms(self) -> dict[Pool, int]:
        """How many jobs to claim for each pool; without those that have enough to do."""
        now = self._held.now()
        rooms = {pool: room for pool in self._pools.all if (room := pool.room(now)) > 0}
        for pool in self._pools.all:
            pool.prefetch.has_more = True  # Why: what it was woken for is for when there is room
        return rooms

    def _claim(self, rooms: Mapping[Pool, int]) -> ClaimResult:
        """In a thread of the store."""
        held, worker = self._held, self._worker
        # Why not all types, or pools: a job whose time to start has come must not wait for a slot.
        ready = {pool: room for pool, room in rooms.items() if pool.has_slots(held.now())}
        types = self._types if ready else self._unrated
        asked = ready if ready and self._has_rates else rooms
        reach("claim-before")
        asked_at = held.now()  # Why before: nobody knows when in the meantime the leases began
        told = {pool: Room(room, held.slots_to_begin(pool)) for pool, room in asked.items()}
        room, begin = map(sum, zip(*told.values(), strict=True))
        queues = self._pools.choice(told) if ready else self._pools.choice(told, self._rated_queues)
        result = self._store.claim(worker.name, types, room, self._lease, worker.limits, begin, queues)
        if result.claims:
            reach("claim-after")
        for pool in asked:
            pool.prefetch.has_more = result.has_more or result.due_in == 0 or not ready
        held.expect(result.claims, asked_at)
        return result

    async def take_on(self, claims: list[Claim]) -> None:
        """Send what was claimed to the slots."""
        envelopes: list[Envelope[HeldJob]] = []
        unkeyed: list[HeldJob] = []
        for run in self._held.hold(claims):
            claim = run.claim
            try:
                if claim.problem is not None:
                    raise BrokenJob(claim.problem)
                run.envelope = self._executor.envelope(run)
                if run.lacks_key:
                    run.key = run.job_type.key(claim.payload)
            except Exception as error:
                # Values that no call lets in: another program wrote them into the store.
                run.began_at = run.taken_at
                self._settler.end(run, Outcome(move=Move.FAIL, error=error_of(error)), error)
                continue
            if run.key is not None:
                unkeyed.append(run)
                continue
            envelopes.append(run.envelope)
        if claims:
            reach("claim-taken")
        if self._held.keep_cool([envelope.payload for envelope in envelopes]):
            envelopes = [envelope for envelope in envelopes if not envelope.payload.is_gone]
        if unkeyed:
            await self._held.give_back(unkeyed)
            self._held.wake.set()
        if self._is_stopping:
            await self._held.give_back([envelope.payload for envelope in envelopes])
        elif envelopes:
            self._send(envelopes)

    def _send(self, envelopes: list[Envelope[HeldJob]]) -> None:
        """Those that their rate lets start later wait for their time here."""
        for pool in {envelope.payload.pool for envelope in envelopes}:
            pool.prefetch.sent(self._held.now())
        now = [envelope for envelope in envelopes if not envelope.payload.claim.starts_in]
        if now:
            self._queue.send_nowait(*now)
        for envelope in envelopes if len(now) < len(envelopes) else ():
            starts_in = envelope.payload.claim.starts_in
            if starts_in:
                self._queue.send_nowait(envelope, delay=starts_in)
