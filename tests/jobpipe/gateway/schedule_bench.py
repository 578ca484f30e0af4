"""What the tests of schedules run on: a pipe on a store whose clock they move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jobpipe import (
    Jobpipe,
    ScheduleInfo,
    ScheduleRequest,
)
from jobpipe.stores.base import Store
from jobpipe.testing import ManualTime
from jobpipe.testing.reading import page_ids

from ...support.waiting import run

HOUR, DAY = 3600.0, 86_400.0


class Bench:
    """A pipe on a store whose clock is moved by hand; nothing ticks unless it is told to."""

    def __init__(self, make_store: Callable[[ManualTime], Store], now: float = 1_800_000_000.25) -> None:
        self.time = ManualTime(now)
        self.store = make_store(self.time)
        self.store.migrate()
        self._given = [self.store]
        self.pipe = self.another()

    def another(self, **settings: Any) -> Jobpipe:
        """Another process on the same store."""
        self._given.append(self.store.sibling())
        return Jobpipe(self._given[-1], **settings)

    def close(self) -> None:
        """Why the stores: one that was given to a pipe is not the pipe's to close."""
        self.pipe.close()
        for store in self._given:
            store.close()

    def put(self, name: str = "s", /, **fields: Any) -> ScheduleInfo:
        request = ScheduleRequest(**({"type": "echo"} | fields))
        return run(self.pipe.schedules.put(name, request))

    def tick(self, pipe: Jobpipe | None = None) -> float | None:
        ticking = pipe or self.pipe
        return ticking.schedules.tick(ticking.store)

    def ids(self) -> list[str]:
        """Of all jobs, oldest first."""
        return page_ids(self.store)[::-1]


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
