"""The stores that can be simulated: real ones, on the world's clock."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jobpipe.stores.base import Store
from jobpipe.stores.memory import MemoryStore
from jobpipe.stores.sqlite import SqliteStore

STORES = ("memory", "sqlite")


@contextmanager
def opened(name: str) -> Iterator[Callable[[Callable[[], float]], Store]]:
    """How to make the store for one life; it is gone afterwards."""
    if name == "memory":
        yield lambda clock: MemoryStore(clock=clock)
        return
    with tempfile.TemporaryDirectory() as folder:
        made: list[SqliteStore] = []

        def make(clock: Callable[[], float]) -> Store:
            store = SqliteStore(Path(folder) / "jobs.db", clock=clock)
            store.migrate()
            made.append(store)
            return store

        try:
            yield make
        finally:
            for store in made:
                store.close()
