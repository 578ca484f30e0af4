"""Heartbeat: the thread that keeps leases alive, and looks after what other processes left behind.

It has a thread and connections of its own, so that neither a handler that blocks the event loop nor a store
that is busy with this process's own calls can make a lease run out.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .maintenance import Maintenance
    from .runner import Runner


class Heartbeat:
    """Runs the maintenance of one process in a thread."""

    def __init__(self, maintenance: Maintenance, runner: Runner | None) -> None:
        self._maintenance = maintenance
        self._runner = runner
        self._bell = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="jobpipe-heartbeat", daemon=True)

    def start(self) -> None:
        """Begin; the worker is known when it returns."""
        self._maintenance.greet()
        self._thread.start()
        if self._runner is not None:
            self._runner.held.on_progress = self._bell.set

    def stop(self) -> None:
        """End the thread, and have the worker forgotten."""
        self._is_stopping = True
        self._bell.set()
        self._thread.join()
        self._maintenance.leave()

    def _run(self) -> None:
        while not self._is_stopping:
            again_at = self._maintenance.do(time.monotonic())
            self._bell.wait(max(again_at - time.monotonic(), 0.01))
            self._bell.clear()
