"""Pulses: once a second, the numbers of the service as one event for all streams that want it.

They are made while somebody listens and are the same for all. Where there is nothing to tell there is at least a sign of life.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ...errors import StoreError
from ...gateway.history import Pulse
from ..operation import encode
from ..site import Site
from .piece import Piece

logger = logging.getLogger("jobpipe")

_EVERY = 1.0
SIGN_OF_LIFE = Piece(b": heartbeat\n\n")

Listener = Callable[[Piece], object]


class Pulses:
    """Who listens, and the task that tells them; all of it runs on the event loop."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._listeners: list[Listener] = []
        self._task: asyncio.Task[None] | None = None

    def join(self, listener: Listener) -> None:
        """Be told of each pulse from now on."""
        self._listeners.append(listener)
        if self._task is None:
            self._task = asyncio.create_task(self._tell())

    def leave(self, listener: Listener) -> None:
        """Hear no more; a stranger may leave too."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _tell(self) -> None:
        last = None
        while True:
            piece = SIGN_OF_LIFE
            try:
                pulse = await self._look()
            except Exception:  # Why: whoever listens must learn of the next one all the same
                logger.exception("the pulse raised an error")
                pulse = None
            if pulse is not None and pulse.at != last:
                last = pulse.at
                piece = Piece(b"event: pulse\ndata: %b\n\n" % encode(pulse))
            for listener in list(self._listeners):
                listener(piece)
            await asyncio.sleep(_EVERY)

    async def _look(self) -> Pulse | None:
        pipe = self._site.pipe
        if self._site.service is None:  # Why: there is no keeper in this process that would look
            try:
                pipe.throughput.note(await pipe.async_store.call(pipe.store.counts))
            except StoreError:
                pass  # the next second may know more
        return pipe.throughput.history.pulse()
