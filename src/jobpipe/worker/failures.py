"""Failures: calls the `on_failure` hooks of a program, at least once for each time that a job becomes failed.

For a run that ended here they are called before the outcome is recorded: if the process dies meanwhile, the job is
rescued, and they are called again. For a job whose worker was lost they are called by the process that rescued it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..errors import StoreAwayError
from ..model.job import Job, JobStatus
from ..model.lease import Claim, Outcome

if TYPE_CHECKING:
    from ..gateway.lazy_store import Gateway

logger = logging.getLogger("jobpipe")

Hook = Callable[[Job], object]
_LOOK_AGAIN = 1.0
"""Seconds between two attempts to read the job from a store that is away."""


class Failures:
    """The hooks of one process; made on its event loop."""

    def __init__(self, gateway: Gateway, hooks: Sequence[Hook]) -> None:
        self._store, self._async_store, _ = gateway
        self._hooks = hooks
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def __bool__(self) -> bool:
        """Is anything to be called?"""
        return bool(self._hooks)

    def before_settle(self, claim: Claim, outcome: Outcome, settle: Callable[[], None]) -> None:
        """Call the hooks for a job that is about to be failed, and then settle it."""
        self._do_soon(self._report_and_settle(claim, outcome, settle))

    def after_rescue(self, ids: Sequence[str]) -> None:
        """Call the hooks for jobs whose worker was lost; from the thread of the heartbeat."""
        if self._hooks:
            self._loop.call_soon_threadsafe(lambda: self._do_soon(self._report_rescued(ids)))

    async def finish(self) -> None:
        """Wait until the hooks that are under way have ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self, grace: float) -> None:
        """Let the hooks that are under way end within the grace."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel()

    def _do_soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work, name="jobpipe-failures")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _report_and_settle(self, claim: Claim, outcome: Outcome, settle: Callable[[], None]) -> None:
        job = await self._job(claim.id)
        if job is not None:
            failed = replace(
                job,
                status=JobStatus.FAILED,
                attempts=claim.attempts,
                error=outcome.error,
                progress=outcome.progress or job.progress,
                finished_at=datetime.now(UTC),
            )
            await self._report(failed)
        settle()

    async def _report_rescued(self, ids: Sequence[str]) -> None:
        for id in ids:
            job = await self._job(id)
            if job is not None:
                await self._report(job)

    async def _job(self, id: str) -> Job | None:
        """The job, as soon as the store answers; None if it is gone."""
        while True:
            try:
                return await self._async_store.call(self._store.get, id)
            except StoreAwayError:
                await asyncio.sleep(_LOOK_AGAIN)

    async def _report(self, job: Job) -> None:
        for hook in self._hooks:
            try:
                is_async = iscoroutinefunction(hook) or iscoroutinefunction(type(hook).__call__)
                result = hook(job) if is_async else await asyncio.to_thread(hook, job)
                if isawaitable(result):
                    await result
            except Exception:
                logger.exception("on_failure raised for job %s (%s), which changes nothing", job.id, job.type)
