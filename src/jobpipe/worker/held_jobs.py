"""HeldJobs: the jobs that this process holds: waiting for a free slot, under way, or ended and not settled yet.

Their leases are extended all the while. Those that wait can be given back. All of it is used on the event loop; handlers
in threads begin on their own, and the heartbeat reads and extends leases in its thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from rate_envelope_queue import AsyncRateEnvelopeQueue

from ..errors import LeaseLostError, StoreError
from ..gateway.async_store import AWAY_PAUSES
from ..model.job import Progress
from ..model.lease import Claim, Lease, LeaseState
from ..model.logs import LogChunk
from .begins import Begins
from .held import HeldJob
from .run_log import RunLog

if TYPE_CHECKING:
    from ..gateway.lazy_store import Gateway
    from ..jobtypes.jobtype import JobType
    from .meters import Meters
    from .slots import Pool, Pools

logger = logging.getLogger("jobpipe")

_LOG_LATER = 0.25
"""Seconds within which most runs end: what these log is stored with their outcomes."""
_TO_CLEAN_UP = 1.0  # seconds, for a handler that was told that its lease is lost


class HeldJobs:
    """Those of one runner; made on its event loop."""

    on_progress: Callable[[], object] | None = None
    """Called, from any thread, when there is progress to take."""

    def __init__(
        self,
        gateway: Gateway,
        types: Mapping[str, JobType[..., Any]],
        queue: AsyncRateEnvelopeQueue,
        pools: Pools,
        meters: Meters,
        now: Callable[[], float],
        *,
        lease: float,
    ) -> None:
        self.now = now
        self.pools = pools
        self.wake = asyncio.Event()
        """A claim may bring jobs: the claim loop is to look."""
        self.begins = Begins(gateway, self)
        self._loop = asyncio.get_running_loop()
        self._store, self._async_store, _ = gateway
        self._types = types
        self._queue = queue
        self._meters = meters
        self._lease = lease
        self._lock = threading.Lock()  # of the flags of a job, and of when it begins
        self._held: dict[Lease, HeldJob] = {}  # until it is settled or given back
        self._asked_at = 0.0  # when they were claimed, or before
        # Claimed, unknown to the event loop yet: until when they are held.
        self._arriving: dict[Lease, float] = {}
        # By type that cools once that is stored: what waits for it.
        self._cooling: dict[str, list[HeldJob]] = {}
        self._progress: dict[Lease, Progress] = {}
        self._logging: dict[Lease, RunLog] = {}
        self._releases: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()  # one was settled or given back

    def all(self) -> list[HeldJob]:
        """Each of them."""
        return list(self._held.values())

    def waiting(self) -> list[HeldJob]:
        """Those that have not begun."""
        return [run for run in self._held.values() if not run.began_at]

    async def wait_until_none(self) -> None:
        """Return when all are settled or given back."""
        while self._held:
            self._changed.clear()
            await self._changed.wait()

    async def wait_until_settled(self) -> None:
        """Return when all that have ended are settled."""
        while any(run.is_ended for run in self._held.values()):
            self._changed.clear()
            await self._changed.wait()

    def call_from_thread(self, do: Callable[..., object], *args: object) -> None:
        """Have it done on the event loop."""
        try:
            self._loop.call_soon_threadsafe(do, *args)
        except RuntimeError:
            pass  # the loop has ended

    # From the claim to the end

    def expect(self, claims: list[Claim], asked_at: float) -> None:
        """They were claimed. Why told in a thread: the event loop may be blocked, and leases are extended all the same."""
        self._asked_at = asked_at
        self._arriving = {claim.lease: asked_at + self._lease for claim in claims}

    def hold(self, claims: list[Claim]) -> list[HeldJob]:
        """Take over what was claimed."""
        now = self.now()
        with self._lock:
            runs = [
                HeldJob(claim, self._types[claim.type], self.pools, now, self._arriving[claim.lease])
                for claim in claims
            ]
            for run in runs:
                run.expire_by(self._asked_at)
            self._held.update((run.claim.lease, run) for run in runs)
            self._arriving = {}
        for run in runs:
            run.pool.unended += 1
        if not all(claim.has_begun for claim in claims):
            self.begins.watch()
        return runs

    def slots_to_begin(self, pool: Pool) -> int:
        """How many jobs may begin with a claim: the slots that are free, also for the store."""
        unsettled = sum(run.is_ended and run.is_begin_told and run.pool is pool for run in self.all())
        return max(pool.slots - pool.unended - unsettled, 0)

    def begin(self, run: HeldJob) -> bool:
        """False if it was given back, has expired, or its lease may have run out: this process was frozen."""
        with self._lock:
            if run.is_gone:
                return False
            now = self.now()
            is_expired = now >= run.begins_before
            if now <= run.held_until and not is_expired:
                run.began_at = now
                self._meters.wait_seconds[run.claim.queue].observe(run.waited)
                if not run.is_begin_stored:
                    self.begins.add(run)
                return True
            run.is_gone = True
        if not is_expired:
            logger.warning(
                "job %s is given back: its lease may have run out before it could begin", run.claim.id
            )
        self.call_from_thread(self._release_soon, [run])
        return False

    def report(self, run: HeldJob, progress: Progress) -> None:
        """Its handler says how far it is."""
        run.progress = progress
        self._progress[run.claim.lease] = progress
        if self.on_progress is not None:
            self.on_progress()

    def log_of(self, run: HeldJob) -> RunLog:
        """Where what its handler logs is kept; from any thread."""
        if run.log is None:
            # Why no lock: who holds it may be who logs, when garbage is collected.
            log = RunLog(self.now, run.started_at - run.began_at)
            run.log = self._logging.setdefault(run.claim.lease, log)
        return run.log

    def end(self, run: HeldJob) -> bool:
        """Its handler is done with it, and it is to be settled; False if it was given back, or has ended before."""
        with self._lock:
            if run.is_gone or run.is_ended:
                return False
            run.is_ended = True
        self.begins.discard(run)
        now = self.now()
        run.seconds = now - run.began_at
        self._meters.run_seconds[run.claim.type].observe(run.seconds)
        run.pool.unended -= 1
        run.pool.prefetch.ended(now)
        return True

    def settled(self, lease: Lease) -> HeldJob | None:
        """The store has taken its outcome, or refused it."""
        self._progress.pop(lease, None)
        if self._logging:
            self._logging.pop(lease, None)
        self._changed.set()
        return self._held.pop(lease, None)

    # What a run records

    def store_now(self, run: HeldJob) -> float:
        """What time it is by the clock of the store."""
        return self.now() + run.claim.started_at - run.taken_at

    def lose(self, run: HeldJob) -> None:
        """The store says that its lease is lost, and its handler is told; from any thread."""
        with self._lock:
            run.is_gone = True
        self.call_from_thread(self._lost, run)

    def _lost(self, run: HeldJob) -> None:
        self._let_go(run)
        logger.warning("%s", LeaseLostError(run.claim.id))
        # Why later: to be broken off now would disturb what the handler does about the error, such as a rollback.
        self._loop.call_later(_TO_CLEAN_UP, self._queue.cancel, run.envelope)

    def unstored_logs_of(self, run: HeldJob) -> tuple[LogChunk, ...]:
        """What it has logged that may not be stored yet."""
        return () if run.log is None else tuple(run.log.unstored())

    async def is_still_leased(self, run: HeldJob) -> bool | None:
        """Is it not settled? None if the store is away for so long that the end of the lease will tell."""
        for pause in (*AWAY_PAUSES, *AWAY_PAUSES[-1:] * 2):
            try:
                (state,) = await self._async_store.call(self._store.extend, [run.claim.lease], self._lease)
                return state is not LeaseState.LOST
            except Exception as error:
                logger.warning("whether job %s is finished cannot be told yet: %s", run.claim.id, error)
            await asyncio.sleep(pause)
        return None

    # Giving back

    async def give_back(self, runs: list[HeldJob], *, also_begun: bool = False) -> None:
        """Release jobs that have not begun, or not ended; what they come to is not recorded any more."""
        taken = self._take_back(runs, also_begun=also_begun)
        if taken:
            await self._release(taken)

    def give_back_queue(self, queue: str) -> None:
        """It was paused: what waits here of it is not to begin."""
        self._release_soon(self._take_back([run for run in self._held.values() if run.claim.queue == queue]))

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
            if run.has_transactions or run.has_child:
                # Why first: a transaction that is open holds up the store, and a store that is away holds up no kill.
                self._queue.cancel(run.envelope)
        for is_late in (False, True):
            if some := [run for run in runs if run.has_transactions is is_late]:
                await self._give_back(some)

    async def _give_back(self, runs: list[HeldJob]) -> None:
        await self._write_logs(runs)
        try:
            await self._async_store.call(
                self._store.release, [run.claim.lease for run in runs], [run.key for run in runs]
            )
        except StoreError as error:
            logger.warning("%d jobs could not be given back, they will be rescued: %s", len(runs), error)
        except Exception:
            logger.exception("%d jobs could not be given back, they will be rescued", len(runs))
        for run in runs:
            run.pool.prefetch.has_more = True
            self._queue.cancel(run.envelope)

    async def _write_logs(self, runs: list[HeldJob]) -> None:
        logs = [(run.claim.lease, chunk) for run in runs if run.log is not None for chunk in run.log.close()]
        if logs:
            try:
                await self._async_store.call(self._store.write_logs, logs)
            except Exception as error:  # the jobs are given back without them
                logger.warning("what %d jobs logged last could not be stored: %s", len(runs), error)

    def _release_soon(self, runs: list[HeldJob]) -> None:
        if runs:
            self.do_soon(self._release(runs))

    def do_soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it on the event loop, and see to it that it is not forgotten."""
        task = self._loop.create_task(work, name="jobpipe-giving-back")
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    def _let_go(self, run: HeldJob) -> None:
        self._logging.pop(run.claim.lease, None)
        if self._held.pop(run.claim.lease, None) is not None:
            self.begins.discard(run)
            run.pool.unended -= 1
            self.wake.set()  # there is a slot
            self._changed.set()

    # Types that cool

    def cool(self, type: str) -> None:
        """Let no job of the type begin, until the store knows that it cools."""
        self._cooling.setdefault(type, [])
        self.keep_cool(self.all())

    def keep_cool(self, runs: list[HeldJob]) -> list[HeldJob]:
        """Take back those of types that cool. Why not released at once: the next claim would bring them back."""
        if not self._cooling:
            return []
        taken = self._take_back([run for run in runs if run.claim.type in self._cooling])
        for run in taken:
            self._cooling[run.claim.type].append(run)
        return taken

    def cooled(self, type: str) -> None:
        """The store knows that the type cools."""
        self._release_soon(self._cooling.pop(type, []))

    # Leases; for the heartbeat, in its thread

    def leases(self) -> list[Lease]:
        """All that are held."""
        return [*self._held, *self._arriving]

    def running(self) -> list[Claim]:
        """Those that have begun."""
        return [run.claim for run in self.all() if run.began_at]

    def take_progress(self) -> list[tuple[Lease, Progress]]:
        """What was reported since the last call."""
        taken, self._progress = self._progress, {}
        for lease, progress in taken.items():
            if (run := self._held.get(lease)) is not None and run.may_be_locked:
                # Why again: a store passes over a job that is locked.
                self._progress.setdefault(lease, progress)
        return list(taken.items())

    def unstored_logs(self) -> list[tuple[Lease, LogChunk]]:
        """What runs have logged that take longer than most; not after `finish`, which has locked the job and has its logs."""
        since = self.now() - _LOG_LATER
        logs = []
        for lease, log in list(self._logging.items()):
            if (run := self._held.get(lease)) is None:
                # A handler went on to log though its job was given back, or has ended.
                self._logging.pop(lease, None)
            elif not (run.is_ended or run.is_finishing) and run.began_at <= since:
                logs += [(lease, chunk) for chunk in log.unstored()]
        return logs

    def stored_logs(self, chunks: Sequence[tuple[Lease, LogChunk]]) -> None:
        """The store has them."""
        for lease, chunk in chunks:
            if (log := self._logging.get(lease)) is not None:
                log.stored(chunk)

    def extended(self, states: Mapping[Lease, LeaseState], asked_at: float) -> None:
        """The store was asked to extend leases, and has answered."""
        with self._lock:  # Why at once: what is lost must not begin before the event loop is told
            for lease, state in states.items():
                is_lost = state is LeaseState.LOST
                held_until = -inf if is_lost else asked_at + self._lease
                if (run := self._held.get(lease)) is not None:
                    run.is_gone |= is_lost and not run.is_finishing
                    run.held_until = held_until
                elif lease in self._arriving:
                    self._arriving[lease] = held_until
        self.handle_states(states)

    def cancel(self, ids: Sequence[str]) -> None:
        """Jobs are to be cancelled."""
        wanted = set(ids)
        self.handle_states({lease: LeaseState.CANCELLING for lease in self.leases() if lease.id in wanted})

    def handle_states(self, states: Mapping[Lease, LeaseState]) -> None:
        """Break off the jobs that are lost, or to be cancelled."""
        for lease, state in states.items():
            if state is not LeaseState.HELD:
                self.call_from_thread(self._break_off, lease, state)

    def _break_off(self, lease: Lease, state: LeaseState) -> None:
        run = self._held.get(lease)
        if run is None or run.is_ended or (run.is_finishing and state is LeaseState.LOST):
            return
        if state is LeaseState.LOST:
            with self._lock:
                run.is_gone = True
            self._let_go(run)
            # Why not always: what has not begun was cancelled before it could, or taken over.
            if run.began_at or run.claim.has_begun:
                logger.warning("%s", LeaseLostError(lease.id))
        elif not run.began_at:
            # Why: what never begins never ends either, and the store cancels it when it is given back.
            self.do_soon(self.give_back([run]))
        run.is_cancelling = True
        self._queue.cancel(run.envelope)
