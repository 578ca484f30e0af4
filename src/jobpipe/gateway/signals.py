"""Signals: what this process does that its own workers must know at once; other processes learn it from the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, ParamSpec

P = ParamSpec("P")
Unsubscribe = Callable[[], None]


class _Signal(Generic[P]):
    def __init__(self) -> None:
        self._listeners: list[Callable[P, object]] = []

    def subscribe(self, listener: Callable[P, object]) -> Unsubscribe:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def notify(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for listener in self._listeners:
            listener(*args, **kwargs)


class Signals:
    """Three lists of listeners, each called in the thread that did it."""

    def __init__(self) -> None:
        work, cancel, pause = _Signal[[]](), _Signal[[Sequence[str]]](), _Signal[[str]]()
        self.on_work, self.notify_work = work.subscribe, work.notify
        """Jobs were enqueued, or may go on: there may be some to run."""
        self.on_cancel, self.notify_cancel = cancel.subscribe, cancel.notify
        """The jobs of these ids are to be cancelled."""
        self.on_pause, self.notify_pause = pause.subscribe, pause.notify
        """No more jobs of that queue may start."""
