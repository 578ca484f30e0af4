"""Runner: claims jobs in batches, runs each as an envelope, and settles what came of them in batches.

A job that it holds is waiting for a free slot, under way, or ended and not settled yet; its lease is kept
all the while. Those that wait were claimed ahead: only while jobs keep ending, and given back when none does. Everything happens on the event loop but the handlers that are plain functions.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from rate_envelope_queue import AsyncRateEnvelopeQueue, Clock, Envelope, SystemClock

from ..errors import LeaseLostError, StoreError
from ..failpoints import reach
from ..model.counts import WorkerInfo
from ..model.job import Move, Progress
from ..model.lease import Claim, ClaimResult, Lease, LeaseState, Outcome, Settlement
from ..model.outcome import BrokenJob, error_of
from ..stores.base import News
from .begins import Begins
from .executor import Executor
from .held import HeldJob
from .prefetch import Prefetch
from .settler import Settler

if TYPE_CHECKING:
    from ..gateway.lazy_store import Gateway
    from ..gateway.signals import Signals
    from ..jobtypes.jobtype import JobType
    from .meters import Meters

logger = logging.getLogger("jobpipe")

POLL = 1.0
"""Seconds after which it looks for jobs even if nothing was heard of any."""
_AWAY_PAUSES = (0.05, 0.2, 1.0)
_CLOCK = SystemClock()


class Runner:
    """Runs jobs in this process, as many at once as it has slots."""

    on_progress: Callable[[], object] | None = None
    """Told, from any thread, that there is progress to take."""

    def __init__(
        self,
        gateway: Gateway,
        types: Mapping[str, JobType[..., Any]],
        signals: Signals,
        meters: Meters,
        *,
        slots: int,
        lease: float,
        clock: Clock = _CLOCK,
    ) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(2)}"
        self.slots = slots
        self.queue = AsyncRateEnvelopeQueue("jobpipe", workers=slots, stop_mode="stop", clock=clock)
        self.now = clock.now
        self._store, self._async_store, self._feed = gateway
        self._job_types = types
        self._signals = signals
        self._meters = meters
        # Why not all: what is off here may be on in another process, which must get the job.
        able = {name: job_type for name, job_type in types.items() if job_type.is_on}
        self._types = sorted(able)
        self._limits = [job_type.limit for job_type in able.values() if job_type.limit is not None]
        rated = {limit.type for limit in self._limits if limit.interval}
        self._unrated = [type for type in self._types if type not in rated]
        self._lease = lease
        self._began_at = time.time()
        self._lock = threading.Lock()  # of the flags of a run: handlers in threads begin on their own
        self._held: dict[Lease, HeldJob] = {}  # until it is settled or given back
        self._arriving: dict[Lease, float] = {}  # claimed, not told to the event loop yet: held until then
        self._unended = 0  # of those, the ones that wait or run
        self._cooling: dict[
            str, list[HeldJob]
        ] = {}  # types that are to cool as soon as that is stored; what waits for it
        self._begins = Begins(self.now, self._tell_begins)
        self._prefetch = Prefetch(slots)
        self._progress: dict[Lease, Progress] = {}
        self._executor = Executor(begin=self._begin, report=self._report, end=self._end)
        self._settler = Settler(
            lambda batch: self._async_store.call(self._store.settle, batch), self._settled
        )
        self._claiming: asyncio.Task[None] | None = None
        self._beside: set[asyncio.Task[None]] = set()  # that give jobs back
        self._nudged = asyncio.Event()
        self._has_more = True  # may a claim find jobs without a word from anybody, as soon as there is room?
        self._changed = asyncio.Event()  # a run was settled or given back
        self._is_stopping = False
        self._leave: list[Callable[[], None]] = []

    # Starting and stopping

    async def start(self) -> None:
        """Begin to claim jobs."""
        self._loop = asyncio.get_running_loop()
        if self._store.capabilities.shared:  # what others put in, this process is not told otherwise
            self._leave.append(
                await self._async_store.call(self._feed.listen, News.WORK, self._nudge_from_anywhere)
            )
        await self.queue.start()
        self._leave += [
            self._signals.on_work(self._nudge_from_anywhere),
            self._signals.on_cancel(self._cancel_from_anywhere),
            self._signals.on_pause(lambda queue: self._from_anywhere(self._give_back_queue, queue)),
        ]
        self._claiming = self._loop.create_task(self._claim_jobs(), name="jobpipe-claims")

    async def stop(self, grace: float) -> None:
        """Claim no more, wait so long for what runs, and give back what does not end in time."""
        self._is_stopping = True
        for leave in self._leave:
            leave()
        self.queue.pause()
        self._nudged.set()
        if self._claiming is not None:
            await self._claiming
        await self._give_back([run for run in self._held.values() if not run.began_at])
        try:
            async with asyncio.timeout(grace):
                while self._held:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            late = list(self._held.values())
            logger.warning("%d jobs did not end within %g s: they are given back", len(late), grace)
            await self._give_back(late, also_begun=True)
        await self._begins.stop()
        await self.queue.terminate()
        await self._settler.finish()

    async def _give_back(self, runs: list[HeldJob], *, also_begun: bool = False) -> None:
        """Release jobs that have not begun, or not ended; what they come to is not recorded any more."""
        taken = self._take_back(runs, also_begun=also_begun)
        if taken:
            await self._release(taken)

    def _take_back(self, runs: list[HeldJob], *, also_begun: bool = False) -> list[HeldJob]:
        """From now on none of them begins; those to be released."""
        with self._lock:
            taken = [
                run
                for run in runs
                if run.claim.lease in self._held
                and not (run.is_gone or run.is_ended)
                and (also_begun or not run.began_at)
            ]
            for run in taken:
                run.is_gone = True
        return taken

    async def _release(self, runs: list[HeldJob]) -> None:
        for run in runs:
            self._let_go(run)
        try:
            await self._async_store.call(
                self._store.release, [run.claim.lease for run in runs], [run.key for run in runs]
            )
        except StoreError as error:
            logger.warning("%d jobs could not be given back, they will be rescued: %s", len(runs), error)
        except Exception:
            logger.exception("%d jobs could not be given back, they will be rescued", len(runs))
        self._has_more = True
        for run in runs:
            self.queue.cancel(run.envelope)

    def _let_go(self, run: HeldJob) -> None:
        if self._held.pop(run.claim.lease, None) is not None:
            self._begins.discard(run)
            self._unended -= 1
            self._nudged.set()  # there is a slot
            self._changed.set()

    # Claiming

    def _from_anywhere(self, do: Callable[..., object], *args: object) -> None:
        """Have it done on the event loop."""
        try:
            self._loop.call_soon_threadsafe(do, *args)
        except RuntimeError:
            pass  # the loop has ended

    def _do_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work, name="jobpipe-giving-back")
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def _nudge_from_anywhere(self) -> None:
        if not self._nudged.is_set():
            self._from_anywhere(self._nudged.set)

    def _cancel_from_anywhere(self, ids: Sequence[str]) -> None:
        wanted = set(ids)
        self.handle_states({lease: LeaseState.CANCELLING for lease in self.leases() if lease.id in wanted})

    def _give_back_queue(self, queue: str) -> None:
        """It was paused: what waits here of it is not to begin."""
        waiting = self._take_back([run for run in self._held.values() if run.claim.queue == queue])
        if waiting:
            self._do_beside(self._release(waiting))

    async def _claim_jobs(self) -> None:
        failures = 0
        while not self._is_stopping:
            self._nudged.clear()
            pause = POLL * random.uniform(0.75, 1.0)  # noqa: S311
            await self._give_back_stale()
            room = self._prefetch.room(self._unended, self.now())
            if room > 0:
                try:
                    result = await self._async_store.call(self._claim, room)
                except StoreError as error:
                    if not failures:
                        logger.warning("no jobs can be claimed for now: %s", error)
                    pause = _AWAY_PAUSES[min(failures, len(_AWAY_PAUSES) - 1)]
                    failures += 1
                except Exception:
                    logger.exception("no jobs could be claimed; trying again")
                else:
                    failures = 0
                    await self._take_on(result.claims)
                    if result.has_more and result.claims:
                        continue
                    if result.due_in is not None:
                        # Why not at once: what is due and was not claimed cannot be, for now.
                        pause = min(pause, result.due_in or _AWAY_PAUSES[0])
            else:
                self._has_more = True  # Why: what it was nudged for is for when there is room
            pause = min(pause, self._prefetch.pause(self._unended))
            try:
                async with asyncio.timeout(max(pause, 0.001)):
                    await self._nudged.wait()
            except TimeoutError:
                pass

    def _claim(self, room: int) -> ClaimResult:
        """In a thread of the store. Why noted there: a handler may block the loop, and leases are kept all the same."""
        types = self._types if self._has_slots() else self._unrated
        self._has_more = True
        reach("claim-before")
        asked_at = self.now()  # Why before: nobody knows when in the meantime the leases began
        free = max(self.slots - self._unended, 0)
        result = self._store.claim(self.name, types, room, self._lease, self._limits, free)
        if result.claims:
            reach("claim-after")
        self._has_more = result.has_more or result.due_in == 0 or types is not self._types
        self._arriving = {claim.lease: asked_at + self._lease for claim in result.claims}
        return result

    def _has_slots(self) -> bool:
        """Is one free, or have they been changing hands just now? A job whose time to start has come must not wait."""
        return self._unended < self.slots or self._prefetch.has_turnover(self.now())

    async def _give_back_stale(self) -> None:
        """Give back what waits here while no job ends, or for long: those that run take longer than the ones before."""
        if self._unended > self.slots:
            latest = self._prefetch.stale_before(self.now())
            await self._give_back(
                [run for run in self._held.values() if not run.began_at and run.taken_at < latest]
            )

    async def _take_on(self, claims: list[Claim]) -> None:
        envelopes: list[Envelope[HeldJob]] = []
        unkeyed: list[HeldJob] = []
        for run in self._hold(claims):
            claim = run.claim
            try:
                if claim.problem is not None:
                    raise BrokenJob(claim.problem)
                run.envelope = self._executor.envelope(run)
                if run.lacks_key:
                    run.key = run.job_type.key(claim.payload)
            except Exception as error:
                # Values that no call lets in: somebody else has put them into the store.
                run.began_at = run.taken_at
                self._end(run, Outcome(move=Move.FAIL, error=error_of(error)))
                continue
            if run.key is not None:
                unkeyed.append(run)
                continue
            envelopes.append(run.envelope)
            self._meters.wait_seconds[claim.queue].observe(max(claim.started_at - claim.run_at, 0.0))
        if claims:
            reach("claim-taken")
        if self._cooling:
            self._keep_cool([envelope.payload for envelope in envelopes])
            envelopes = [envelope for envelope in envelopes if not envelope.payload.is_gone]
        if unkeyed:
            await self._give_back(unkeyed)
            self._nudged.set()
        if self._is_stopping:
            await self._give_back([envelope.payload for envelope in envelopes])
        elif envelopes:
            self._send(envelopes)

    def _hold(self, claims: list[Claim]) -> list[HeldJob]:
        types, now = self._job_types, self.now()
        with self._lock:
            runs = [HeldJob(claim, types[claim.type], now, self._arriving[claim.lease]) for claim in claims]
            self._held.update((run.claim.lease, run) for run in runs)
            self._arriving = {}
        self._unended += len(runs)
        if not all(claim.has_begun for claim in claims):
            self._begins.watch(self._has_claimed_ahead)
        return runs

    def _has_claimed_ahead(self) -> bool:
        return any(not run.is_begin_stored for run in self._held.values())

    async def _tell_begins(self, leases: list[Lease], started_at: list[float]) -> None:
        states = await self._async_store.call(self._store.begin, leases, started_at)
        self.begun(dict(zip(leases, states, strict=True)))

    def _send(self, envelopes: list[Envelope[HeldJob]]) -> None:
        """Those that their rate lets start later wait for their time here."""
        self._prefetch.sent(self.now())
        now = [envelope for envelope in envelopes if not envelope.payload.claim.starts_in]
        if now:
            self.queue.send_nowait(*now)
        for envelope in envelopes if len(now) < len(envelopes) else ():
            starts_in = envelope.payload.claim.starts_in
            if starts_in:
                self.queue.send_nowait(envelope, delay=starts_in)

    # Running

    def _begin(self, run: HeldJob) -> bool:
        """False if it was given back before it could begin, or its lease may have run out: this process was frozen."""
        with self._lock:
            if run.is_gone:
                return False
            now = self.now()
            if now <= run.held_until:
                run.began_at = now
                if not run.is_begin_stored:
                    self._begins.add(run)
                return True
            run.is_gone = True
        logger.warning("job %s is given back: its lease may have run out before it could begin", run.claim.id)
        self._from_anywhere(self._release_late, run)
        return False

    def _release_late(self, run: HeldJob) -> None:
        self._do_beside(self._release([run]))

    def _report(self, run: HeldJob, progress: Progress) -> None:
        run.progress = progress
        self._progress[run.claim.lease] = progress
        if self.on_progress is not None:
            self.on_progress()

    def _end(self, run: HeldJob, outcome: Outcome) -> None:
        with self._lock:
            if run.is_gone or run.is_ended:
                return
            run.is_ended = True
        self._begins.discard(run)
        now = self.now()
        self._meters.run_seconds[run.claim.type].observe(now - run.began_at)
        self._unended -= 1
        self._prefetch.ended(now)
        self._settler.add(Settlement(run.claim.lease, outcome, run.started_at))
        if outcome.cools:
            self._cooling.setdefault(run.claim.type, [])
            self._keep_cool(list(self._held.values()))
        if self._has_more and self._unended <= self._prefetch.refill_at and not self._nudged.is_set():
            self._nudged.set()

    def _keep_cool(self, runs: list[HeldJob]) -> None:
        """Let none begin of a type that cools. Why not released at once: the next claim would bring it back."""
        for run in self._take_back([run for run in runs if run.claim.type in self._cooling]):
            self._cooling[run.claim.type].append(run)

    def _settled(self, batch: list[tuple[Settlement, bool]]) -> None:
        for settlement, is_recorded in batch:
            lease = settlement.lease
            run = self._held.pop(lease, None)
            self._progress.pop(lease, None)
            if settlement.outcome.cools and run is not None:
                waiting = self._cooling.pop(run.claim.type, None)
                if waiting:
                    self._do_beside(self._release(waiting))
            if run is not None and (run.job_type.limit is not None or settlement.outcome.waits_again):
                self._nudged.set()  # only now its place is free, or the time of its next run known
            if not is_recorded and not (run is not None and run.is_cancelling):
                logger.warning("%s", LeaseLostError(lease.id))
        self._changed.set()

    # For the keeper of the leases, in its thread

    def leases(self) -> list[Lease]:
        """What this runner holds."""
        return [*self._held, *self._arriving]

    def begins(self, after: float) -> tuple[list[Lease], list[float]]:
        """The jobs that began so many seconds ago, or before, of which the store does not know that, and when."""
        return self._begins.due(after)

    def begun(self, states: Mapping[Lease, LeaseState]) -> None:
        """The store was told that jobs have begun, and has answered."""
        self._begins.stored(states)
        self.handle_states(states)

    def take_progress(self) -> list[tuple[Lease, Progress]]:
        """What was reported since it was last asked."""
        taken, self._progress = self._progress, {}
        return list(taken.items())

    def info(self) -> WorkerInfo:
        """What others may know of it."""
        running = tuple(run.claim.id for run in list(self._held.values()) if run.began_at)
        return WorkerInfo(
            name=self.name,
            types=tuple(self._types),
            slots=self.slots,
            running=running,
            started_at=self._began_at,
            limits=tuple(self._limits),
        )

    def kept(self, states: Mapping[Lease, LeaseState], asked_at: float) -> None:
        """Heed what the store said when it was asked to extend leases."""
        with self._lock:  # Why at once: what is lost must not begin before the event loop is told
            for lease, state in states.items():
                is_lost = state is LeaseState.LOST
                held_until = -inf if is_lost else asked_at + self._lease
                if (run := self._held.get(lease)) is not None:
                    run.is_gone |= is_lost
                    run.held_until = held_until
                elif lease in self._arriving:
                    self._arriving[lease] = held_until
        self.handle_states(states)

    def handle_states(self, states: Mapping[Lease, LeaseState]) -> None:
        """Break off the jobs that are lost, or wanted cancelled."""
        for lease, state in states.items():
            if state is not LeaseState.HELD:
                self._from_anywhere(self._break_off, lease, state)

    def _break_off(self, lease: Lease, state: LeaseState) -> None:
        run = self._held.get(lease)
        if run is None or run.is_ended:
            return
        if state is LeaseState.LOST:
            with self._lock:
                run.is_gone = True
            self._let_go(run)
            if (
                run.began_at or run.claim.has_begun
            ):  # else it was cancelled before it could begin, or taken over
                logger.warning("%s", LeaseLostError(lease.id))
        elif not run.began_at:
            # Why: what never begins never ends either, and the store cancels it when it is given back.
            self._do_beside(self._give_back([run]))
        run.is_cancelling = True
        self.queue.cancel(run.envelope)
