"""Signals: those that concern a terminal are noted, and wake the one who waits for keys; none of them breaks off a line.

A second request to end is raised at once, for the case that the first is not heard.
"""

from __future__ import annotations

import os
import signal
from typing import Self

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGWINCH", "SIGTSTP")
ENDING = frozenset(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Signals:
    """Notes signals within `with`, in the main thread; `wake` may be called from any."""

    def __init__(self) -> None:
        self._noted: list[int] = []
        self._before: dict[int, object] = {}
        self.woken, self._waker = os.pipe()
        """The first can be read once something happened."""
        for each in (self.woken, self._waker):
            os.set_blocking(each, False)

    def __enter__(self) -> Self:
        for name in _NAMES:
            number = getattr(signal, name)
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        self._fd_before = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._fd_before)
        for number, before in self._before.items():
            signal.signal(number, before)  # type: ignore[arg-type]
        waker, self._waker = self._waker, -1
        os.close(waker)
        os.close(self.woken)

    def wake(self) -> None:
        """Wake the one who waits."""
        try:
            os.write(self._waker, b"\0")
        except OSError:
            pass  # it is full, and so awake, or it is over

    def taken(self) -> list[int]:
        """The signals since the last time, in order."""
        try:
            while os.read(self.woken, 4096):
                pass
        except BlockingIOError:
            pass
        noted, self._noted = self._noted, []
        return noted

    def stop(self) -> None:
        """Stop the process as Ctrl+Z does, where there is a shell that can continue it; back when it was."""
        ours = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, ours)

    def _note(self, number: int, _: object) -> None:
        if number in ENDING and not ENDING.isdisjoint(self._noted):
            raise KeyboardInterrupt
        self._noted.append(number)
