"""Target: what the commands about jobs speak to, in plain calls: a store, or a running service behind a URL."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from operator import attrgetter
from pathlib import Path
from time import monotonic
from typing import Any, Generic, ParamSpec, Self, TypeVar

from msgspec.structs import replace

from ..app import Jobpipe
from ..client import verbs
from ..client.call import Verb
from ..errors import BadInputError, ForbiddenError, JobNotFoundError, SettingsError, UnauthorizedError
from ..gateway.explain import Explanation, Reason
from ..gateway.jobs import MOST_AT_ONCE, get_whole
from ..gateway.timetable import ScheduleInfo
from ..gateway.views import QueueInfo, worker_of
from ..model.job import FINISHED, Job, Move, sources
from ..model.text import counted
from ..process.loading import load_pipe
from ..settings import Settings

_FILE = "sqlite:///"
_LOOK_AGAIN = 2.0
"""Seconds after which one who waits is told why the job is not running."""
MOST_COUNTED = 10_000
_LOG = logging.getLogger("jobpipe.types")
_ABLE = {"cancel": sources(Move.CANCEL), "retry": sources(Move.REVIVE), "delete": tuple(sorted(FINISHED))}
"""In which statuses a job can be managed so."""

P = ParamSpec("P")
T = TypeVar("T")
Tell = Callable[[Explanation], object]


def open_target(flags: Mapping[str, Any], *, may_make: bool = False) -> Target:
    """What the flags name: a service if there is a URL, else a store, which must be there unless it may be made."""
    if flags.get("url") is not None:
        if flags.get("store") is not None:
            raise SettingsError(
                "--store", "and --url exclude each other: the service at the URL has its own store"
            )
        return ServiceTarget(flags["url"], flags.get("token"))
    settings = {name: flags[name] for name in flags if name == "queue_size"}
    return StoreTarget(flags.get("store"), flags.get("app"), may_make=may_make, **settings)


def check_url(name: str, url: str, *, may_make: bool) -> None:
    """SettingsError for a store that nobody else could see, or that is not there and must be."""
    if url.startswith("memory:"):
        raise SettingsError(
            name, "must be a store that other processes can use: memory:// exists in one process only"
        )
    if not may_make and url.startswith(_FILE) and not Path(url.removeprefix(_FILE)).exists():
        raise SettingsError(
            name,
            f"names a store that does not exist: {url!r}; run this in the folder of the service, or pass --store or --url",
        )


class _Asked(Generic[P, T]):
    """A method of a target: what the pipe, or the client, answers to the call of that name."""

    def __init__(self, name: str, verb: Callable[P, Verb[T]]) -> None:
        """`verb` is that call of a client: its arguments and its result are those of the pipe's, too."""
        self._name = name

    def __get__(self, target: Target, _: object = None) -> Callable[P, T]:
        return partial(target._ask, self._name)


class Target(ABC):
    """Jobs, wherever they are; within `with`, and from one thread."""

    def jobs(self, *, limit: int, **filters: str | None) -> list[Job]:
        """The newest jobs, as many as wanted, without payload and result."""
        if limit < 1:
            raise BadInputError("limit", f"must be a whole number, 1 or more, got {limit}")
        found: list[Job] = []
        cursor = None
        while True:
            page = self.page(limit=min(limit - len(found), MOST_AT_ONCE), cursor=cursor, **filters)
            found += page.jobs
            cursor = page.next_cursor
            if cursor is None or len(found) >= limit:
                return found

    def count(self, verb: str, **filters: str | None) -> int:
        """How many jobs that match could be cancelled, retried or deleted; MOST_COUNTED + 1 stands for all beyond."""
        able = [str(status) for status in _ABLE[verb]]
        wanted = filters.pop("status", None)
        if wanted is not None and wanted not in able:
            self.page(
                limit=1, cursor=None, status=wanted, **filters
            )  # Why: what is no status at all is refused there
            return 0
        count = 0
        for status in able if wanted is None else [wanted]:
            count += len(self.jobs(limit=MOST_COUNTED + 1 - count, status=status, **filters))
            if count > MOST_COUNTED:
                break
        return count

    def wait_all(
        self, ids: Sequence[str], timeout: float | None, tell: Tell, reach: Callable[[int], object]
    ) -> Counter[str]:
        """How many jobs came to which status, or are `unfinished` when the time is over; `reach` hears how far it is."""
        until = monotonic() + (inf if timeout is None else timeout)
        found: Counter[str] = Counter()
        for number, id in enumerate(ids, 1):
            job = self.job(id)
            if not job.is_finished and (remaining := until - monotonic()) > 0:
                job = self.wait(id, None if timeout is None else remaining, tell)
            found[str(job.status) if job.is_finished else "unfinished"] += 1
            reach(number)
        return found

    def wait(self, id: str, timeout: float | None, tell: Tell) -> Job:
        """The job when it is finished, or the time is over; `tell` hears why it is not running, when that changes."""
        until = monotonic() + (inf if timeout is None else timeout)
        told = None
        while True:
            remaining = max(until - monotonic(), 0.0)
            job = self.job_within(id, min(remaining, _LOOK_AGAIN))
            if job.is_finished or remaining <= _LOOK_AGAIN:
                return job
            explanation = self.explain(id)
            if explanation.reason not in (told, Reason.FINISHED):
                told = explanation.reason
                tell(explanation)

    enqueue = _Asked("enqueue", verbs.enqueue)
    enqueue_many = _Asked("enqueue_many", verbs.enqueue_many)
    page = _Asked("page", verbs.page)
    job = _Asked("get", verbs.get)
    job_within = _Asked("wait", verbs.wait)
    steps = _Asked("steps", verbs.steps)
    logs = _Asked("logs", verbs.logs)
    explain = _Asked("explain", verbs.explain)
    signal = _Asked("signal", verbs.signal)
    delete = _Asked("delete", verbs.delete)
    stats = _Asked("stats", verbs.stats)
    failures = _Asked("failures", verbs.failures)
    queues = _Asked("queues", verbs.queues)
    workers = _Asked("workers", verbs.workers)
    limits = _Asked("limits", verbs.limits)
    schedules = _Asked("schedules.all", verbs.all_schedules)
    schedule = _Asked("schedules.get", verbs.get_schedule)
    put_schedule = _Asked("schedules.put", verbs.put_schedule)
    run_schedule = _Asked("schedules.run", verbs.run_schedule)
    drop_schedule = _Asked("schedules.drop", verbs.drop_schedule)

    def hold_schedule(self, verb: str, name: str) -> ScheduleInfo:
        """Pause or resume a schedule."""
        found: ScheduleInfo = self._ask(f"schedules.{verb}", name)
        return found

    def manage(self, verb: str, id: str, **options: Any) -> Job:
        """Cancel or retry a job."""
        found: Job = self._ask(verb, id, **options)
        return found

    def manage_many(self, verb: str, *, all: bool, **filters: str | None) -> int:
        """Cancel, retry or delete all jobs that match; returns the number of jobs."""
        found: int = self._ask(f"{verb}_many", all=all, **filters)
        return found

    def hold(self, verb: str, queue: str) -> QueueInfo:
        """Pause or resume a queue."""
        found: QueueInfo = self._ask(verb, queue)
        return found

    @abstractmethod
    def _ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """What the method of this name answers: Jobpipe and Client have the same."""

    @abstractmethod
    def check(self) -> tuple[str, list[str]]:
        """The URL, and how well what is there keeps the promises."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...


class StoreTarget(Target):
    """The jobs of a store, as the pipe of a program sees them, or one with the built-in types."""

    def __init__(
        self, store: str | None, app: str | None = None, *, may_make: bool = False, **settings: Any
    ) -> None:
        self._pipe = _load(app)
        self._pipe.configure(store=store, **settings)
        url = self._pipe.settings.store
        check_url("JOBPIPE_STORE", url, may_make=may_make)
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        self._loop.__enter__()
        _LOG.addFilter(_is_said)
        return self

    def __exit__(self, *_: object) -> None:
        _LOG.removeFilter(_is_said)
        self._pipe.close()
        self._loop.__exit__(None, None, None)

    def _ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        if verb == "get":  # Why not by the loop: one who waits for a batch asks for many
            return self._job(*args)
        found = self._loop.run(attrgetter(verb)(self._pipe)(*args, **kwargs))
        if verb == "stats":
            return replace(found, per_second={})  # Why none: this process has just begun to count
        return [worker_of(each) for each in found] if verb == "workers" else found

    def _job(self, id: str) -> Job:
        job = get_whole(self._pipe.store, id)
        if job is None:
            raise JobNotFoundError(id)
        return job

    def check(self) -> tuple[str, list[str]]:
        store = self._pipe.store
        return store.url, store.check()


def _is_said(_: logging.LogRecord) -> bool:
    """Why nothing: the command itself says what the receipts warn of."""
    return False


def _load(app: str | None) -> Jobpipe:
    try:
        return load_pipe(app)
    except SettingsError as error:
        raise SettingsError("--app", str(error).removeprefix(error.name).strip()) from None


class ServiceTarget(Target):
    """The jobs of a running service; a call fails after `patience` seconds, beyond those that were asked for."""

    def __init__(self, url: str, token: str | None, patience: float = 30.0) -> None:
        from ..client.client import Client  # Why here: only then it is needed

        try:
            # Why no retries: the user waits, and is told what is wrong.
            self._client = Client(url, token or Settings.load().token, patience=patience, retries=False)
        except SettingsError as error:
            if error.name != "url":
                raise
            raise SettingsError("--url", str(error).removeprefix(error.name).strip()) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return attrgetter(f"{verb}_sync")(self._client)(*args, **kwargs)
        except UnauthorizedError as error:
            text = f"{error}; pass the service's token with --token or JOBPIPE_TOKEN"
            raise UnauthorizedError(text) from None
        except ForbiddenError as error:
            if error.kind != "read-only-token":
                raise
            text = f"{error}; pass the token that allows writing with --token or JOBPIPE_TOKEN"
            raise ForbiddenError(text, error.kind) from None

    past = _Asked("history", verbs.history)

    def check(self) -> tuple[str, list[str]]:
        self._ask("check")
        stats = self.stats()
        queued = counted(stats.queued, "job", "is queued", "are queued")
        others = f"{stats.scheduled:,} scheduled, {stats.waiting:,} waiting, {stats.running:,} running"
        return self._client.url, [
            "ready: the service has started and its store answers",
            f"{queued}, {others}",
        ]
