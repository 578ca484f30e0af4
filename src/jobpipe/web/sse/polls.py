"""Polls: what no event of the store tells is looked up once a second, once for all clients, while there are any.

So there are pulses, which are the numbers of the service, and the progress of the newest jobs that run. These events have
no number: they are not told again to a client that comes back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from ...errors import StoreError
from ...model.counts import Filter
from ...model.job import JobStatus, Progress
from ..site import Site
from .piece import Piece, frame

logger = logging.getLogger("jobpipe")

_EVERY = 1.0
_MOST = 500
"""Jobs that are looked at: the newest of those that run."""

Look = Callable[[], Awaitable[Piece | None]]
"""What is new since the last look, if anything."""


class Poll:
    """The task that looks; it runs on the event loop, from `start` to `stop`."""

    def __init__(self, begin: Callable[[], Look], tell: Callable[[Piece | None], object], what: str) -> None:
        self._begin = begin
        self._tell = tell
        self._what = what
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look from now on; called again, it changes nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(self._begin()))

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, look: Look) -> None:
        while True:
            piece = None
            try:
                piece = await look()
            except Exception:  # Why: clients must learn of the next one all the same
                logger.exception(self._what)
            self._tell(piece)
            await asyncio.sleep(_EVERY)


def look_for_pulses(site: Site) -> Look:
    """Have the numbers of the service looked at."""
    pipe, last = site.pipe, None

    async def look() -> Piece | None:
        nonlocal last
        if site.service is None:  # Why: there is no keeper in this process that would look
            try:
                pipe.throughput.note(await pipe.async_store.call(pipe.store.counts))
            except StoreError:
                pass  # the next second may know more
        pulse = pipe.throughput.history.pulse()
        if pulse is None or pulse.at == last:
            return None
        last = pulse.at
        return Piece(frame(b"pulse", pulse))

    return look


class ProgressData(Struct, frozen=True):
    """The progress of a job's run, from 0 to 1, and a note."""

    id: str
    value: float
    note: str | None


def progress_frame(id: str, progress: Progress) -> bytes:
    """How it goes over the wire."""
    return frame(b"progress", ProgressData(id, progress.value, progress.note))


def look_for_progress(site: Site) -> Look:
    """Have the jobs that run looked at."""
    pipe = site.pipe
    known: Mapping[str, Progress] = {}

    async def look() -> Piece | None:
        nonlocal known
        try:
            page = await pipe.async_store.call(pipe.store.page, Filter(status=JobStatus.RUNNING), _MOST)
        except StoreError:
            return None  # the next second may know more
        found = {job.id: job.progress for job in page.jobs if job.progress is not None}
        frames = [progress_frame(id, each) for id, each in found.items() if known.get(id) != each]
        known = found
        return Piece(b"".join(frames)) if frames else None

    return look
