"""SqliteWatch: learns that some other connection has committed, by looking at the file's data version.

SQLite tells nobody; asking costs microseconds. It asks often while things happen, and seldom while not. Who waits for work
is not told of what makes none, such as steps and logs of running jobs: a claim costs more than a second look.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from typing import Any

from ..base import News
from .connection import Connections, MappedErrors
from .statements import sql

_OFTEN, _SELDOM = 0.003, 0.02
_LIVELY = 2.0
"""Seconds after a change in which another is likely."""


class SqliteWatch:
    """A connection of its own, and the version that it saw last."""

    def __init__(self, connections: Connections, news: News) -> None:
        self._connection: sqlite3.Connection | None = connections.open()
        self._path = connections.path
        self._news = news
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._changed_at = -_LIVELY
        self._version = self._look("PRAGMA data_version")
        self._last_event = None
        self._is_news()

    def wait(self, timeout: float) -> bool:
        now = time.monotonic()
        until = now + timeout
        while not self._closed.is_set():
            version = self._look("PRAGMA data_version")
            if version != self._version:
                self._version, self._changed_at = version, now
                if self._is_news():
                    return True
            if now >= until:
                return False
            pause = _OFTEN if now - self._changed_at < _LIVELY else _SELDOM
            self._closed.wait(min(pause, until - now))
            now = time.monotonic()
        return False

    def _is_news(self) -> bool:
        """Is what was committed news for who waits?"""
        if self._news is News.CHANGES:
            return True
        before = self._last_event
        self._last_event, is_queued = self._look(sql("work_seen")) or (before, False)
        return is_queued or self._last_event != before

    def _look(self, statement: str) -> Any:
        """What it finds; None once this is closed."""
        with self._lock, MappedErrors(self._path):
            return self._connection and self._connection.execute(statement).fetchone()

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
