"""ProgressEvents: how far running jobs are, as events for all streams, once a second.

The store tells of changes of a status only. So the newest jobs that run are looked at while there are clients, and what is
new since the last look is told. These events have no number: they are not told again to a client that comes back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from msgspec import Struct

from ...errors import StoreError
from ...model.counts import Filter
from ...model.job import JobStatus, Progress
from ..operation import encode
from ..site import Site
from .piece import Piece

logger = logging.getLogger("jobpipe")

_EVERY = 1.0
_MOST = 500
"""Jobs that are looked at: the newest of those that run."""


class ProgressData(Struct, frozen=True):
    """The progress of a job's run, from 0 to 1, and a note."""

    id: str
    value: float
    note: str | None


def progress_frame(id: str, progress: Progress) -> bytes:
    """How it goes over the wire."""
    data = encode(ProgressData(id, progress.value, progress.note))
    return b"event: progress\ndata: %b\n\n" % data


class ProgressEvents:
    """The task that looks; it runs on the event loop, from `start` to `stop`."""

    def __init__(self, site: Site, tell: Callable[[Piece], object]) -> None:
        self._site = site
        self._tell = tell
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look from now on; called again, it changes nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="jobpipe-progress")

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        known: Mapping[str, Progress] = {}
        while True:
            try:
                found = await self._look()
            except StoreError:
                pass  # the next second may know more
            except Exception:  # Why: a client must learn of the next one all the same
                logger.exception("the progress of jobs could not be told")
            else:
                new = [(id, each) for id, each in found.items() if known.get(id) != each]
                known = found
                if new:
                    self._tell(Piece(b"".join(progress_frame(id, each) for id, each in new)))
            await asyncio.sleep(_EVERY)

    async def _look(self) -> dict[str, Progress]:
        pipe = self._site.pipe
        page = await pipe.async_store.call(pipe.store.page, Filter(status=JobStatus.RUNNING), _MOST)
        return {job.id: job.progress for job in page.jobs if job.progress is not None}
