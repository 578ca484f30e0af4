"""StoreHarness: what a store has to offer so that the contract can be tried on it.

ManualTime is a clock for stores that take one; a store with a clock of its own may shift its rows instead. `handles` and
what follows it use several handles on the same data, from many threads at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from threading import Barrier
from typing import TypeVar

from ..stores.base import Store

T = TypeVar("T")

THREADS = 16


class ManualTime:
    """A clock that stands still until it is told how much time went by."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now

    def __call__(self) -> float:
        return self._now

    def elapse(self, seconds: float) -> None:
        self._now += seconds


class StoreHarness(ABC):
    """One empty set of data, made anew for every test."""

    handles: int = 4
    """How many handles the tests with threads open."""
    claimers: int = 200
    """How many threads claim at once, spread over the handles."""
    crowd: int = 1_000
    """How many jobs they find."""

    @abstractmethod
    def open(self) -> Store:
        """Another handle on the same data, as another process would have it; the contract closes it."""

    @abstractmethod
    def elapse(self, seconds: float) -> None:
        """Let the store's own clock move on."""


@contextmanager
def handles(harness: StoreHarness) -> Iterator[list[Store]]:
    """Several handles on the same data."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(harness.open())) for _ in range(harness.handles)]


def together(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run all calls at the same time, each in a thread; what they return, in their order."""
    start = Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        start.wait(30)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def from_all_sides(harness: StoreHarness, call: Callable[[Store, int], T], number: int = THREADS) -> list[T]:
    """Call it so often at the same time, spread over the handles; what the calls return, in their order."""
    with handles(harness) as several:
        return together([partial(call, several[n % len(several)], n) for n in range(number)])
