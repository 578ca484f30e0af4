"""Runner: runs jobs in this process: it claims them in batches, runs each as an envelope, and settles them in batches.

It only puts its parts together, starts and stops them: the claim loop, what this process holds, the executor and
the settler. Everything happens on the event loop but the handlers that are plain functions.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rate_envelope_queue import AsyncRateEnvelopeQueue, Clock, SystemClock

from ..model.counts import WorkerInfo
from ..model.gate import Limit
from ..model.text import counted
from ..stores.base import News
from .claim_loop import ClaimLoop
from .executor import Executor
from .held_jobs import HeldJobs
from .outcome_log import OutcomeLog
from .settler import Settler
from .slots import Pools

if TYPE_CHECKING:
    from ..gateway.lazy_store import Gateway
    from ..gateway.signals import Signals
    from ..gateway.tracing import Tracing
    from ..jobtypes.jobtype import JobType
    from .failures import Failures
    from .isolation.children import Children
    from .meters import Meters

logger = logging.getLogger("jobpipe")

_CLOCK = SystemClock()


class Runner:
    """Runs jobs in this process, as many at once as it has slots; made on its event loop."""

    def __init__(
        self,
        gateway: Gateway,
        types: Mapping[str, JobType[..., Any]],
        signals: Signals,
        meters: Meters,
        failures: Failures | None = None,
        *,
        slots: int,
        lease: float,
        queues: Mapping[str, int | None] | None = None,
        except_queues: Sequence[str] = (),
        queue_limits: Sequence[Limit] = (),
        tracing: Tracing | None = None,
        clock: Clock = _CLOCK,
        keeps_logs: bool = False,
        max_result: int,
        children: Children | None = None,
        name: str | None = None,
    ) -> None:
        # Why not all: what is off here may be on in another process, which must get the job.
        able = {name: job_type for name, job_type in types.items() if job_type.is_on}
        worker = WorkerInfo(
            name=name or f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(2)}",
            types=tuple(sorted(able)),
            slots=slots,
            running=(),
            started_at=time.time(),
            queues=tuple(queues) if queues else None,
            except_queues=tuple(except_queues),
            slots_by_queue={queue: own for queue, own in (queues or {}).items() if own},
        )
        of_types = (job_type.limit for job_type in able.values() if job_type.limit is not None)
        of_queues = (limit for limit in queue_limits if worker.serves(limit.queue))
        self._worker = replace(worker, limits=(*of_types, *of_queues))
        pools = Pools(self._worker)
        self._gateway = gateway
        self._signals = signals
        self._leave: list[Callable[[], None]] = []
        self.queue = AsyncRateEnvelopeQueue(
            "jobpipe", workers=slots, stop_mode="stop", clock=clock, concurrency=pools.concurrency
        )
        self.held = HeldJobs(gateway, types, self.queue, pools, meters, clock.now, lease=lease)
        self.log = OutcomeLog()
        self._settler = Settler(gateway, self.held, failures, self.log)
        self._children = children
        self.executor = Executor(
            gateway,
            self.held,
            self._settler,
            tracing,
            keeps_logs=keeps_logs,
            max_result=max_result,
            children=children,
        )
        self.claims = ClaimLoop(
            gateway, self._worker, self.held, self.executor, self._settler, self.queue, lease=lease
        )

    async def start(self, *, by_itself: bool = True) -> None:
        """Begin to claim jobs; if not by itself, only when `claims.look()` is called."""
        store, async_store, feed = self._gateway
        wake, held = self.claims.wake_from_thread, self.held
        if store.capabilities.shared:  # this process has no other notice of what others enqueue
            self._leave.append(await async_store.call(feed.listen, News.WORK, wake))
        await self.queue.start()
        self._leave += [
            self._signals.on_work(wake),
            self._signals.on_cancel(held.cancel),
            self._signals.on_pause(lambda queue: held.call_from_thread(held.give_back_queue, queue)),
        ]
        if by_itself:
            self.claims.start()

    async def stop(self, grace: float) -> None:
        """Claim no more, wait up to `grace` seconds for what runs, and give back what does not end in time."""
        for leave in self._leave:
            leave()
        self.queue.pause()
        await self.claims.stop()
        await self.held.give_back(self.held.waiting())
        try:
            async with asyncio.timeout(grace):
                await self.held.wait_until_none()
        except TimeoutError:
            late = self.held.all()
            jobs = counted(len(late), "job")
            logger.warning("%s did not end within %g s: given back", jobs, grace)
            await self.held.give_back(late, also_begun=True)
        await self.held.begins.stop()
        await self.queue.terminate()
        if self._children is not None:
            await self._children.stop()
        await self._settler.finish()

    def info(self) -> WorkerInfo:
        """What others may know of it."""
        running = self.held.running()
        by_queue = Counter(claim.queue for claim in running) if self._worker.slots_by_queue else {}
        return replace(
            self._worker,
            running=tuple(claim.id for claim in running),
            running_by_queue=dict(by_queue),
            children={} if self._children is None else self._children.info(),
        )
