"""SqliteWatch: learns that some other connection has committed, by looking at the file's data version.

SQLite tells nobody; asking costs microseconds. It asks often while things happen, and seldom while not.
"""

from __future__ import annotations

import sqlite3
import threading
import time

from .connection import Connections, mapped_errors

_OFTEN, _SELDOM = 0.003, 0.02
_LIVELY = 2.0
"""Seconds after a change in which another is likely."""


class SqliteWatch:
    """A connection of its own, and the version that it saw last."""

    def __init__(self, connections: Connections) -> None:
        self._connection: sqlite3.Connection | None = connections.open()
        self._path = connections.path
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._changed_at = -_LIVELY
        self._version = self._look()

    def wait(self, timeout: float) -> bool:
        now = time.monotonic()
        until = now + timeout
        while not self._closed.is_set():
            version = self._look()
            if version != self._version:
                self._version, self._changed_at = version, now
                return True
            if now >= until:
                return False
            pause = _OFTEN if now - self._changed_at < _LIVELY else _SELDOM
            self._closed.wait(min(pause, until - now))
            now = time.monotonic()
        return False

    def _look(self) -> int:
        with self._lock, mapped_errors(self._path):
            if self._connection is None:
                return self._version
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
            return int(version)

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
