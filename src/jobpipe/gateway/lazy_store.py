"""LazyStore: a store and the ways to it, opened when it is first needed, by whichever thread comes first.

What was opened before a process was forked is refused in it: connections and threads are its parent's. A test may put
another store in its place for a while.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

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


class Substitute(NamedTuple):
    """What stands in for the store during a test."""

    gateway: Gateway
    current: Callable[[str], Any]
    """The job that a handler of a type sees which the test calls directly."""


_entered: ContextVar[tuple[Substitute, ...]] = ContextVar("jobpipe.substitutes", default=())
"""Those of the calling context, the innermost last. Why not these alone: threads begin with an empty context."""


@contextmanager
def entered(substitute: Substitute) -> Iterator[None]:
    """Let the calls of this context reach it, also if another was begun since."""
    token = _entered.set((*_entered.get(), substitute))
    try:
        yield
    finally:
        _entered.reset(token)


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
        self._substitutes: tuple[Substitute, ...] = ()
        invalidate_after_fork(self)

    def __call__(self) -> Gateway:
        """The store, opened and migrated, for event loops too, and its feed."""
        if self._substitutes and (substitute := self.substitute) is not None:
            return substitute.gateway
        return self._opened or self._open()

    @property
    def settings(self) -> Settings:
        """Those in effect."""
        return self._settings()

    @property
    def substitute(self) -> Substitute | None:
        """What stands in for the store: that of the calling context, or else the last one; None outside of tests."""
        active = self._substitutes
        if not active:
            return None
        entered = [each for each in _entered.get() if any(each is other for other in active)]
        last: Substitute = (entered or active)[-1]
        return last

    def put_in_place(self, substitute: Substitute) -> Callable[[], None]:
        """Let it stand in for the store until the returned function is called."""
        with self._opening:
            self._substitutes = (*self._substitutes, substitute)
        _entered.set((*_entered.get(), substitute))

        def undo() -> None:
            with self._opening:
                self._substitutes = tuple(each for each in self._substitutes if each is not substitute)
            _entered.set(tuple(each for each in _entered.get() if each is not substitute))

        return undo

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
        if self._inherited is not None or self._substitutes:
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
