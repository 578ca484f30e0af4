"""MemoryWatch: told of changes by the store's own condition."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition


class MemoryWatch:
    """Rings when the store has changed since it was last asked."""

    def __init__(self, changed: Condition, changes: Callable[[], int]) -> None:
        self._changed = changed
        self._changes = changes
        self._seen = changes()
        self._is_closed = False

    def wait(self, timeout: float) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._changes() != self._seen, timeout)
            has_changed = self._changes() != self._seen
            self._seen = self._changes()
            return has_changed

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
