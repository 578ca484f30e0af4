"""Clocks and limiters of the tests' own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rate_envelope_queue.limiters import Limiter

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Hashable
    from datetime import datetime

    from rate_envelope_queue.clock import Alarm, Bell


class HandClock:
    """A clock that stands still until the test moves it."""

    tick = 0.0

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def wall(self) -> datetime:
        raise NotImplementedError

    def wait(self, bell: Bell, until: float, at_most: float = float("inf"), who: object = None) -> bool:
        raise NotImplementedError

    def call_at(self, loop: asyncio.AbstractEventLoop, when: float, callback: Callable[[], None]) -> Alarm:
        raise NotImplementedError


class Plain:
    """A user's own limiter: it says what it was told to and knows no clock."""

    def __init__(self, *waits: float, count: int = 0) -> None:
        self.waits = list(waits)
        self.count = count
        self.asked: list[Hashable] = []
        self.forgotten: list[Hashable] = []

    def when(self, item: Hashable) -> float:
        self.asked.append(item)
        return self.waits.pop(0)

    def forget(self, item: Hashable) -> None:
        self.forgotten.append(item)

    def retries(self, item: Hashable) -> int:
        return self.count


def waits(limiter: Limiter, times: int, item: Hashable = "a") -> list[float]:
    return [limiter.when(item) for _ in range(times)]


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run `work(n)` in so many threads that begin at the same moment, and wait for all."""
    barrier = threading.Barrier(count)

    def begin(number: int) -> None:
        barrier.wait()
        work(number)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class SlowKey:
    """An item whose hash lets other threads in: between a read and a write there is time to lose a count."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        _switch()
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlowKey) and other.name == self.name


class SlowInstant(float):
    """An instant that lets other threads in while it is reckoned with."""

    def __sub__(self, other: float) -> float:
        _switch()
        return float(self) - other


class SlowClock(HandClock):
    """A clock that lets other threads in while it is read, and after."""

    def now(self) -> float:
        _switch()
        return SlowInstant(self.at)


def _switch() -> None:
    # Why: waiting for a held lock gives up the interpreter, so that the threads really alternate.
    held = threading.Lock()
    held.acquire()
    held.acquire(timeout=1e-6)
