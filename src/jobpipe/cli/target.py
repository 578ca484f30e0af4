"""Target: what the commands about jobs speak to, in plain calls; now a store.

A running service behind a URL will be another class with the same methods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
from ..views import QueueInfo

_FILE = "sqlite:///"
_LOOK_AGAIN = 2.0
"""Seconds after which one who waits is told why the job is not running."""


class StoreTarget:
    """The jobs of a store; within `with`, and from one thread."""

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
        """Put a job in."""
        return self._pipe.enqueue_sync(type, payload, **options)

    def jobs(self, *, status: str | None, type: str | None, queue: str | None, limit: int) -> list[Job]:
        """The newest jobs, as many as wanted, without payload and result."""
        if limit < 1:
            raise BadInputError("limit", f"must be at least 1, got {limit}")
        return self._loop.run(self._jobs(limit, status=status, type=type, queue=queue))

    async def _jobs(self, limit: int, **filter: str | None) -> list[Job]:
        found: list[Job] = []
        cursor = None
        while True:
            size = min(limit - len(found), MOST_AT_ONCE)
            page = await self._pipe.page(**filter, limit=size, cursor=cursor)
            found += page.jobs
            cursor = page.next_cursor
            if cursor is None or len(found) >= limit:
                return found

    def job(self, id: str) -> Job:
        """The whole job."""
        return self._loop.run(self._pipe.get(id))

    def explain(self, id: str) -> Explanation:
        """Why it is not running."""
        return self._loop.run(self._pipe.explain(id))

    def schedules(self) -> list[ScheduleInfo]:
        """All schedules, by name."""
        return self._loop.run(self._pipe.schedules.all())

    def steer(self, verb: str, id: str) -> Job:
        """Cancel or retry a job."""
        return self._loop.run({"cancel": self._pipe.cancel, "retry": self._pipe.retry}[verb](id))

    def steer_many(self, verb: str, **filters: str | None) -> int:
        """Cancel or retry all jobs that match; how many it were."""
        verbs = {"cancel": self._pipe.cancel_many, "retry": self._pipe.retry_many}
        return self._loop.run(verbs[verb](**filters))

    def hold(self, verb: str, queue: str) -> QueueInfo:
        """Pause or resume a queue."""
        return self._loop.run({"pause": self._pipe.pause, "resume": self._pipe.resume}[verb](queue))

    def check(self) -> list[str]:
        """How well the store keeps the promises."""
        store = self._pipe.store
        return [f"{store.url}: {remark}" for remark in store.check()]

    def wait(self, id: str, timeout: float | None, tell: Callable[[str], object]) -> Job:
        """The job when it is finished, or the time is over; `tell` hears why it is not running, when that changes."""
        return self._loop.run(self._wait(id, inf if timeout is None else timeout, tell))

    async def _wait(self, id: str, timeout: float, tell: Callable[[str], object]) -> Job:
        until = monotonic() + timeout
        told = None
        while True:
            remaining = max(until - monotonic(), 0.0)
            job = await self._pipe.wait(id, min(remaining, _LOOK_AGAIN))
            if job.is_finished or remaining <= _LOOK_AGAIN:
                return job
            explanation = await self._pipe.explain(id)
            if explanation.reason not in (told, Reason.FINISHED):
                told = explanation.reason
                tell(explanation.text)
