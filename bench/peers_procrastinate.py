"""procrastinate on PostgreSQL at its best for no-op work: many jobs at once, each deleted when it is done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import procrastinate

from .queues import Work, beside

_AT_ONCE = 16


class ProcrastinateQueue:
    """An app with one task."""

    def __init__(self, url: str) -> None:
        self._work: Work = lambda payload: None
        connector = procrastinate.PsycopgConnector(conninfo=url, min_size=4, max_size=_AT_ONCE)
        self._app = procrastinate.App(connector=connector)
        self._task = self._app.task(name="work")(self._run)

    async def _run(self, payload: float) -> None:
        self._work(payload)

    async def open(self) -> None:
        await self._app.open_async()
        found = await self._app.connector.execute_query_one_async(
            "SELECT to_regclass('procrastinate_jobs') IS NOT NULL AS is_there"
        )
        if not found["is_there"]:
            await self._app.schema_manager.apply_schema_async()

    async def put(self, payload: float) -> object:
        return await self._task.defer_async(payload=payload)

    async def put_many(self, payloads: Sequence[float]) -> object:
        return await self._task.batch_defer_async(*({"payload": payload} for payload in payloads))

    async def outstanding(self) -> int:
        found = await self._app.connector.execute_query_one_async(
            "SELECT count(*) AS jobs FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        )
        return int(found["jobs"])

    @asynccontextmanager
    async def running(self, work: Work) -> AsyncIterator[None]:
        self._work = work
        options = {"concurrency": _AT_ONCE, "delete_jobs": "always", "install_signal_handlers": False}
        async with beside(self._app.run_worker_async(**options)):
            yield

    async def close(self) -> None:
        await self._app.close_async()
