"""`GET /jobs/{id}/events`: what happens to one job, from how it is now to its end: its status, its progress and its logs.

Each stream reads the job and its new lines itself: when its status changes, and twice a second while it runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from ...errors import JobNotFoundError, StoreError
from ...gateway.sync import Bell
from ...model.job import Job, JobStatus, Progress
from ...model.logs import JobLogs
from .. import problems
from ..extensions import until_gone
from ..operation import Operation, Stream, encode
from ..query import NoQuery, read_query
from ..routes.jobs import known_id
from ..site import Site, is_cancelled
from .events import HEADERS, HEARTBEAT, MEDIA_TYPE, EventData, end
from .progress import progress_frame

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from ...model.counts import JobEvent

MOST_STREAMS = 200
_LOOK_EVERY = 0.5
"""Seconds between two looks at a job that runs."""
_LOOK_AGAIN = 5.0
"""The same for one that waits, whatever the feed says."""
_LAST_WORD = 1.0


class JobStreamEvent(Struct, frozen=True, kw_only=True):
    """An event: `job` (id, type, queue, status, attempts), `progress` (id, value, note) or `log` (a line)."""

    event: Literal["job", "progress", "log"]
    data: Annotated[str, Meta(extra_json_schema={"contentMediaType": "application/json"})]


class JobStream:
    """The streams of single jobs."""

    def __init__(self, site: Site, heartbeat: float = HEARTBEAT) -> None:
        self._site = site
        self._pipe = site.pipe
        self._heartbeat = heartbeat
        self.streams = 0
        """How many there are."""

    def calls(self) -> list[Operation]:
        """The row of the table."""
        return [
            Operation(
                method="GET",
                path="/jobs/{id}/events",
                handler=self,
                is_asgi=True,
                summary="Stream a job's status, progress and logs, from now to its end",
                answers={200: Stream(MEDIA_TYPE, JobStreamEvent)},
                refusals=frozenset({404}),
            )
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.streams += 1
        try:
            try:
                read_query(scope["query_string"], NoQuery)
                id = known_id(scope["path_params"]["id"])
                ends = self._site.ending
                if self.streams > MOST_STREAMS:
                    raise problems.TooManyStreamsError(
                        f"{MOST_STREAMS} streams of single jobs are already open: try again later"
                    )
                await self._pipe.get(id)
            except Exception as error:
                await problems.answer(error, scope)(scope, receive, send)
                return
            await self._stream(id, ends, scope, receive, send)
        finally:
            self.streams -= 1

    async def _stream(self, id: str, ends: asyncio.Event, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body"})
            return
        writer = asyncio.create_task(self._write(id, send))
        gone = asyncio.create_task(until_gone(receive))
        watched: list[asyncio.Task[Any]] = [writer, gone, asyncio.create_task(ends.wait())]
        try:
            await is_cancelled(asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED))
        finally:
            is_gone, is_told = gone.done(), writer.done()
            for task in watched:
                task.cancel()
            await asyncio.gather(*watched, return_exceptions=True)
        if not is_gone:
            await end(scope, receive, send, _LAST_WORD if is_told else 0)

    async def _write(self, id: str, send: Send) -> None:
        async with aclosing(self._bodies(id)) as bodies:
            async for body in bodies:
                await send({"type": "http.response.body", "body": body, "more_body": True})

    async def _bodies(self, id: str) -> AsyncGenerator[bytes]:
        """What to write, until the job is finished, or gone."""
        bell = Bell()

        def on_events(events: list[JobEvent]) -> None:
            if any(event.id == id for event in events):
                bell.ring()

        unsubscribe = await self._pipe.async_store.call(self._pipe.feed.subscribe, on_events)
        teller, quiet = _Teller(), 0.0
        try:
            yield b": connected\n\n"
            while True:
                try:
                    job = await self._pipe.get(id)
                    logs = await self._pipe.logs(id, after=teller.seen)
                except JobNotFoundError:
                    return
                except StoreError:
                    body, is_running = b"", False
                else:
                    body, is_running = teller.tell(job, logs), job.status is JobStatus.RUNNING
                    if job.is_finished:
                        yield body
                        return
                if not body and quiet >= self._heartbeat:
                    body = b": heartbeat\n\n"
                if body:
                    yield body
                    quiet = 0.0
                pause = min(_LOOK_EVERY if is_running else _LOOK_AGAIN, self._heartbeat)
                await bell.wait(pause)
                quiet += pause
        finally:
            unsubscribe()


class _Teller:
    """What a stream has told, and so what it has to tell."""

    def __init__(self) -> None:
        self.seen = 0
        """The number of the last line."""
        self._told: EventData | None = None
        self._progress: Progress | None = None

    def tell(self, job: Job, logs: JobLogs) -> bytes:
        """What is new; how the job is comes first at the begin of a stream, and last afterwards."""
        state = EventData(job.id, job.type, job.queue, job.status, job.attempts)
        frames = [_frame(b"log", line) for line in logs.lines]
        self.seen = logs.last
        if job.progress is not None and job.progress != self._progress:
            frames.append(progress_frame(job.id, job.progress))
        if state != self._told:
            frames.insert(len(frames) if self._told is not None else 0, _frame(b"job", state))
        self._told, self._progress = state, job.progress
        return b"".join(frames)


def _frame(event: bytes, data: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event, encode(data))
