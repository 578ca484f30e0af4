"""Feed: tells who listens what happens in the store, also by other processes.

One thread waits on the store's watch. Listeners of changes are told that something may be different;
listeners of events get every change of a job's status, in order. Nothing is read while nobody listens.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from .errors import StoreError

if TYPE_CHECKING:
    from .stores.base import JobEvent, Store, Watch

logger = logging.getLogger("jobpipe")

OnChange = Callable[[], object]
OnEvents = Callable[["list[JobEvent]"], object]

_LOOK_AGAIN = 1.0
"""Seconds after which it looks even if the watch said nothing."""
_AT_ONCE = 500


class Feed:
    """The thread, from the first listener on, and who listens. Listeners are called in the thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._on_change: list[OnChange] = []
        self._on_events: list[OnEvents] = []
        self._thread: threading.Thread | None = None
        self._is_closed = threading.Event()
        self._watch: Watch | None = None
        self._after = 0

    def listen(self, on_change: OnChange) -> Callable[[], None]:
        """Be told that something may have changed; call what is returned to hear no more."""
        return self._join(self._on_change, on_change)

    def subscribe(self, on_events: OnEvents) -> Callable[[], None]:
        """Be told every event from now on; call what is returned to hear no more."""
        return self._join(self._on_events, on_events)

    def _join(
        self, listeners: list[Callable[..., object]], listener: Callable[..., object]
    ) -> Callable[[], None]:
        # Why before: nothing is asked of the store while the lock is held. An event too many does no harm.
        newest = self._store.last_event() if listeners is self._on_events else 0
        with self._lock:
            if listeners is self._on_events and not self._on_events:
                self._after = newest
            listeners.append(listener)
            if self._thread is None and not self._is_closed.is_set():
                self._watch = self._store.watch()  # once, before anybody else needs the lock
                self._thread = threading.Thread(
                    target=self._run, args=[self._watch], name="jobpipe-feed", daemon=True
                )
                self._thread.start()

        def leave() -> None:
            with self._lock:
                if listener in listeners:
                    listeners.remove(listener)

        return leave

    def close(self) -> None:
        """End the thread."""
        with self._lock:
            self._is_closed.set()
            thread, self._thread = self._thread, None
            watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self, watch: Watch) -> None:
        is_away = False
        while not self._is_closed.is_set():
            try:
                watch.wait(_LOOK_AGAIN)
                self._tell()
                is_away = False
            except StoreError as error:
                if not is_away and not self._is_closed.is_set():
                    logger.warning("the feed of events has to wait: %s", error)
                is_away = True
                self._is_closed.wait(_LOOK_AGAIN)
            except Exception:
                logger.exception("the feed of events met an error")
                self._is_closed.wait(_LOOK_AGAIN)

    def _tell(self) -> None:
        with self._lock:
            on_change, on_events = list(self._on_change), list(self._on_events)
        for listener in on_change:
            _call(listener)
        while on_events:
            events = self._store.events(self._after, _AT_ONCE)
            if not events:
                return
            self._after = events[-1].number
            for tell in on_events:
                _call(tell, events)


def _call(listener: Callable[..., object], *args: object) -> None:
    """Whatever is wrong with one of them, the others are told."""
    try:
        listener(*args)
    except Exception:
        logger.exception("a listener of the feed met an error")
