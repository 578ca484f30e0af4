"""Jobpipe: the job types of a program, and everything one can do with jobs from Python.

It runs nothing by itself: `jobpipe serve`, `jobpipe worker` and `Jobpipe.running()` do. The store is opened
when it is first needed. Methods are for asyncio; those that end in `_sync` are for any thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, Unpack

from msgspec import UNSET

from rate_envelope_queue import Stamp

from .errors import BadInputError
from .gateway.async_store import AsyncStore, unwrap
from .gateway.feed import Feed
from .gateway.jobs import Jobs
from .gateway.known_types import KnownTypes
from .gateway.lazy_store import Gateway, LazyStore, Substitute
from .gateway.limits import LimitInfo, QueueLimits, look_at_limits
from .gateway.signals import Signals
from .gateway.sync import is_sync, sync
from .gateway.timetable import Timetable
from .jobtypes import builtin
from .jobtypes.current import CurrentJob
from .jobtypes.jobtype import JobType
from .jobtypes.prepare import prepare, prepare_many, renew
from .jobtypes.registry import Registry
from .model.admission import Bounds
from .model.job import Job
from .model.newjob import Answer, NewJob, Receipt
from .model.request import JobOptions, JobRequest, read_many, request_of
from .settings import Chosen, Settings, own_queue_size
from .stores.base import Store

if TYPE_CHECKING:
    from .gateway.tracing import Tracing
    from .testing.kit.tester import JobTester
    from .web.app import WebApp
    from .worker.service import Service


class Jobpipe(Registry, Jobs):
    """The job types of a program, and their store.

    The store is taken from JOBPIPE_STORE, or else from the argument; by default it is a SQLite file in the working
    folder. Other settings are given by name: `Jobpipe("memory://", workers=8)`. `queue_size` limits the number of
    ready jobs in a queue; without it, only callers over HTTP are limited. `stamps` are middleware around all handlers.
    """

    def __init__(
        self, store: str | Store | None = None, *, stamps: Iterable[Stamp] = (), **settings: Any
    ) -> None:
        if not (store is None or isinstance(store, str) or hasattr(store, "claim")):
            raise BadInputError(
                "store", f"must be a URL such as sqlite:///jobs.db, or a Store, got {store!r}"
            )
        given = None if store is None or isinstance(store, str) else store
        url = store if isinstance(store, str) else getattr(store, "url", None)
        self._defaults = settings if url is None else {**settings, "store": url}
        self._flags: Mapping[str, Any] = {}
        signals = Signals()
        lazy_store = LazyStore(given, lambda: self.settings, lambda: self.capacity, signals.notify_work)
        Jobs.__init__(self, lazy_store, signals, builtin.NEEDS)
        Registry.__init__(self, Timetable(lazy_store, self.prepare, lambda: self.capacity, signals), stamps)
        self._known = KnownTypes(lazy_store, lambda: self.types)
        self.queue = QueueLimits()  # as in `pipe.queue("mail", rate="50/s")`
        self.address: str | None = None
        """`module:attribute` by which it was loaded; None in a program of one's own."""
        self.service: Service | None = None
        """What runs jobs in this process, or has run them last."""
        builtin.register(self.job, lambda: self.settings.http_targets)

    # Setting up

    def configure(self, **flags: Any) -> None:
        """Set settings that override the environment, as command-line flags do; call it before the first use."""
        if "settings" in self.__dict__:
            raise RuntimeError("the pipe is already in use: configure it before its first use")
        self._flags = {**self._flags, **flags}

    @cached_property
    def settings(self) -> Settings:
        """The settings in effect, read when they are first needed."""
        settings = Settings.load(self._flags, defaults=self._defaults)
        if settings.builtins:
            builtin.register_trials(self.job, self._types)
        return settings

    @property
    def types(self) -> dict[str, JobType[..., Any]]:
        """The job types that this process knows, by name; the settings say which of the built-in ones are among them."""
        _ = self.settings
        return self._types

    @cached_property
    def capacity(self) -> int:
        """How many jobs may be ready in a queue before this program cannot enqueue another; 0: no limit."""
        return own_queue_size(self._flags, self._defaults)

    @cached_property
    def tracing(self) -> Tracing | None:
        """Makes the spans of its jobs; None where tracing is off. SettingsError without the extra `opentelemetry`."""
        if not self.settings.tracing:
            return None
        from .gateway.tracing import Tracing  # Why here: it needs OpenTelemetry

        return Tracing()

    def close(self) -> None:
        """Close the store and end the threads; the next use opens them again."""
        self._lazy_store.close()

    async def __aenter__(self) -> Self:
        _ = self.store
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    @asynccontextmanager
    async def running(self, workers: int | None = None, **chosen: Unpack[Chosen]) -> AsyncIterator[Self]:
        """Run jobs in this process, all or chosen ones, for as long as the block lasts; then stop gracefully."""
        service = self.make_service(workers=workers, **chosen)
        await service.start()
        try:
            yield self
        finally:
            await service.stop()

    def make_service(self, **chosen: Any) -> Service:
        """What runs its jobs in this process: to be started and stopped, one at a time; settings may be given."""
        from .worker.service import Service  # Why here: a process that only enqueues needs none of it

        given = {name: value for name, value in chosen.items() if value is not None}
        return Service(
            self._lazy_store,
            Settings.load(self._flags, defaults=self._defaults, arguments=given) if given else self.settings,
            self.types,
            self.schedules,
            self.signals,
            self.throughput,
            self.failure_hooks,
            register=self._register,
            queue_limits=self.queue.limits,
            tracing=self.tracing,
            address=self.address,
        )

    def _register(self, service: Service | None) -> None:
        """The service that is about to start; None if it could not."""
        other = self.service
        if service is not None and other is not None and other is not service and not other.is_ended:
            raise RuntimeError(
                "this pipe already runs jobs in this process: use one `pipe.running()` at a time, on one event loop"
            )
        self.service = service

    def testing(self, *, start: datetime | None = None, workers: int = 1) -> JobTester:
        """For tests: a memory store and a manual clock in place of the real ones, for `with` and `async with`.

        Nothing runs by itself: `drain` and `advance` run jobs, as many at once as there are `workers`. The clock begins
        at `start`, or else now.
        """
        from .testing.kit.tester import JobTester  # Why here: only tests need it

        return JobTester(self, self._lazy_store, self._known, start=start, workers=workers)

    def _stand_in(self, type: str) -> CurrentJob | None:
        """What `current_job()` is in a handler that a test calls directly; None outside of `testing()`."""
        substitute = self._lazy_store.substitute
        return None if substitute is None else substitute.current(type)

    def attach(self, store: Store, settings: Settings) -> Gateway:
        """In a child process of a worker: have its settings, and use its store."""
        self.__dict__["settings"] = settings
        async_store = AsyncStore(store, self.capacity, self.signals.notify_work)
        gateway = Gateway(store, async_store, Feed(store))
        self._lazy_store.put_in_place(Substitute(gateway, lambda _: None))
        return gateway

    def asgi(self, *, allowed_hosts: Collection[str] = (), insecure: bool = False) -> WebApp:
        """The API as an ASGI application: to be mounted in another, or served with workers by its own lifespan.

        It also accepts the host names in `allowed_hosts`. Without a token only this machine may call, unless `insecure`.
        """
        from .web.app import make_app  # Why here: a process that only enqueues needs none of it

        return make_app(self, lifespan=True, allowed_hosts=allowed_hosts, only_local=not insecure)

    # Enqueue

    async def enqueue(
        self,
        type: str | JobRequest,
        payload: Any = None,
        *,
        connection: Any = None,
        **options: Unpack[JobOptions],
    ) -> Receipt:
        """Enqueue a job: a type and a payload, or what `JobType.request` returns.

        Options: `id`, `queue`, `max_retries`, `priority`, `delay` or `run_at`, `deadline`, `expires_in` or `expires_at`,
        `unique` with `on_duplicate` and `max_wait`, `tags`.

        Enqueuing the same id with the same content again returns the same job; with other content it is a
        JobConflictError. With a `connection` (sqlite3, psycopg) the job exists once the caller's transaction commits.
        """
        return (await self._insert([self.prepare(request_of(type, payload, options))], connection))[0]

    async def enqueue_many(self, requests: Iterable[JobRequest], *, connection: Any = None) -> list[Receipt]:
        """Enqueue many jobs: all of them, or none; with a `connection`, in the caller's own transaction."""
        return await self._insert(self.prepare_many(read_many(requests)), connection)

    def prepare(self, request: JobRequest) -> NewJob:
        """The request with its defaults filled in and its payload checked; BadInputError naming the field."""
        return prepare(request, self.types.get(request.type), self.settings.max_payload)

    def prepare_many(self, requests: Iterable[JobRequest], where: str = "jobs") -> list[NewJob]:
        """The requests of one batch; BadInputError naming the place, JobConflictError for an id that is there twice."""
        return prepare_many(requests, self.prepare, where)

    async def insert(self, batch: list[NewJob], bounds: Bounds | None = None) -> Answer:
        """Insert prepared jobs, and let workers of this process know; without bounds, those of the program hold."""
        if self.tracing is None:
            return await self._known.warn(batch, self.async_store.insert(batch, bounds))
        return await self.tracing.enqueue(
            batch, lambda traced: self._known.warn(traced, self.async_store.insert(traced, bounds))
        )

    async def _insert(self, batch: list[NewJob], connection: Any) -> list[Receipt]:
        if not batch:
            return []
        if connection is None:
            return unwrap(await self.insert(batch))

        async def insert_in(jobs: list[NewJob]) -> Answer:
            answer = self.store.insert_in(connection, jobs, capacity=self.capacity)
            if isinstance(answer, Awaitable) and is_sync():
                raise BadInputError("connection", "is asynchronous: use `await enqueue(…)` with it")
            return await self._known.warn(jobs, answer)

        return unwrap(
            await (insert_in(batch) if self.tracing is None else self.tracing.enqueue(batch, insert_in))
        )

    # What takes knowledge of types

    async def limits(self) -> list[LimitInfo]:
        """The limits of queues and of the types that workers know, their use, and the types that are cooling."""
        own = [each.limit for each in self.types.values() if each.limit is not None]
        return await self.async_store.call(look_at_limits, self.store, [*own, *self.queue.limits])

    async def retry(self, id: str, *, payload: Any = UNSET, from_start: bool = False) -> Job:
        """Run a failed or cancelled job again, with all its retries; WrongStatusError for others, or DuplicateError.

        Finished steps are not run again, unless `from_start`. A new `payload` is checked as in `enqueue`, replaces that
        of the job, and runs from the start.
        """
        renewed = None
        if payload is not UNSET:
            job_type = self.types.get((await self.get(id)).type)
            renewed = renew(payload, job_type, self.settings.max_payload)
        return await self._retry(id, renewed, from_start=from_start or renewed is not None)

    # The same from any thread

    enqueue_sync = sync(enqueue)
    enqueue_many_sync = sync(enqueue_many)
    insert_sync = sync(insert)
    limits_sync = sync(limits)
    retry_sync = sync(retry)
