"""Feed: tells who listens what happens in the store, also by other processes.

A thread waits on each of the store's watches while there are listeners. Listeners are told that there may be
news; subscribers get every change of a job's status, in order, as often as the least patient of them wants: each look
takes time from all else in the process. Nothing is read while nobody subscribes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import StoreError
from ..stores.base import News

if TYPE_CHECKING:
    from ..model.counts import JobEvent
    from ..stores.base import Watch, WatchStore

logger = logging.getLogger("jobpipe")

OnNews = Callable[[], object]
OnEvents = Callable[["list[JobEvent]"], object]

_LOOK_AGAIN = 1.0
"""Seconds after which it looks even if the watch said nothing."""
_LINGER = 5.0
"""Seconds that a thread stays after its last listener: a caller that waits for one job after the other comes back."""
_AT_ONCE = 500


@dataclass(frozen=True, slots=True, eq=False)
class _Subscriber:
    """Who gets events, and how many seconds it can wait for more once it got some."""

    tell: OnEvents
    rest: float


class Feed:
    """The watch threads of one handle on a store, and the subscribers, which are called in these threads."""

    def __init__(self, store: WatchStore) -> None:
        self._store = store
        self._watches = {news: _WatchThread(store, news) for news in News}
        self._lock = threading.Lock()
        self._on_events: list[_Subscriber] = []
        self._after = 0
        self._is_closed = threading.Event()
        self._leave_watch: Callable[[], None] = lambda: None

    def listen(self, news: News, on_news: OnNews) -> Callable[[], None]:
        """Be told that there may be news; call what is returned to unsubscribe."""
        return self._watches[news].join(on_news)

    def subscribe(self, on_events: OnEvents, rest: float = 0.0) -> Callable[[], None]:
        """Be told every event from now on; call what is returned to unsubscribe.

        What happens within `rest` seconds after it was told something may be told together, after them.
        """
        subscriber = _Subscriber(on_events, rest)
        # Why before: nothing is read while the lock is held. An event too many does no harm.
        newest = self._store.last_event()
        with self._lock:
            if not self._on_events:
                self._after = newest
                self._leave_watch = self._watches[News.CHANGES].join(self._tell_events)
            self._on_events.append(subscriber)

        def leave() -> None:
            with self._lock:
                if subscriber in self._on_events:
                    self._on_events.remove(subscriber)
                    if not self._on_events:
                        self._leave_watch()

        return leave

    def _tell_events(self) -> None:
        rest, is_all = 0.0, not self._on_events
        while not is_all:
            after = self._after
            events = self._store.events(after, _AT_ONCE)
            with self._lock:
                if self._after != after:
                    continue  # all have left, and others come: they want less
                subscribers = list(self._on_events)
                if events:
                    self._after = events[-1].number
            is_all = len(events) < _AT_ONCE  # Why no further look: the watch tells of what comes after it
            for subscriber in subscribers if events else ():
                _call(subscriber.tell, events)
                rest = min(each.rest for each in subscribers)
        self._is_closed.wait(rest)

    def close(self) -> None:
        """End the threads."""
        self._is_closed.set()
        for watch in self._watches.values():
            watch.close()


class _WatchThread:
    """The thread that waits for one kind of news, from the first listener on."""

    def __init__(self, store: WatchStore, news: News) -> None:
        self._store = store
        self._news = news
        self._lock = threading.Lock()
        self._listeners: list[OnNews] = []
        self._thread: threading.Thread | None = None
        self._watch: Watch | None = None
        self._is_closed = threading.Event()

    def join(self, listener: OnNews) -> Callable[[], None]:
        with self._lock:
            if self._thread is None and not self._is_closed.is_set():
                self._watch = self._store.watch(self._news)
                self._thread = threading.Thread(
                    target=self._run, args=[self._watch], name=f"jobpipe-feed-{self._news}", daemon=True
                )
                self._thread.start()
            self._listeners.append(listener)

        def leave() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return leave

    def close(self) -> None:
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
        needed_at = time.monotonic()
        while not self._is_closed.is_set():
            if self._told():
                needed_at = time.monotonic()
            elif time.monotonic() > needed_at + _LINGER and self._retire():
                watch.close()
                return
            try:
                is_told = watch.wait(_LOOK_AGAIN)
                # Why also untold: what was told may have been lost. Who looks for work asks on his own now and then.
                if is_told or self._news is News.CHANGES:
                    for listener in self._told():
                        _call(listener)
                is_away = False
            except StoreError as error:
                if not is_away and not self._is_closed.is_set():
                    logger.warning("the event feed (%s) waits for the store: %s", self._news, error)
                is_away = True
                self._is_closed.wait(_LOOK_AGAIN)
            except Exception:
                logger.exception("the event feed (%s) raised an error", self._news)
                self._is_closed.wait(_LOOK_AGAIN)

    def _told(self) -> list[OnNews]:
        with self._lock:
            return list(self._listeners)

    def _retire(self) -> bool:
        """Let another thread take over with the next listener, unless one has come."""
        with self._lock:
            if self._listeners or self._thread is not threading.current_thread():
                return False
            self._thread = self._watch = None
            return True


def _call(listener: Callable[..., object], *args: object) -> None:
    """Whatever is wrong with one of them, the others are told. Only that the store is away concerns all."""
    try:
        listener(*args)
    except StoreError:
        raise
    except Exception:
        logger.exception("a listener of the event feed raised an error")
