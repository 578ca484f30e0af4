"""CrashTest: runs a handler again and again, with the process dying at another place each time.

A process that dies is a session whose store takes no more from it: what it did before stays, what it would do afterwards
is never known. Its lease runs out, and another session rescues the job and runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from enum import StrEnum
from inspect import isawaitable
from typing import Any

from ...errors import BadInputError
from ...jobtypes.jobtype import JobType
from ...model.job import Job, JobStatus
from ...model.lease import Settlement
from ...model.request import request_of
from .block import Block
from .inline import Inline
from .store import BlockStore

_MOST_RUNS = 200
"""More than any job has, with its retries."""

Call = Callable[[], object]
"""A plain function or a coroutine function of the test."""


class Place(StrEnum):
    """Where a process dies."""

    BEFORE_HANDLER = "before the handler"
    AFTER_HANDLER = "after the handler"
    BEFORE_SETTLE = "before the settle"
    AFTER_SETTLE = "after the settle"


class CrashTest:
    """One handler with one payload, in a block."""

    def __init__(
        self,
        block: Block,
        job_type: JobType[..., Any],
        payload: Any,
        check: Call,
        setup: Call | None,
        inline: Inline | None,
    ) -> None:
        check_type(job_type)
        for name, call in {"check": check, "setup": setup or check}.items():
            if not callable(call):
                raise BadInputError(name, f"must be a function, got {call!r}")
        self._block = block
        self._job_type = job_type
        self._request = request_of(job_type.name, payload, {})
        self._check = check
        self._setup = setup
        self._inline = inline

    async def run(self) -> None:
        """AssertionError naming the place at which the handler does not stand a crash; other errors have it as a note."""
        for place in (None, *Place):
            where = f"{self._job_type.name} " + (
                "without a crash" if place is None else f"with a crash {place}"
            )
            try:
                await self._run(place)
            except AssertionError as error:
                raise AssertionError(f"{where}: {error}") from error
            except Exception as error:
                error.add_note(where)
                raise

    async def _run(self, place: Place | None) -> None:
        if self._setup is not None:
            await self._call(self._setup)
        block = self._block
        job = block.pipe.prepare(self._request)
        block.insert(job)
        if place is None:
            await block.drive(0, self._inline)
        else:
            await self._die(job.id, place)
            await block.drive(block.pipe.settings.lease, self._inline)
        ended = await self._finish(job.id)
        if ended.status is not JobStatus.DONE:
            why = "" if ended.error is None else f": {ended.error.type}: {ended.error.message}"
            raise AssertionError(f"the job is {ended.status}{why}")
        await self._call(self._check)

    async def _die(self, id: str, place: Place) -> None:
        """Run the job in a process that dies there."""
        store = _Mortal(self._block.store, place)
        types = {self._job_type.name: _dying(self._job_type, store, place)}
        async with self._block.alone():
            session = self._block.session(store, types, self._inline)
            await session.start()
            try:
                await session.run_one(id)
            finally:
                await session.end()

    async def _finish(self, id: str) -> Job:
        """The job when it has ended, after all its retries."""
        job = await self._block.pipe.get(id)
        for _ in range(_MOST_RUNS):
            if job.is_finished:
                return job
            seconds = job.run_at.timestamp() - self._block.clock.now()
            await self._block.drive(max(seconds, 1.0), self._inline)
            job = await self._block.pipe.get(id)
        raise AssertionError(f"the job does not end: it is {job.status} after {_MOST_RUNS} runs")

    async def _call(self, call: Call) -> None:
        result = call() if self._inline is None else self._inline.submit(call).result()
        if isawaitable(result):
            await result


def check_type(job_type: object) -> None:
    """BadInputError unless it is a job type."""
    if not isinstance(job_type, JobType):
        raise BadInputError("job_type", f"must be a job type, got {job_type!r}")


class _Mortal:
    """The store of a process that dies: from then on nothing reaches it, and it seems that all is well."""

    def __init__(self, store: BlockStore, place: Place) -> None:
        self._store = store
        self._place = place
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        """Record the outcomes, unless it is dead."""
        self.is_dead |= self._place is Place.BEFORE_SETTLE
        if not self.is_dead:
            self._store.settle(settlements)
        self.is_dead |= self._place is Place.AFTER_SETTLE
        return [True] * len(settlements)


def _dying(job_type: JobType[..., Any], store: _Mortal, place: Place) -> JobType[..., Any]:
    """The same type, with which the process dies before or after the handler."""
    dying, run = copy(job_type), job_type.run

    def call(argument: Any) -> Any:
        if place is Place.BEFORE_HANDLER:
            store.is_dead = True
            return nothing() if job_type.is_async else None
        try:
            result = run(argument)
        finally:
            store.is_dead |= place is Place.AFTER_HANDLER and not job_type.is_async
        return wait(result) if isawaitable(result) else result

    async def nothing() -> None: ...

    async def wait(result: Any) -> Any:
        try:
            return await result
        finally:
            store.is_dead |= place is Place.AFTER_HANDLER

    dying.run = call
    return dying
