"""JobTester: what `pipe.testing()` returns: asserts what was enqueued, and runs jobs when the test says so."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Any, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

from msgspec import UNSET, UnsetType

from ...app import Jobpipe
from ...errors import BadInputError
from ...gateway.jobs import get_whole
from ...gateway.known_types import KnownTypes
from ...gateway.lazy_store import LazyStore
from ...gateway.sync import sync
from ...jobtypes.jobtype import JobType
from ...model.durable import SignalReceipt
from ...model.job import Job, instant
from ...model.newjob import Receipt
from ...model.request import JobOptions
from .block import Block
from .clock import seconds_by
from .crash import Call, CrashTest
from .expected import Expected
from .inline import Inline
from .one_job import check_type, run_job

P = ParamSpec("P")
R = TypeVar("R")


class JobTester:
    """The jobs that a test enqueues, by `with` or `async with`; used again, it begins anew."""

    def __init__(
        self,
        pipe: Jobpipe,
        lazy_store: LazyStore,
        known: KnownTypes,
        *,
        start: datetime | None = None,
        workers: int = 1,
    ) -> None:
        if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= 1000:
            raise BadInputError("workers", f"must be a whole number from 1 to 1000, got {workers!r}")
        self._make: Callable[[], Block] = lambda: Block(pipe, lazy_store, known, start=start, workers=workers)
        self._last: Block | None = None

    def __enter__(self) -> Self:
        if self._last is not None and self._last.is_open:
            raise RuntimeError("this block of pipe.testing() is entered already: call pipe.testing() again")
        self._last = self._make()
        return self

    def __exit__(self, *_: object) -> None:
        self._block.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        await self._block.close_async()

    @property
    def _block(self) -> Block:
        if self._last is None:
            raise RuntimeError("enter the block before: `with pipe.testing() as jobs:`")
        return self._last

    # What was enqueued

    @property
    def now(self) -> datetime:
        """What time it is by the manual clock."""
        return instant(self._block.clock.now())

    @property
    def all(self) -> list[Job]:
        """All jobs that were enqueued within the block, in order, as they are now."""
        return [job for job, _ in self._block.store.jobs()]

    def of(self, type: str | JobType[..., Any]) -> list[Job]:
        """Those of a type."""
        name = _name(type)
        return [job for job in self.all if job.type == name]

    def assert_enqueued(
        self,
        type: str | JobType[..., Any],
        *,
        payload: Any | UnsetType = UNSET,
        count: int | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """The first job of the type that fits; AssertionError that lists what was enqueued if there is none.

        `payload` may be a part of the job's: an object that has more fields fits, too. Options are those of `enqueue`; a
        job may have more `tags`. With `count`, exactly that number of jobs must fit.
        """
        expected = Expected(_name(type), payload, options)
        jobs = self._block.store.jobs()
        found = [job for job, new in jobs if expected.fits((job, new))]
        if not found or (count is not None and len(found) != count):
            wanted = (
                f"{expected} was not enqueued"
                if count is None
                else f"{expected} was enqueued {len(found)} times, not {count}"
            )
            raise AssertionError(f"{wanted}\n{expected.listing(jobs)}")
        return found[0]

    def assert_not_enqueued(
        self,
        type: str | JobType[..., Any] | None = None,
        *,
        payload: Any | UnsetType = UNSET,
        **options: Unpack[JobOptions],
    ) -> None:
        """AssertionError if such a job, or without arguments any job, was enqueued; `assert_enqueued` says what fits."""
        expected = Expected(None if type is None else _name(type), payload, options)
        found = [asked for asked in self._block.store.jobs() if expected.fits(asked)]
        if found:
            raise AssertionError(f"{expected} was enqueued\n{expected.listing(found)}")

    # Running jobs

    async def drain(self) -> list[Job]:
        """Run all jobs that are due now, and those that they enqueue; the clock stands still.

        Returns the jobs that have run since the last drain, as they are at its end.
        """
        await self._block.drive(0)
        return self._take_ran()

    def drain_sync(self) -> list[Job]:
        """`drain` from any thread; handlers run in it."""
        block = self._block
        block.run_inline(lambda inline: block.drive(0, inline))
        return self._take_ran()

    async def advance(self, by: float | timedelta | str) -> None:
        """Move the clock on by seconds, a timedelta or a text such as "1 hour"; what comes due meanwhile runs at its time."""
        await self._block.drive(seconds_by(by))

    def advance_sync(self, by: float | timedelta | str) -> None:
        """`advance` from any thread; handlers run in it."""
        block, seconds = self._block, seconds_by(by)
        block.run_inline(lambda inline: block.drive(seconds, inline))

    def _take_ran(self) -> list[Job]:
        block = self._block
        ran, block.ran = block.ran, {}
        return [job for id in ran if (job := get_whole(block.store, id)) is not None]

    @overload
    async def run(
        self, job_type: JobType[P, Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    async def run(self, job_type: JobType[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
    async def run(self, job_type: JobType[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run one job of the type now, with these arguments: its result is returned, its error raised.

        It passes checks and stamps, and `current_job()` is a real one; afterwards there is no trace of it. Where it sleeps,
        or waits for a signal with a timeout, the clock moves to the end of that; without a timeout: RuntimeError.
        """
        return await self._run(job_type, args, kwargs, None)

    @overload
    def run_sync(
        self, job_type: JobType[P, Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    def run_sync(self, job_type: JobType[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
    def run_sync(self, job_type: JobType[..., Any], *args: Any, **kwargs: Any) -> Any:
        """`run` from any thread; the handler runs in it."""
        return self._block.run_inline(lambda inline: self._run(job_type, args, kwargs, inline))

    async def _run(self, job_type: JobType[..., Any], args: Any, kwargs: Any, inline: Inline | None) -> Any:
        check_type(job_type)
        job = self._block.pipe.prepare(job_type.request(*args, **kwargs))
        return await run_job(self._block, job_type, job, inline)

    async def signal(self, job: Job | Receipt | str, name: str, payload: Any = None) -> SignalReceipt:
        """Send a signal to a job, given by itself or by its id, as `pipe.signal` does; `drain` lets it go on."""
        return await self._block.signal(job.id if isinstance(job, Job | Receipt) else job, name, payload)

    signal_sync = sync(signal)

    async def crash_everywhere(
        self,
        job_type: JobType[..., Any],
        payload: Any = None,
        *,
        check: Call,
        setup: Call | None = None,
        signals: Mapping[str, Any] | None = None,
    ) -> None:
        """Show that a handler is idempotent: run it once, and then as a new job with a crash at each place.

        The process dies before and after the handler, the settle, and each step, sleep and wait that is recorded, and
        signal that is received; the rescue runs the job again. When it waits for one of the `signals`, it is sent that, by
        its name; sleeps and timeouts move the clock. `setup` is called before each job, `check` after each, both plain or
        coroutine functions. Each job must end as done. The AssertionError names the place.
        """
        await CrashTest(self._block, job_type, payload, check, setup, signals, None).run()

    def crash_everywhere_sync(
        self,
        job_type: JobType[..., Any],
        payload: Any = None,
        *,
        check: Call,
        setup: Call | None = None,
        signals: Mapping[str, Any] | None = None,
    ) -> None:
        """`crash_everywhere` from any thread; handlers run in it."""
        block = self._block
        block.run_inline(
            lambda inline: CrashTest(block, job_type, payload, check, setup, signals, inline).run()
        )


class JobpipeTesting(Protocol):
    """The pytest fixture `jobpipe_testing`: begins a block of `pipe.testing()` that lasts until the end of the test."""

    def __call__(self, pipe: Jobpipe, *, start: datetime | None = None, workers: int = 1) -> JobTester:
        """The jobs of the block."""


def _name(type: str | JobType[..., Any]) -> str:
    name = type.name if isinstance(type, JobType) else type
    if not isinstance(name, str):
        raise BadInputError("type", f"must be the name of a job type, or a job type, got {type!r}")
    return name
