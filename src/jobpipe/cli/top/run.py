"""Run: the loop of `top`, which waits for keys, news and signals, and draws what has changed; and the one look of `--once`."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from io import StringIO

import msgspec
from rich.console import Console
from rich.text import Text

from ...gateway.history import Past
from ..jobs import NOT_IN_LISTS
from ..render.tables import print_json
from ..target import ServiceTarget
from .glyphs import glyphs_for
from .keys import KeyReader
from .model import Order, Snapshot, State, begin, lost, seen, ticked, told
from .press import pressed
from .screen import GoneError, Screen
from .signals import ENDING, Signals
from .view import Size, screen_lines, snapshot_lines
from .watcher import Broken, Lost, Seen, Watcher, look

_REDRAW = 1.0
"""Seconds after which ages and the clock are drawn again."""
_ESCAPE = 0.05
"""Seconds after which an escape by itself is a key."""
_HUNG_UP = 129
"""The exit code of one whose terminal is gone, as after SIGHUP."""
_WIDTH = 160
"""Of a snapshot where there is no terminal."""


def show(target: ServiceTarget, url: str) -> int:
    """Show the service until the user has seen enough; the exit code."""
    state = begin(look(target, url), target.past())
    with ExitStack() as stack:
        signals = stack.enter_context(Signals())
        watcher = Watcher(target, url, signals.wake)
        stack.callback(watcher.end)
        screen = stack.enter_context(Screen())
        watcher.start()
        return _Loop(screen, signals, watcher, state).run()


def print_snapshot(snapshot: Snapshot, past: Past) -> None:
    """Print what a look found."""
    is_terminal = sys.stdout.isatty()
    width = os.get_terminal_size(sys.stdout.fileno()).columns if is_terminal else _WIDTH
    console = Console(highlight=False, width=width)
    glyphs = glyphs_for(sys.stdout.encoding)
    for line in snapshot_lines(begin(snapshot, past), width, datetime.now(UTC), glyphs):
        line.rstrip()
        console.print(line, no_wrap=True, overflow="crop")


def print_snapshot_json(snapshot: Snapshot) -> None:
    """The same for programs; jobs as `jobs --json` has them."""
    plain = msgspec.to_builtins(snapshot)
    for job in plain["running"] + plain["failed"]:
        for name in NOT_IN_LISTS:
            del job[name]
    print_json(plain)


class _Loop:
    """What runs while the terminal is taken."""

    def __init__(self, screen: Screen, signals: Signals, watcher: Watcher, state: State) -> None:
        self._screen = screen
        self._signals = signals
        self._watcher = watcher
        self._state = state
        self._keys = KeyReader()
        self._size = screen.size()
        self._glyphs = glyphs_for(sys.stdout.encoding)
        self._code: int | None = None
        """The exit code, once it is over."""

    def run(self) -> int:
        try:
            self._draw()
            drawn_at = time.monotonic()
            while self._code is None:
                if self._wait(drawn_at + _REDRAW):
                    self._draw()
                    drawn_at = time.monotonic()
        except GoneError:
            return _HUNG_UP
        return self._code

    def _wait(self, until: float) -> bool:
        """Wait for something to happen, or for the time; is there anything to draw?"""
        timeout = max(until - time.monotonic(), 0.0)
        is_waiting = self._keys.is_waiting
        sources = [self._screen.keyboard, self._signals.woken]
        ready, _, _ = select.select(sources, [], [], min(timeout, _ESCAPE) if is_waiting else timeout)
        for number in self._signals.taken():
            self._signal(number)
        if self._screen.keyboard in ready:
            self._type()
        elif is_waiting:
            self._press(self._keys.end())
        news = self._watcher.news()
        for each in news:
            now = datetime.now(UTC)
            if isinstance(each, Broken):
                raise each.error
            if isinstance(each, Seen):
                self._state = seen(self._state, each.snapshot, each.past)
            elif isinstance(each, Lost):
                self._state = lost(self._state, each.reason)
            else:
                self._state = told(self._state, each.text, now, is_error=each.is_error)
        return bool(ready) or is_waiting or time.monotonic() >= until

    def _type(self) -> None:
        try:
            data = os.read(self._screen.keyboard, 4096)
        except OSError:  # how Linux says that the terminal is gone
            data = b""
        if not data:
            self._code = _HUNG_UP
        self._press(self._keys.feed(data))

    def _press(self, keys: list[str]) -> None:
        for key in keys:
            self._state, order = pressed(self._state, key, datetime.now(UTC))
            if order == Order("quit"):
                self._code = 0
                return
            if order is not None:
                self._watcher.order(order)

    def _signal(self, number: int) -> None:
        if number in ENDING:
            self._code = 0 if number == signal.SIGINT else 128 + number
        elif number == signal.SIGWINCH:
            self._size = self._screen.size()
            self._screen.forget()
        elif number == signal.SIGTSTP:
            self._screen.give_back()
            self._signals.stop()
            self._screen.take()
            self._size = self._screen.size()

    def _draw(self) -> None:
        now = datetime.now(UTC)
        self._state = ticked(self._state, now)
        lines = screen_lines(self._state, self._size, now, self._glyphs)
        self._screen.draw(_painted(lines, self._size))


def _painted(lines: list[Text], size: Size) -> list[str]:
    """The lines with their colours, as far as the terminal has them and the user wants them."""
    console = Console(file=StringIO(), force_terminal=True, highlight=False, width=size.width)
    with console.capture() as capture:
        console.print(Text("\n").join(lines), no_wrap=True, overflow="ignore", crop=False, end="")
    return capture.get().split("\n")
