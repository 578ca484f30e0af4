"""Settler: writes outcomes to the store, all that there are at once, and keeps them while it is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ..errors import StoreAwayError
from ..failpoints import reach
from ..model.lease import Settlement

logger = logging.getLogger("jobpipe")

_MOST = 1_000
_LAST_WORD = 1.0
"""Seconds that outcomes may still take when the service ends."""
_AWAY_PAUSES = (0.05, 0.2, 1.0)


class Settler:
    """The outcomes that are to be recorded; used on one event loop."""

    def __init__(
        self,
        settle: Callable[[list[Settlement]], Awaitable[list[bool]]],
        on_settled: Callable[[list[tuple[Settlement, bool]]], object],
    ) -> None:
        self._settle = settle
        self._on_settled = on_settled  # told of each batch, and whether each of it was recorded
        self._settlements: list[Settlement] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, settlement: Settlement) -> None:
        """Record it soon, with all that comes meanwhile."""
        self._settlements.append(settlement)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(
                self._settle_all(), name="jobpipe-settlements"
            )

    async def finish(self) -> None:
        """Wait a little longer for what is not recorded yet."""
        if self._task is None:
            return
        _, pending = await asyncio.wait([self._task], timeout=_LAST_WORD)
        if pending:
            self._task.cancel()
            logger.warning(
                "%d outcomes could not be recorded: their jobs will run again", len(self._settlements)
            )

    async def _settle_all(self) -> None:
        failures = 0
        size = _MOST
        while self._settlements:
            batch = self._settlements[:size]
            reach("settle-before")
            try:
                recorded = await self._settle(batch)
                reach("settle-after")
            except StoreAwayError as error:
                if not failures:
                    logger.warning("outcomes cannot be recorded for now, they are kept: %s", error)
                await asyncio.sleep(_AWAY_PAUSES[min(failures, len(_AWAY_PAUSES) - 1)])
                failures += 1
                continue
            except Exception:
                # Why one by one: an outcome that the store cannot take must not hold up the others.
                if len(batch) > 1:
                    size = 1
                    continue
                logger.exception("the outcome of job %s cannot be recorded", batch[0].lease.id)
                recorded = [False]
            failures = 0
            del self._settlements[: len(batch)]
            self._on_settled(list(zip(batch, recorded, strict=True)))
