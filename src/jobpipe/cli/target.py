"""Target: what the commands about jobs speak to, in plain calls; now a store.

A running service behind a URL will be another class with the same methods.
"""

from __future__ import annotations

import asyncio
from typing import Any, Self

from ..app import MOST_AT_ONCE, Jobpipe
from ..errors import BadInputError, SettingsError
from ..explain import Explanation
from ..job import Job
from ..stores.base import Receipt
from ..timetable import ScheduleInfo

_ONE_WAIT = 30.0


class StoreTarget:
    """The jobs of a store; within `with`, and from one thread."""

    def __init__(self, store: str | None) -> None:
        self._pipe = Jobpipe()
        self._pipe.configure(store=store)
        if self._pipe.settings.store.startswith("memory:"):
            raise SettingsError(
                "JOBPIPE_STORE", "must be a store that others can see: memory:// is in one process only"
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

    def wait(self, id: str) -> Job:
        """The job when it is finished, however long that takes."""
        return self._loop.run(self._wait(id))

    async def _wait(self, id: str) -> Job:
        while True:
            job = await self._pipe.wait(id, _ONE_WAIT)
            if job.is_finished:
                return job
