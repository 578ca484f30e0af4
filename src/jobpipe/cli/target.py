"""Target: what the commands about jobs speak to, in plain calls: a store, or a running service behind a URL."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Self

from ..app import Jobpipe
from ..errors import BadInputError, JobNotFoundError, JobpipeError, SettingsError
from ..gateway.explain import Explanation, Reason
from ..gateway.jobs import MOST_AT_ONCE
from ..gateway.timetable import ScheduleInfo, ScheduleRequest
from ..gateway.views import JobPage, QueueInfo
from ..model.job import Job, Move, sources
from ..model.newjob import Receipt
from ..model.request import JobRequest, convert

_FILE = "sqlite:///"
_LOOK_AGAIN = 2.0
"""Seconds after which one who waits is told why the job is not running."""
MOST_COUNTED = 10_000
_MOVES = {"cancel": Move.CANCEL, "retry": Move.REVIVE}

Tell = Callable[[Explanation], object]


class RefusedError(JobpipeError):
    """A service said no, or is not there: nothing was changed.

    `slug` tells the kind of problem; `status` is that of HTTP, 0 where there was no answer.
    """

    def __init__(self, text: str, status: int, slug: str) -> None:
        super().__init__(text)
        self.status = status
        self.slug = slug


class Intake(NamedTuple):
    """A batch that is in: its ids, and how many of them were not there before."""

    ids: list[str]
    new: int


def open_target(flags: Mapping[str, Any], *, may_make: bool = False) -> Target:
    """What the flags name: a service if there is a URL, else a store, which must be there unless it may be made."""
    if flags.get("url") is not None:
        if flags.get("store") is not None:
            raise SettingsError(
                "--store", "and --url exclude each other: the service at the URL has its own store"
            )
        from .remote import ServiceTarget  # Why here: only then it is needed

        return ServiceTarget(flags["url"], flags.get("token"))
    return StoreTarget(
        flags.get("store"), may_make=may_make, **{name: flags[name] for name in flags if name == "queue_size"}
    )


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


class Target(ABC):
    """Jobs, wherever they are; within `with`, and from one thread."""

    def jobs(self, *, limit: int, **filters: str | None) -> list[Job]:
        """The newest jobs, as many as wanted, without payload and result."""
        if limit < 1:
            raise BadInputError("limit", f"must be a whole number, 1 or more, got {limit}")
        found: list[Job] = []
        cursor = None
        while True:
            page = self.page(min(limit - len(found), MOST_AT_ONCE), cursor, **filters)
            found += page.jobs
            cursor = page.next_cursor
            if cursor is None or len(found) >= limit:
                return found

    def count(self, verb: str, **filters: str | None) -> int:
        """How many jobs that match could be cancelled or retried; MOST_COUNTED + 1 stands for all beyond."""
        able = [str(status) for status in sources(_MOVES[verb])]
        wanted = filters.pop("status", None)
        if wanted is not None and wanted not in able:
            self.page(1, None, status=wanted, **filters)  # Why: what is no status at all is refused there
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

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    @abstractmethod
    def enqueue(self, type: str, payload: Any, **options: Any) -> Receipt:
        """Enqueue a job."""

    @abstractmethod
    def enqueue_many(self, requests: Sequence[JobRequest]) -> Intake:
        """Enqueue jobs, all or none; BadInputError names the field as `jobs[7].payload`."""

    @abstractmethod
    def page(self, limit: int, cursor: str | None, **filters: str | None) -> JobPage:
        """A page of jobs, newest first."""

    @abstractmethod
    def job(self, id: str) -> Job:
        """The whole job."""

    @abstractmethod
    def job_within(self, id: str, seconds: float) -> Job:
        """The job when it is finished, or as it is after the timeout."""

    @abstractmethod
    def explain(self, id: str) -> Explanation:
        """Why it is not running."""

    @abstractmethod
    def schedules(self) -> list[ScheduleInfo]:
        """All schedules, by name."""

    @abstractmethod
    def schedule(self, name: str) -> ScheduleInfo:
        """One schedule."""

    @abstractmethod
    def put_schedule(self, name: str, fields: Mapping[str, Any]) -> ScheduleInfo:
        """Make or change a schedule."""

    @abstractmethod
    def run_schedule(self, name: str) -> Receipt:
        """Enqueue its job now."""

    @abstractmethod
    def hold_schedule(self, verb: str, name: str) -> ScheduleInfo:
        """Pause or resume a schedule."""

    @abstractmethod
    def drop_schedule(self, name: str) -> None:
        """Forget a schedule."""

    @abstractmethod
    def manage(self, verb: str, id: str) -> Job:
        """Cancel or retry a job."""

    @abstractmethod
    def delete(self, id: str) -> str:
        """Delete a finished job; its id."""

    @abstractmethod
    def manage_many(self, verb: str, **filters: str | None) -> int:
        """Cancel or retry all jobs that match; returns the number of jobs."""

    @abstractmethod
    def hold(self, verb: str, queue: str) -> QueueInfo:
        """Pause or resume a queue."""

    @abstractmethod
    def check(self) -> tuple[str, list[str]]:
        """The URL, and how well what is there keeps the promises."""


class StoreTarget(Target):
    """The jobs of a store."""

    def __init__(self, store: str | None, *, may_make: bool = False, **settings: Any) -> None:
        self._pipe = Jobpipe(builtins=True)
        self._pipe.configure(store=store, **settings)
        url = self._pipe.settings.store
        check_url("JOBPIPE_STORE", url, may_make=may_make)
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        self._loop.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._loop.__exit__(None, None, None)

    def enqueue(self, type: str, payload: Any, **options: Any) -> Receipt:
        return self._pipe.enqueue_sync(type, payload, **options)

    def enqueue_many(self, requests: Sequence[JobRequest]) -> Intake:
        receipts = self._pipe.enqueue_many_sync(requests)
        return Intake([receipt.id for receipt in receipts], sum(receipt.is_new for receipt in receipts))

    def page(self, limit: int, cursor: str | None, **filters: str | None) -> JobPage:
        return self._loop.run(self._pipe.page(**filters, limit=limit, cursor=cursor))

    def job(self, id: str) -> Job:
        job = self._pipe.store.get(id)  # Why not by the loop: one who waits for a batch asks for many
        if job is None:
            raise JobNotFoundError(id)
        return job

    def job_within(self, id: str, seconds: float) -> Job:
        return self._loop.run(self._pipe.wait(id, seconds))

    def explain(self, id: str) -> Explanation:
        return self._loop.run(self._pipe.explain(id))

    def schedules(self) -> list[ScheduleInfo]:
        return self._loop.run(self._pipe.schedules.all())

    def schedule(self, name: str) -> ScheduleInfo:
        return self._loop.run(self._pipe.schedules.get(name))

    def put_schedule(self, name: str, fields: Mapping[str, Any]) -> ScheduleInfo:
        return self._loop.run(self._pipe.schedules.put(name, convert(fields, ScheduleRequest)))

    def run_schedule(self, name: str) -> Receipt:
        return self._loop.run(self._pipe.schedules.run(name))

    def hold_schedule(self, verb: str, name: str) -> ScheduleInfo:
        schedules = self._pipe.schedules
        return self._loop.run({"pause": schedules.pause, "resume": schedules.resume}[verb](name))

    def drop_schedule(self, name: str) -> None:
        self._loop.run(self._pipe.schedules.drop(name))

    def manage(self, verb: str, id: str) -> Job:
        return self._loop.run({"cancel": self._pipe.cancel, "retry": self._pipe.retry}[verb](id))

    def delete(self, id: str) -> str:
        self._loop.run(self._pipe.delete(id))
        return id

    def manage_many(self, verb: str, **filters: str | None) -> int:
        verbs = {"cancel": self._pipe.cancel_many, "retry": self._pipe.retry_many}
        return self._loop.run(verbs[verb](**filters))

    def hold(self, verb: str, queue: str) -> QueueInfo:
        return self._loop.run({"pause": self._pipe.pause, "resume": self._pipe.resume}[verb](queue))

    def check(self) -> tuple[str, list[str]]:
        store = self._pipe.store
        return store.url, store.check()
