"""Signals: what this process does that its own workers must know at once; other processes learn it from the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Unsubscribe = Callable[[], None]


class Signals:
    """Three lists of listeners, each called in the thread that did it."""

    def __init__(self) -> None:
        self._on_work: list[Callable[[], object]] = []
        self._on_cancel: list[Callable[[Sequence[str]], object]] = []
        self._on_pause: list[Callable[[str], object]] = []

    def on_work(self, listener: Callable[[], object]) -> Unsubscribe:
        """Be told that there may be jobs to run."""
        self._on_work.append(listener)
        return lambda: self._on_work.remove(listener)

    def on_cancel(self, listener: Callable[[Sequence[str]], object]) -> Unsubscribe:
        """Be told which jobs are to be cancelled."""
        self._on_cancel.append(listener)
        return lambda: self._on_cancel.remove(listener)

    def on_pause(self, listener: Callable[[str], object]) -> Unsubscribe:
        """Be told which queue was paused."""
        self._on_pause.append(listener)
        return lambda: self._on_pause.remove(listener)

    def notify_work(self) -> None:
        """Jobs were enqueued, or may go on."""
        for listener in self._on_work:
            listener()

    def notify_cancel(self, ids: Sequence[str]) -> None:
        """These jobs are to be cancelled."""
        for listener in self._on_cancel:
            listener(ids)

    def notify_pause(self, queue: str) -> None:
        """No more jobs of the queue may start."""
        for listener in self._on_pause:
            listener(queue)
