"""`GET /jobs/{id}/events`: what happens to one job, from how it is now to its end: its status, its progress and its logs.

Each stream reads the job and its new lines itself: when its status changes, and twice a second while it runs.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct
from starlette.requests import Request

from ...errors import JobNotFoundError, StoreError
from ...gateway.sync import Bell
from ...model.job import Job, JobStatus, Progress
from ...model.logs import JobLogs
from ..operation import Operation, Stream
from ..problems import TooManyStreamsError
from ..routes.jobs import known_id
from ..site import Site
from .events import EventData
from .piece import SIGN_OF_LIFE, frame
from .polls import progress_frame
from .stream import HEARTBEAT, MEDIA_TYPE, Write, end, stream

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ...model.counts import JobEvent

MOST_STREAMS = 200
_LOOK_EVERY = 0.5
"""Seconds between two looks at a job that runs."""
_LOOK_AGAIN = 5.0
"""The same for one that waits, whatever the feed says."""


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

    @Operation(
        "GET",
        "/jobs/{id}/events",
        "Stream a job's status, progress and logs, from now to its end",
        answers={200: Stream(MEDIA_TYPE, JobStreamEvent)},
    )
    async def events(self, request: Request) -> ASGIApp:
        id, ends = known_id(request.path_params["id"]), self._site.ending
        if self.streams >= MOST_STREAMS:
            raise TooManyStreamsError(
                f"{MOST_STREAMS} streams of single jobs are already open: try again later"
            )
        self.streams += 1
        try:
            await self._pipe.get(id)
        except BaseException:
            self.streams -= 1
            raise
        return partial(self._stream, id, ends)

    async def _stream(self, id: str, ends: asyncio.Event, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            patience = await stream(scope, receive, send, ends=ends, tell=partial(self._tell, id))
            await end(scope, receive, send, patience)
        finally:
            self.streams -= 1

    async def _tell(self, id: str, write: Write) -> None:
        """Write until the job is finished, or gone."""
        bell = Bell()

        def on_events(events: list[JobEvent]) -> None:
            if any(event.id == id for event in events):
                bell.ring()

        unsubscribe = await self._pipe.async_store.call(self._pipe.feed.subscribe, on_events)
        teller, quiet = _Teller(), 0.0
        try:
            await write(b": connected\n\n")
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
                        await write(body)
                        return
                if not body and quiet >= self._heartbeat:
                    body = SIGN_OF_LIFE.body
                if body:
                    await write(body)
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
        frames = [frame(b"log", line) for line in logs.lines]
        self.seen = logs.last
        if job.progress is not None and job.progress != self._progress:
            frames.append(progress_frame(job.id, job.progress))
        if state != self._told:
            frames.insert(len(frames) if self._told is not None else 0, frame(b"job", state))
        self._told, self._progress = state, job.progress
        return b"".join(frames)
