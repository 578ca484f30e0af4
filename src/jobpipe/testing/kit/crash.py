"""CrashTest: runs a handler again and again, with the process dying at another place each time.

The first run has no crash, and shows the places that there are. After a crash the lease of the job runs out, and another
process rescues the job and runs it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from inspect import isawaitable
from typing import Any

from ...errors import BadInputError, JobNotFoundError
from ...jobtypes.jobtype import JobType
from ...model.durable import timeout_at
from ...model.ids import check_id
from ...model.job import Job, JobStatus
from ...model.request import request_of
from .block import Block
from .inline import Inline
from .one_job import check_type
from .process import Process

_MOST_RUNS = 2_000
"""More than any job has, with its retries and sleeps."""
_LOOK_AGAIN = 1.0
"""Seconds after which a job is looked at that could run and does not, such as one of a paused queue."""

Call = Callable[[], object]
"""A plain function or a coroutine function of the test."""


class CrashTest:
    """One handler with one payload, in a block; it is sent each of the signals when it waits for it."""

    def __init__(
        self,
        block: Block,
        job_type: JobType[..., Any],
        payload: Any,
        check: Call,
        setup: Call | None,
        signals: Mapping[str, Any] | None,
        inline: Inline | None,
    ) -> None:
        check_type(job_type)
        for name, call in {"check": check, "setup": setup or check}.items():
            if not callable(call):
                raise BadInputError(name, f"must be a function, got {call!r}")
        if not isinstance(signals or {}, Mapping):
            raise BadInputError("signals", f"must map names to payloads, got {signals!r}")
        self._block = block
        self._job_type = job_type
        self._request = request_of(job_type.name, payload, {})
        self._check = check
        self._setup = setup
        self._signals = {check_id(name, "signals"): payload for name, payload in (signals or {}).items()}
        self._inline = inline

    async def run(self) -> None:
        """AssertionError naming the place at which the handler does not stand a crash; other errors have it as a note."""
        for place in await self._run_once(None):
            await self._run_once(place)

    async def _run_once(self, place: str | None) -> list[str]:
        """Run a new job, with a crash at that place; the places that it came to before."""
        crash = "without a crash" if place is None else f"with a crash {place}"
        where = f"{self._job_type.name} {crash}"
        try:
            return await self._run(place)
        except AssertionError as error:
            raise AssertionError(f"{where}: {error}") from error
        except Exception as error:
            error.add_note(where)
            raise

    async def _run(self, place: str | None) -> list[str]:
        if self._setup is not None:
            await self._call(self._setup)
        block = self._block
        job = block.pipe.prepare(self._request)
        block.insert(job)
        process = Process(block.store, job.id, place)
        await self._live(job.id, process)
        ended = await self._see_through(job.id, partial(block.drive, inline=self._inline))
        if ended.status is not JobStatus.DONE:
            why = "" if ended.error is None else f": {ended.error.type}: {ended.error.message}"
            raise AssertionError(f"the job is {ended.status}{why}")
        await self._call(self._check)
        return list(process.places)

    async def _live(self, id: str, process: Process) -> None:
        """Run jobs in that process, until it is dead or the job has ended."""
        block, job_type = self._block, self._job_type
        async with block.alone():
            types = {**block.pipe.types, job_type.name: process.running(job_type)}
            session = block.session(process, types, self._inline)
            await session.start()
            try:
                await self._see_through(id, session.drive, process)
            finally:
                await session.end()

    async def _see_through(
        self, id: str, drive: Callable[[float], Awaitable[None]], process: Process | None = None
    ) -> Job:
        """Run jobs until that one has ended, after all its sleeps and retries, or the process is dead."""
        for _ in range(_MOST_RUNS):
            await drive(0)
            job = self._job(id)
            if job.is_finished or (process is not None and process.is_dead):
                return job
            if not await self._signal(id):
                await drive(self._goes_on_in(id))
        raise AssertionError(f"the job does not end: it is {self._job(id).status} after {_MOST_RUNS:,} runs")

    def _job(self, id: str) -> Job:
        job = self._block.store.get(id)
        if job is None:
            raise JobNotFoundError(id)
        return job

    async def _signal(self, id: str) -> bool:
        """Send the job what it waits for, if that is given."""
        wait = self._block.store.pending_wait(id)
        if wait is None or wait.name not in self._signals:
            return False
        await self._block.signal(id, wait.name, self._signals[wait.name])
        return True

    def _goes_on_in(self, id: str) -> float:
        """Seconds until something comes due that may let it go on."""
        store, now = self._block.store, self._block.clock.now()
        at = store.goes_on_at(id)
        if timeout_at(at) is None:
            at = store.next_at()  # another job may send the signal
            if timeout_at(at) is None:
                wait = store.pending_wait(id)
                name = None if wait is None else wait.name
                raise AssertionError(
                    f"the job waits for the signal {name!r}: give it as signals={{{name!r}: …}}"
                )
        return at - now if at > now else _LOOK_AGAIN

    async def _call(self, call: Call) -> None:
        result = call() if self._inline is None else self._inline.call(call)
        if isawaitable(result):
            await result
