"""Tally: log lines of one kind are counted and summed up, so that strangers cannot fill the log.

The first of a kind is written at once; those of the next minute are one line with their number, and so on.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

logger = logging.getLogger("jobpipe")

MINUTE = 60.0


@dataclass(slots=True)
class _Kind:
    """What came since the last line."""

    timer: asyncio.TimerHandle
    count: int = 0
    last: str = ""


class Tally:
    """Belongs to one event loop at a time."""

    def __init__(self, every: float = MINUTE) -> None:
        self._every = every
        self._kinds: dict[str, _Kind] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def note(self, kind: str, detail: str = "") -> None:
        """It has happened once more; the detail, such as an address, is told of the last."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._kinds = loop, {}
        found = self._kinds.get(kind)
        if found is None:
            logger.warning("%s", f"{kind} ({detail})" if detail else kind)
            self._kinds[kind] = _Kind(loop.call_later(self._every, self._sum_up, kind))
        else:
            found.count += 1
            found.last = detail

    def close(self) -> None:
        """Tell what was not told yet."""
        for kind in list(self._kinds):
            found = self._kinds.pop(kind)
            found.timer.cancel()
            self._tell(kind, found)

    def _sum_up(self, kind: str) -> None:
        found = self._kinds[kind]
        if not found.count:
            del self._kinds[kind]
            return
        self._tell(kind, found)
        found.count = 0
        found.timer = asyncio.get_running_loop().call_later(self._every, self._sum_up, kind)

    def _tell(self, kind: str, found: _Kind) -> None:
        if found.count:
            last = f", the last {found.last}" if found.last else ""
            logger.warning("%s: %d times more within %g s%s", kind, found.count, self._every, last)
