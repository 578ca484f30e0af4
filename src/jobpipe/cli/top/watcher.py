"""Watcher: a thread that looks at the service once a second and does what the user orders, so that keys never wait for it.

What it finds out is put on a list, which the loop takes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import Empty, SimpleQueue

from ...errors import ForbiddenError, JobpipeError, UnauthorizedError
from ...gateway.history import Past
from ..target import ServiceTarget
from .model import Order, Snapshot

EVERY = 1.0
_MOST_RUNNING = 100
_MOST_FAILED = 50


@dataclass(frozen=True, slots=True)
class Seen:
    """The service was looked at."""

    snapshot: Snapshot
    past: Past | None


@dataclass(frozen=True, slots=True)
class Lost:
    """It cannot be reached."""

    reason: str


@dataclass(frozen=True, slots=True)
class Told:
    """What became of an order."""

    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Broken:
    """It is no use to go on."""

    error: BaseException


News = Seen | Lost | Told | Broken


def look(target: ServiceTarget, url: str) -> Snapshot:
    """The service as it is now."""
    return Snapshot(
        url=url,
        stats=target.stats(),
        queues=target.queues(),
        running=target.page(limit=_MOST_RUNNING, status="running").jobs,
        failed=target.page(limit=_MOST_FAILED, status="failed").jobs,
        workers=target.workers(),
        at=datetime.now(UTC),
    )


class Watcher:
    """Looks until it is told to end; `wake` is called when there is news."""

    def __init__(self, target: ServiceTarget, url: str, wake: Callable[[], None]) -> None:
        self._target = target
        self._url = url
        self._wake = wake
        self._orders: SimpleQueue[Order | None] = SimpleQueue()
        self._news: deque[News] = deque()
        self._is_lost = False
        # Why a daemon: it may be waiting for an answer that does not come, and nobody waits for it.
        self._thread = threading.Thread(target=self._run, name="jobpipe-top", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def end(self) -> None:
        """Look no more."""
        self._orders.put(None)

    def order(self, order: Order) -> None:
        """Have it done; what became of it is news."""
        self._orders.put(order)

    def news(self) -> list[News]:
        """What was found out since the last time."""
        found: list[News] = []
        while self._news:
            found.append(self._news.popleft())
        return found

    def _run(self) -> None:
        try:
            next_at = time.monotonic() + EVERY
            while True:
                try:
                    order = self._orders.get(timeout=max(next_at - time.monotonic(), 0.0))
                except Empty:
                    pass
                else:
                    if order is None:
                        return
                    self._tell(self._done(order))
                self._tell(self._looked())
                next_at = time.monotonic() + EVERY
        except BaseException as error:
            self._tell(Broken(error))

    def _tell(self, news: News) -> None:
        self._news.append(news)
        self._wake()

    def _looked(self) -> News:
        try:
            snapshot = look(self._target, self._url)
            past = self._target.past() if self._is_lost else None
        except JobpipeError as error:
            if isinstance(error, UnauthorizedError | ForbiddenError):
                raise  # trying again does not change it
            self._is_lost = True
            return Lost(str(error))
        self._is_lost = False
        return Seen(snapshot, past)

    def _done(self, order: Order) -> Told:
        try:
            if order.verb in ("pause", "resume"):
                queue = self._target.hold(order.verb, order.name)
                return Told(f"queue {queue.name} is {'paused' if queue.paused else 'resumed'}")
            job = self._target.manage(order.verb, order.name)
        except JobpipeError as error:
            return Told(str(error), is_error=True)
        if order.verb == "cancel" and not job.is_finished:
            return Told(f"job {job.id} is being cancelled")
        return Told(f"job {job.id} is {job.status}{' again' if order.verb == 'retry' else ''}")
