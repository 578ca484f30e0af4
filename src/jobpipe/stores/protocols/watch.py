"""WatchStore: what happens to jobs, as events and as wake-ups, and which workers there are."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from ...model.counts import JobEvent, WorkerInfo


class News(StrEnum):
    """What a watch waits for."""

    WORK = "work"
    """A claim may find what it did not find before. Why apart: a worker need not wake up for all that happens."""
    CHANGES = "changes"
    """Anything that changes jobs or queues, too."""


class Watch(Protocol):
    """Waits for what others do; a hint, never the only way to learn of it. It may wake up for nothing."""

    def wait(self, timeout: float) -> bool:
        """Block until there may be news since the last call (True), or the timeout has passed."""

    def close(self) -> None:
        """Let go of what it holds; a `wait` under way in another thread returns."""


class WatchStore(Protocol):
    """Events, wake-ups and workers."""

    def events(self, after: int, limit: int) -> list[JobEvent]:
        """The events after that number, oldest first. At least the last 1,000 are kept."""

    def last_event(self) -> int:
        """The number of the newest event; 0 if there was none."""

    def watch(self, news: News) -> Watch:
        """A new watch of its own; also to be closed by its owner."""

    # Workers

    def beat(self, worker: WorkerInfo, seconds: float) -> None:
        """List the worker for `seconds` from now; for 0, forget it."""

    def workers(self) -> list[WorkerInfo]:
        """The workers that are listed, by name."""
