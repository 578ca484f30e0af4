"""Keeper: the thread that keeps leases alive, and looks after what other processes left behind.

It has a thread and connections of its own, so that neither a handler that blocks the event loop nor a store
that is busy with this process's own calls can make a lease run out.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from .maintenance import Chores

if TYPE_CHECKING:
    from ..app import Jobpipe
    from .runner import Runner


class Keeper:
    """Does the chores of one process in a thread."""

    def __init__(self, pipe: Jobpipe, runner: Runner | None) -> None:
        self._runner = runner
        self._store = pipe.store.sibling()
        self._chores = Chores(pipe, runner, self._store)
        self._bell = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="jobpipe-keeper", daemon=True)

    def start(self) -> None:
        """Begin; the worker is known when it returns."""
        self._chores.greet()
        self._thread.start()
        if self._runner is not None:
            self._runner.on_progress = self._bell.set

    def stop(self) -> None:
        """End the thread, and have the worker forgotten."""
        self._is_stopping = True
        self._bell.set()
        self._thread.join()
        self._chores.leave()
        self._store.close()

    def _run(self) -> None:
        while not self._is_stopping:
            again_at = self._chores.do(time.monotonic())
            self._bell.wait(max(again_at - time.monotonic(), 0.01))
            self._bell.clear()
