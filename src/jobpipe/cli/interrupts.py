"""Interrupts: a Ctrl+C that waits until a step is done, so that one can say exactly what was done."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held() -> Iterator[None]:
    """Within the block a first Ctrl+C is noted, and raised at its end; a second one is raised at once."""
    is_noted = False

    def note(number: int, frame: object) -> None:
        nonlocal is_noted
        if is_noted:
            raise KeyboardInterrupt
        is_noted = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if is_noted:
        raise KeyboardInterrupt
