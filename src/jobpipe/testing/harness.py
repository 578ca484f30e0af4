"""StoreHarness: what a store has to offer so that the contract can be tried on it.

ManualTime is a clock for stores that take one; a store with a clock of its own may shift its rows instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..stores.base import Store


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
