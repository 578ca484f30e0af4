"""Target: what the commands about jobs speak to, in plain calls: a store, or a running service behind a URL."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, Self

from ..app import MOST_AT_ONCE, Jobpipe
from ..errors import BadInputError, SettingsError
from ..explain import Explanation, Reason
from ..job import Job
from ..stores.base import Receipt
from ..timetable import ScheduleInfo
from ..views import JobPage, QueueInfo

_FILE = "sqlite:///"
_LOOK_AGAIN = 2.0
"""Seconds after which one who waits is told why the job is not running."""


def open_target(flags: Mapping[str, Any], *, may_make: bool = False) -> Target:
    """What the flags name: a service if there is a URL, else a store, which must be there unless it may be made."""
    if flags.get("url") is not None:
        from .remote import ServiceTarget  # Why here: only then it is needed

        return ServiceTarget(flags["url"], flags.get("token"))
    return StoreTarget(flags.get("store"), may_make=may_make)


class Target(ABC):
    """Jobs, wherever they are; within `with`, and from one thread."""

    def jobs(self, *, limit: int, **filters: str | None) -> list[Job]:
        """The newest jobs, as many as wanted, without payload and result."""
        if limit < 1:
            raise BadInputError("limit", f"must be at least 1, got {limit}")
        found: list[Job] = []
        cursor = None
        while True:
            page = self.page(min(limit - len(found), MOST_AT_ONCE), cursor, **filters)
            found += page.jobs
            cursor = page.next_cursor
            if cursor is None or len(found) >= limit:
                return found

    def wait(self, id: str, timeout: float | None, tell: Callable[[str], object]) -> Job:
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
                tell(explanation.text)

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    @abstractmethod
    def enqueue(self, type: str, payload: Any, **options: Any) -> Receipt:
        """Put a job in."""

    @abstractmethod
    def page(self, limit: int, cursor: str | None, **filters: str | None) -> JobPage:
        """A page of jobs, newest first."""

    @abstractmethod
    def job(self, id: str) -> Job:
        """The whole job."""

    @abstractmethod
    def job_within(self, id: str, seconds: float) -> Job:
        """The job when it is finished, or as it is after so many seconds."""

    @abstractmethod
    def explain(self, id: str) -> Explanation:
        """Why it is not running."""

    @abstractmethod
    def schedules(self) -> list[ScheduleInfo]:
        """All schedules, by name."""

    @abstractmethod
    def steer(self, verb: str, id: str) -> Job:
        """Cancel or retry a job."""

    @abstractmethod
    def steer_many(self, verb: str, **filters: str | None) -> int:
        """Cancel or retry all jobs that match; how many it were."""

    @abstractmethod
    def hold(self, verb: str, queue: str) -> QueueInfo:
        """Pause or resume a queue."""


class StoreTarget(Target):
    """The jobs of a store."""

    def __init__(self, store: str | None, *, may_make: bool = False) -> None:
        self._pipe = Jobpipe()
        self._pipe.configure(store=store)
        url = self._pipe.settings.store
        if url.startswith("memory:"):
            raise SettingsError(
                "JOBPIPE_STORE", "must be a store that others can see: memory:// is in one process only"
            )
        if not may_make and url.startswith(_FILE) and not Path(url.removeprefix(_FILE)).exists():
            raise SettingsError(
                "JOBPIPE_STORE", f"must name a store that is there, got {url!r}: set it, or give --store"
            )
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        self._loop.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._loop.__exit__(None, None, None)

    def enqueue(self, type: str, payload: Any, **options: Any) -> Receipt:
        return self._pipe.enqueue_sync(type, payload, **options)

    def page(self, limit: int, cursor: str | None, **filters: str | None) -> JobPage:
        return self._loop.run(self._pipe.page(**filters, limit=limit, cursor=cursor))

    def job(self, id: str) -> Job:
        return self._loop.run(self._pipe.get(id))

    def job_within(self, id: str, seconds: float) -> Job:
        return self._loop.run(self._pipe.wait(id, seconds))

    def explain(self, id: str) -> Explanation:
        return self._loop.run(self._pipe.explain(id))

    def schedules(self) -> list[ScheduleInfo]:
        return self._loop.run(self._pipe.schedules.all())

    def steer(self, verb: str, id: str) -> Job:
        return self._loop.run({"cancel": self._pipe.cancel, "retry": self._pipe.retry}[verb](id))

    def steer_many(self, verb: str, **filters: str | None) -> int:
        verbs = {"cancel": self._pipe.cancel_many, "retry": self._pipe.retry_many}
        return self._loop.run(verbs[verb](**filters))

    def hold(self, verb: str, queue: str) -> QueueInfo:
        return self._loop.run({"pause": self._pipe.pause, "resume": self._pipe.resume}[verb](queue))

    def check(self) -> list[str]:
        """How well the store keeps the promises."""
        store = self._pipe.store
        return [f"{store.url}: {remark}" for remark in store.check()]
