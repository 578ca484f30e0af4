"""Output: what a child writes to its standard output or error goes to that of the worker, up to a bound.

A child that floods it is slowed down, and what is too much is dropped and counted: neither its worker nor its neighbours
notice.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO, cast

_MOST = 65_536
"""Bytes a second that are passed on."""
_PAUSE = 0.01
"""Seconds for which a flood is not read, again and again."""


class Output(asyncio.Protocol):
    """One stream of one child."""

    transport: asyncio.ReadTransport

    def __init__(self, pid: int, stream: Callable[[], TextIO | None]) -> None:
        self._pid = pid
        self._stream = stream  # Why not itself: a program may put another in its place
        self._loop = asyncio.get_running_loop()
        self._second = 0.0
        self._passed = 0
        self._dropped = 0
        self._ends_line = True  # what was passed on last
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.is_closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        now = self._loop.time()
        if now - self._second >= 1.0:
            self._tell_dropped()
            self._second, self._passed = now, 0
        kept = data[: max(_MOST - self._passed, 0)]
        self._passed += len(kept)
        is_cut = len(kept) < len(data)
        if kept:
            self._write(self._decode(kept, is_cut))
        if is_cut:
            if not self._dropped:
                self._end_line()
                self._loop.call_at(self._second + 1.0, self._tell_dropped)
            self._dropped += len(data) - len(kept)
            self.transport.pause_reading()
            self._loop.call_later(_PAUSE, self._resume)

    def connection_lost(self, error: Exception | None) -> None:
        self._tell_dropped()
        self.is_closed.set()

    def _resume(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def _tell_dropped(self) -> None:
        if self._dropped:
            self._write(f"… {self._dropped:,} bytes of the output of process {self._pid} were dropped\n")
            self._dropped = 0

    def _end_line(self) -> None:
        """Why at once: others write to the same stream."""
        if not self._ends_line:
            self._write("\n")

    def _write(self, text: str) -> None:
        self._ends_line = text.endswith("\n")
        stream = self._stream()
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.write(text)
                stream.flush()
