"""How threads avoid a lock convoy: a thread that finds the lock held lets its holder run, and does not queue up.

A thread that is handed the lock while it waits for the interpreter makes all others block on it, and such a convoy
never dissolves.
"""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

_SPINS = 1000


def yield_lock(lock: threading.Lock) -> None:
    """Let others run until the lock is free, or for a while."""
    for _ in range(_SPINS):
        sleep(0)
        if not lock.locked():
            return
