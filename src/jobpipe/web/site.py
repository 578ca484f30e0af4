"""Site: what all routes share: the pipe, the service (where this process has one), and the end of it all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from ..errors import QueueFullError, StoppingError
from .body import ClientGone
from .problems import NotReadyError

if TYPE_CHECKING:
    from starlette.requests import Request

    from ..app import Jobpipe
    from ..service import Service

T = TypeVar("T")


class Site:
    """A pipe on the web."""

    def __init__(self, pipe: Jobpipe, service: Service | None) -> None:
        self.pipe = pipe
        self.service = service
        self.ending = asyncio.Event()
        """Set when calls that take long have to end."""

    def check_takes_jobs(self) -> None:
        """StoppingError once the service stops."""
        if self.service is not None and self.service.is_stopping:
            raise StoppingError

    def check_is_started(self) -> None:
        """NotReadyError until the service has its store."""
        # Why: the store would be opened by the first call, on the event loop, and be waited for.
        if self.service is not None and not self.service.is_started:
            raise NotReadyError("the service is starting and has no store yet: try again later")

    def retry_after(self, error: Exception) -> int | None:
        """In how many seconds there will be room, where that is what was missing."""
        if not isinstance(error, QueueFullError):
            return None
        return self.pipe.pace.seconds_for(max(error.waiting + error.needed - error.capacity, 1), error.queue)

    async def patiently(self, request: Request, result: Awaitable[T]) -> T | None:
        """The result of what may take long; None if the service ends before, ClientGone if the client does."""
        work = asyncio.ensure_future(result)
        others = [asyncio.ensure_future(each) for each in (self.ending.wait(), _until_gone(request))]
        try:
            await asyncio.wait([work, *others], return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            if others[0].done():
                return None
            raise ClientGone
        finally:
            for each in (work, *others):
                each.cancel()
            await asyncio.gather(work, *others, return_exceptions=True)


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
