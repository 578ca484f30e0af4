"""The memory store keeps the contract."""

from __future__ import annotations

import pytest

from jobpipe.stores import open_store
from jobpipe.stores.base import Store
from jobpipe.stores.memory import MemoryStore
from jobpipe.testing import ManualTime, StoreContract, StoreHarness, new_job


class MemoryHarness(StoreHarness):
    def __init__(self) -> None:
        self._time = ManualTime()
        self._store = MemoryStore(clock=self._time)

    def open(self) -> Store:
        return self._store.sibling()

    def elapse(self, seconds: float) -> None:
        self._time.elapse(seconds)


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def harness(self) -> StoreHarness:
        return MemoryHarness()


def test_every_open_gives_a_new_store() -> None:
    first, second = open_store("memory://"), open_store("memory://")
    first.insert([[new_job("a")]])
    assert first.get("a") is not None
    assert second.get("a") is None


def test_it_says_that_nothing_outlives_the_process() -> None:
    store = MemoryStore()
    assert not store.capabilities.durable
    assert any("process" in remark for remark in store.check())


def test_of_events_the_newest_are_kept_and_found_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobpipe.stores.memory.ledger.KEPT_EVENTS", 10)
    store = MemoryStore()
    store.insert([[new_job(f"j{number}") for number in range(1, 26)]])

    def numbers(after: int, limit: int) -> list[int]:
        return [event.number for event in store.events(after, limit)]

    assert numbers(0, 100) == numbers(15, 100) == list(range(16, 26))
    assert numbers(3, 2) == [16, 17]
    assert numbers(20, 3) == [21, 22, 23]
    assert numbers(24, 3) == [25]
    assert numbers(25, 3) == numbers(99, 3) == []
