"""Site: what all routes share: the pipe, the service (where this process has one), and the end of it all.

Calls may come from any event loop, but those that take long only from one at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import BadInputError, QueueFullError, StoppingError, TooManyScheduledError
from ..model.admission import Bounds
from .asgi import until_gone
from .body import BESIDE_PAYLOAD, ClientGone
from .problems import NotReadyError

if TYPE_CHECKING:
    from starlette.requests import Request

    from ..app import Jobpipe
    from ..worker.service import Service

T = TypeVar("T")


class Site:
    """A pipe on the web."""

    def __init__(self, pipe: Jobpipe, service: Service | None) -> None:
        self.pipe = pipe
        self._service = service
        self._ending = asyncio.Event()  # set when calls that take long have to end
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def service(self) -> Service | None:
        """What runs the pipe's jobs in this process, now."""
        return self._service or self.pipe.service

    def end(self) -> None:
        """Have calls that take long end at once."""
        self._ending.set()

    @property
    def ending(self) -> asyncio.Event:
        """Set when calls that take long have to end; RuntimeError where another event loop has such calls."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed():
                raise RuntimeError(
                    "the application is already used by another event loop: create one for each with pipe.asgi()"
                )
            self._ending = asyncio.Event() if self._loop is not None else self._ending
            self._loop = loop
        return self._ending

    def check_takes_jobs(self) -> None:
        """StoppingError once the service stops."""
        if self.service is not None and self.service.is_stopping:
            raise StoppingError

    def check_is_started(self) -> None:
        """NotReadyError until the service has its store."""
        # Why: the store would be opened by the first call, on the event loop, and be waited for.
        if self.service is not None and not self.service.is_started:
            raise NotReadyError("the service is starting and has no store yet: try again later")

    @cached_property
    def door(self) -> Bounds:
        """What callers are held to."""
        settings = self.pipe.settings
        return Bounds(settings.queue_size, settings.scheduled_size, settings.max_names)

    @property
    def largest_body(self) -> int:
        """Bytes of a body with one payload."""
        return self.pipe.settings.max_payload + BESIDE_PAYLOAD

    def check_new_name(self, known: Collection[str], name: str, what: str) -> None:
        """BadInputError if there are as many of these names as may be, and this one is not among them."""
        most = self.pipe.settings.max_names
        if most and name not in known and len(known) >= most:
            raise BadInputError(
                "name",
                f"would be new, and the limit of {most:,} {what} is reached: "
                "remove some, or raise JOBPIPE_MAX_NAMES",
            )

    def retry_after(self, error: Exception) -> int | None:
        """In how many seconds there will be room, where that is what was missing."""
        if not isinstance(error, QueueFullError) or isinstance(error, TooManyScheduledError):
            return None  # Why not for scheduled ones: when they come due says nothing about the pace
        return self.pipe.throughput.seconds_for(
            max(error.waiting + error.needed - error.capacity, 1), error.queue
        )

    async def patiently(self, request: Request, result: Awaitable[T]) -> T | None:
        """The result of what may take long; None if the service ends before, ClientGone if the client does."""
        work = asyncio.ensure_future(result)
        others: list[asyncio.Future[Any]] = []
        try:
            others += map(asyncio.ensure_future, (self.ending.wait(), until_gone(request.receive)))
            waiting = asyncio.wait([work, *others], return_when=asyncio.FIRST_COMPLETED)
            is_stopped = await is_cancelled(waiting)
            if work.done():
                return work.result()
            if is_stopped or others[0].done():
                return None
            raise ClientGone
        finally:
            for each in (work, *others):
                each.cancel()
            await asyncio.gather(work, *others, return_exceptions=True)


async def is_cancelled(waiting: Awaitable[object]) -> bool:
    """Wait, and say whether that was cancelled: so a server that embeds the application ends calls that take too long.

    Why it is taken back: such a call has an answer for that case, and the server would log an error.
    """
    try:
        await waiting
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.uncancel():
            raise
        return True
    return False
