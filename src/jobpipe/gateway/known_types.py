"""KnownTypes: the types that live workers have named, looked up at most once every few seconds.

Who enqueues a type that no worker knows is told so: it may be misspelt. It is a hint and costs next to nothing, so it may be
some seconds old, and a store that cannot be asked is no reason to fail.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence

from msgspec.structs import replace

from ..errors import JobpipeError
from ..model.newjob import Answer, NewJob
from ..model.text import did_you_mean
from .lazy_store import Gateway

logger = logging.getLogger("jobpipe.types")

_FRESH = 3.0
"""Seconds for which a look counts."""
_MOST_LOGGED = 1_000
"""Types that the log has a line about; anybody may make up names."""


class KnownTypes:
    """What can be run: the types of this process, and those of workers on the store as far as it was seen."""

    def __init__(
        self,
        gateway: Callable[[], Gateway],
        own: Callable[[], Collection[str]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gateway = gateway
        self._own = own
        self._now = now
        self._named: Collection[str] | None = None
        """By workers, when the store was last asked."""
        self._fresh_until = 0.0
        self._logged: set[str] = set()

    def forget(self) -> None:
        """Ask the store again: it is another one."""
        self._named, self._fresh_until = None, 0.0

    async def warn(self, batch: Sequence[NewJob], answer: Answer | Awaitable[Answer]) -> Answer:
        """The answer, with a warning in the receipt of each new job whose type nobody knows."""
        answer = await answer if isinstance(answer, Awaitable) else answer
        own = self._own()
        strange = {job.type for job in batch if job.type not in own}
        if not strange:
            return answer
        if self._now() >= self._fresh_until:
            await self._gateway().async_store.call(self._look)
        if self._named is None or not isinstance(answer, list):
            return answer
        texts = {type: self._text(type) for type in strange.difference(self._named)}
        return [
            replace(receipt, warning=texts.get(job.type)) if receipt.is_new and job.type in texts else receipt
            for job, receipt in zip(batch, answer, strict=True)
        ]

    def _look(self) -> None:
        if self._named is not None:
            # Why before: those who come meanwhile go by the last look.
            self._fresh_until = self._now() + _FRESH
        try:
            self._named = {type for worker in self._gateway().store.workers() for type in worker.types}
        except JobpipeError:
            return
        self._fresh_until = self._now() + _FRESH

    def _text(self, type: str) -> str:
        known = {*self._own(), *(self._named or ())}
        text = f"no running worker knows the type {type!r}{did_you_mean(type, known)}"
        if type not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(type)
            logger.warning("%s", text)
        return text
