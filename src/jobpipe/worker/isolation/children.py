"""Children: the child processes of one worker, at most one a slot, kept for the next run and replaced where they are used up.

Who runs a job has a child for itself meanwhile. If that is broken off, whatever the reason, the child is killed.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import MemoryExceeded, ProcessDied
from ...model.counts import ChildInfo
from ...model.lease import Outcome
from .messages import Setup, Start
from .orphans import Guard
from .process import ChildProcess, Run
from .usage import resident

if TYPE_CHECKING:
    from ...jobtypes.jobtype import JobType
    from ...model.lease import Claim
    from ...settings import Settings
    from ...stores.base import Capabilities
    from .answers import Answers

logger = logging.getLogger("jobpipe")

_WATCH = 0.1
"""Seconds between two looks at the memory of those that run a job."""


class _Busy(NamedTuple):
    """A child that runs a job."""

    job: str
    """Its id."""
    child: ChildProcess
    memory: int | None
    """Bytes that it may have."""


class Children:
    """Those of one runner; used on its event loop."""

    def __init__(
        self,
        addresses: Mapping[str, str],
        settings: Settings,
        capabilities: Capabilities,
        answers: Answers,
    ) -> None:
        self.addresses = addresses
        """Of the types whose jobs they run, by name."""
        self._settings = settings
        self._capabilities = capabilities
        self._answers = answers
        self._guard = Guard()
        self._loop = asyncio.get_running_loop()
        self._all: set[ChildProcess] = set()
        self._idle: list[ChildProcess] = []
        self._busy: dict[int, _Busy] = {}
        """By the number of the run. Why not by the job: it may have a new run here before a lost one is over."""
        self._numbers = itertools.count(1)
        self._timer: asyncio.TimerHandle | None = None
        self._burials: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def child(self, job_type: JobType[..., Any]) -> AsyncIterator[ChildProcess]:
        """A child for one run, started if none is idle; ProcessDied if that cannot be done."""
        child = self._taken(job_type) or await self._started()
        try:
            yield child
        except BaseException:
            child.kill()
            self._bury(child, child.bury())
            raise
        if self._is_used_up(child, job_type):
            self._bury(child, child.leave())
        else:
            self._idle.append(child)

    def _taken(self, job_type: JobType[..., Any]) -> ChildProcess | None:
        """One that is idle; those that died, or that runs of other types have made too large for this one, are replaced."""
        while self._idle:
            child = self._idle.pop()
            if not child.is_lost and not _is_large(child, job_type):
                return child
            self._bury(child, child.leave())
        return None

    def _handle_death(self, child: ChildProcess) -> None:
        """One has died; who runs a job in it sees to that."""
        if child in self._idle:
            self._idle.remove(child)
            self._bury(child, child.bury())

    async def _started(self) -> ChildProcess:
        try:
            child = ChildProcess(self._answers.answer, self._handle_death)
        except OSError as error:
            raise ProcessDied(f"the process could not start: {error}") from error
        self._all.add(child)
        try:
            self._guard.add(child.pid)
            await child.start(
                Setup(
                    addresses=dict(self.addresses),
                    settings=self._settings,
                    capabilities=self._capabilities,
                    log_level=logging.root.level,
                )
            )
        except BaseException:
            child.kill()
            self._bury(child, child.bury())
            raise
        return child

    async def run(
        self,
        child: ChildProcess,
        job_type: JobType[..., Any],
        claim: Claim,
        run: Run,
        *,
        started_at: float,
        store_now: float,
        keeps_logs: bool,
        trace: Mapping[str, str],
    ) -> Outcome:
        """Run a job in the child; DeadlineExceeded, MemoryExceeded or ProcessDied where it did not end by itself."""
        start = Start(
            run=next(self._numbers),
            claim=claim,
            started_at=started_at,
            store_now=store_now,
            keeps_logs=keeps_logs,
            memory=job_type.memory,
            trace=dict(trace),
        )
        if job_type.memory is not None and (memory := resident(child.pid)) > job_type.memory:
            # Why now: whether a bound is too small for any run must not depend on how long one takes.
            raise MemoryExceeded(memory, job_type.memory)
        self._busy[start.run] = _Busy(claim.id, child, job_type.memory)
        if self._timer is None:
            self._timer = self._loop.call_later(_WATCH, self._watch)
        try:
            return await child.run(start, run, claim.deadline)
        finally:
            del self._busy[start.run]

    def info(self) -> dict[str, ChildInfo]:
        """What runs in them, by the id of the job; from any thread."""
        return {
            id: ChildInfo(pid=child.pid, memory=child.memory or resident(child.pid), cpu=round(child.cpu, 3))
            for id, child, _ in list(self._busy.values())
        }

    async def stop(self) -> None:
        """End all of them."""
        if self._timer is not None:
            self._timer.cancel()
        for child in self._idle:
            self._bury(child, child.leave())
        self._idle.clear()
        for busy in self._busy.values():
            busy.child.kill()
        while self._all or self._burials:
            for child in list(self._all):
                self._bury(child, child.bury())
            await asyncio.gather(*self._burials)
        await asyncio.to_thread(self._guard.stop)

    def _watch(self) -> None:
        self._timer = self._loop.call_later(_WATCH, self._watch) if self._busy else None
        self._guard.look()
        for _, child, most in list(self._busy.values()):
            child.look(most)

    def _is_used_up(self, child: ChildProcess, job_type: JobType[..., Any]) -> bool:
        return child.is_over or _is_large(child, job_type) or child.runs >= job_type.max_jobs_per_child

    def _bury(self, child: ChildProcess, end: Coroutine[Any, Any, None]) -> None:
        """Have it end, without waiting for that."""

        async def bury() -> None:
            await end
            self._guard.discard(child.pid)

        self._all.discard(child)
        task = self._loop.create_task(bury(), name="jobpipe-burial")
        self._burials.add(task)
        task.add_done_callback(self._burials.discard)


def _is_large(child: ChildProcess, job_type: JobType[..., Any]) -> bool:
    """Has it more than half of what a run of the type may have?"""
    return job_type.memory is not None and resident(child.pid) > job_type.memory / 2
