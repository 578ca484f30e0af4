"""LazyStore: a store and the ways to it, opened when it is first needed, by whichever thread comes first.

What was opened before a process was forked is refused in it: connections and threads are its parent's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from ..settings import Settings
from ..stores import open_store
from ..stores.base import Store
from ..stores.forks import invalidate_after_fork, refuse_inherited
from .async_store import AsyncStore
from .feed import Feed


class Gateway(NamedTuple):
    """A store that is open, and the ways to it."""

    store: Store
    async_store: AsyncStore
    feed: Feed

    async def probe(self) -> None:
        """StoreError unless the store answers; the call costs it next to nothing."""
        await self.async_store.call(self.store.get, "?")  # no job is called that


class LazyStore:
    """Opens and closes; a store that was given is the giver's to close."""

    def __init__(
        self,
        given: Store | None,
        settings: Callable[[], Settings],
        capacity: Callable[[], int],
        on_insert: Callable[[], None],
    ) -> None:
        self._given = given
        self._settings = settings
        self._capacity = capacity
        self._on_insert = on_insert
        self._opening = threading.Lock()
        self._opened: Gateway | None = None
        self._inherited: Gateway | None = None
        invalidate_after_fork(self)

    def __call__(self) -> Gateway:
        """The store, opened and migrated, for event loops too, and its feed."""
        return self._opened or self._open()

    def _open(self) -> Gateway:
        if self._inherited is not None:
            refuse_inherited("the store of the pipe")
        with self._opening:
            if self._opened is None:
                settings, given = self._settings(), self._given
                # Why by its URL: a flag, or the environment, may name another.
                is_given = given is not None and given.url == settings.store
                store = given if given is not None and is_given else open_store(settings.store)
                try:
                    store.migrate()
                except BaseException:
                    if not is_given:
                        store.close()  # what it has opened before it was refused
                    raise
                self._opened = Gateway(
                    store, AsyncStore(store, self._capacity(), self._on_insert), Feed(store)
                )
            return self._opened

    def close(self) -> None:
        """Let go of the store and of threads; the next use opens them again."""
        if self._inherited is not None:
            return
        with self._opening:
            opened, self._opened = self._opened, None
            if opened is not None:
                opened.feed.close()
                opened.async_store.close()
                if opened.store is not self._given:
                    opened.store.close()

    def invalidate(self) -> None:
        """In a child process after a fork: what is opened is the parent's."""
        if self._opened is not None:
            self._inherited, self._opened = self._opened, None
        self._opening = threading.Lock()
