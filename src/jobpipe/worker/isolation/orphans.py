"""Orphans: processes that must not outlive their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from ...stores.forks import invalidate_after_fork

_PR_SET_PDEATHSIG = 1
_GUARDIAN = Path(__file__).with_name("guardian.py")


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent dies, where it can; others see to it elsewhere."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we could ask for that
        os._exit(1)


class Guard:
    """Has process groups killed when this process dies, however it dies; its program starts with the first group."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        invalidate_after_fork(self)

    def invalidate(self) -> None:
        """This is a fork. Why it is told: as long as it holds the pipe, the program does not see the worker end."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def add(self, group: int) -> None:
        """It must not outlive this process."""
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def discard(self, group: int) -> None:
        """It has ended."""
        if group in self._groups:
            self._groups.remove(group)
            self._tell(f"-{group}\n")

    def look(self) -> None:
        """See that its program lives, and start another if it was killed."""
        if self._process is not None and self._process.poll() is not None:
            self._start_again()

    def stop(self) -> None:
        """End the program, and with it all groups that are left."""
        self._groups.clear()
        self._end()

    def _tell(self, line: str) -> None:
        try:
            self._write(line)
        except OSError:  # it was killed
            self._start_again()

    def _start_again(self) -> None:
        """Another one has to know all."""
        self._end()
        if self._groups:
            self._write("".join(f"+{group}\n" for group in self._groups))

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.communicate()

    def _write(self, text: str) -> None:
        if self._process is None:
            self._process = _start()
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), text.encode())


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-I", "-S", str(_GUARDIAN)],
        bufsize=0,  # Why: who forks may have to close it, and so there must be no lock
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_group(group: int) -> None:
    """Kill all of a process group whose leader was not waited for yet, so that the number is still its own."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # Why the latter: macOS says so where all that is left of it is a zombie
