"""Screen: the terminal while `top` has it, and as it was before when `top` gives it back, however that comes about.

It is drawn by whole lines, and only by those that changed, so that nothing flickers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Self

from .view import Size

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
"""The other screen, no cursor, no wrapping of lines, and all of it empty."""
_LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""What is between is shown at once, by terminals that know it."""
_CHARS = 6
"""Where the special characters are among the attributes of a terminal."""


class GoneError(Exception):
    """There is no terminal any more."""


def is_possible() -> bool:
    """Is there a terminal that can be drawn on, and someone to press keys?"""
    try:
        import termios  # noqa: F401 - not on every system
    except ImportError:
        return False
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return has_terminal and os.environ.get("TERM", "dumb") != "dumb"


class Screen:
    """A terminal, within `with`."""

    def __init__(self) -> None:
        self.keyboard = sys.stdin.fileno()
        self._out = sys.stdout.fileno()
        self._encoding = sys.stdout.encoding
        self._before: list[Any] | None = None
        self._drawn: list[str] = []

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def take(self) -> None:
        """Take the terminal: keys come one by one and are not shown."""
        import termios

        self._before = termios.tcgetattr(self.keyboard)
        ours = termios.tcgetattr(self.keyboard)
        # Why not IXON: Ctrl+S would stop us in the middle of a line. ISIG stays: Ctrl+C and Ctrl+Z are signals.
        ours[0] &= ~(termios.IXON | termios.ICRNL)
        ours[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
        ours[_CHARS][termios.VMIN], ours[_CHARS][termios.VTIME] = 1, 0
        termios.tcsetattr(self.keyboard, termios.TCSANOW, ours)
        self._write(_ENTER)
        self.forget()

    def give_back(self) -> None:
        """Make it as it was; a terminal that is gone needs nothing."""
        import termios

        before, self._before = self._before, None
        if before is None:
            return
        try:
            self._write(_LEAVE)
        except GoneError:
            pass
        try:
            # What was typed was for us, and is not for the shell.
            termios.tcflush(self.keyboard, termios.TCIFLUSH)
            termios.tcsetattr(self.keyboard, termios.TCSANOW, before)
        except termios.error:
            pass

    def size(self) -> Size:
        """Its size now."""
        try:
            return Size(*os.get_terminal_size(self._out))
        except OSError as error:
            raise GoneError from error

    def forget(self) -> None:
        """What is on it is not known any more: draw all of it the next time."""
        self._drawn = []

    def draw(self, lines: Sequence[str]) -> None:
        """Show the lines, from the top on."""
        parts = [] if self._drawn else ["\x1b[2J"]
        for number, line in enumerate(lines):
            if number >= len(self._drawn) or self._drawn[number] != line:
                parts.append(f"\x1b[{number + 1};1H{line}\x1b[0m\x1b[K")
        if parts:
            self._write(f"{_BEGIN}{''.join(parts)}{_END}")
        self._drawn = list(lines)

    def _write(self, text: str) -> None:
        data = text.encode(self._encoding, "replace")
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except OSError as error:
            raise GoneError from error
