"""RunLog: what one run has logged and is not stored yet. Handlers add to it from any thread.

Lines wait for the end of the run, or for the next heartbeat if it takes longer. They are handed over in chunks, which stay
here until they are known to be stored: a store that gets the same chunk again keeps it once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from ..model.logs import LARGEST_CHUNK, MOST_OF_ATTEMPT, LogChunk
from ..model.text import clean

_LONGEST_MESSAGE = 8_000
_LONGEST_NAME = 200
_BESIDE = 40
"""Bytes of a line as it is stored, without its texts."""
_Line = tuple[float, str, str, str]
_write = msgspec.json.Encoder().encode


class RunLog:
    """The lines of one run."""

    __slots__ = (
        *("_ahead", "_chunks", "_cut", "_is_closed", "_lines", "_lock"),
        *("_now", "_number", "_printed", "_size"),
    )

    def __init__(self, now: Callable[[], float], ahead: float) -> None:
        self._now = now
        self._ahead = ahead  # how much later it is by the clock of the store, which the history tells, too
        # Why reentrant: what is collected as garbage, or a signal handler, may log in the middle of it.
        self._lock = threading.RLock()
        self._lines: list[_Line] = []
        self._size = 0  # of these, in bytes, more or less
        self._number = 0  # lines of the run up to the last of these, those that were cut included
        self._cut = 0  # lines that were dropped since the last chunk
        self._chunks: list[LogChunk] = []  # handed over, but not known to be stored
        self._printed = ""  # the begin of a line of which the end is yet to be printed
        self._is_closed = False

    def add(self, level: str, logger: str, message: str) -> None:
        """Keep a line; the oldest ones give way where there are too many. After the end of the run nothing is kept."""
        if not message.isascii() or len(message) > _LONGEST_MESSAGE or "\x00" in message:
            message = clean(message, _LONGEST_MESSAGE)
        level, logger = str(level)[:_LONGEST_NAME], str(logger)[:_LONGEST_NAME]  # a program may use anything
        with self._lock:
            if self._is_closed:
                return
            self._lines.append((self._ahead + self._now(), level, logger, message))
            self._number += 1
            self._size += len(message) + len(logger) + _BESIDE
            if self._size > MOST_OF_ATTEMPT:
                self._drop_oldest()

    def print(self, text: str) -> None:
        """Keep what was printed, line by line."""
        with self._lock:
            *lines, self._printed = (self._printed + text).split("\n")
            if len(self._printed) > _LONGEST_MESSAGE:
                lines.append(self._printed)
                self._printed = ""
        for line in lines:
            self.add("INFO", "print", line)

    def _drop_oldest(self) -> None:
        """Why a quarter: else each line that is added would move all others."""
        dropped = 0
        while self._size > MOST_OF_ATTEMPT * 3 // 4 and dropped < len(self._lines) - 1:
            self._size -= _size_of(self._lines[dropped])
            dropped += 1
        del self._lines[:dropped]
        self._cut += dropped

    def unstored(self) -> list[LogChunk]:
        """All that is not known to be stored, oldest first: chunks that were handed over before, and new ones."""
        with self._lock:
            return list(self._seal())

    def stored(self, chunk: LogChunk) -> None:
        """It is stored, and with it all before."""
        with self._lock:
            self._chunks = [each for each in self._chunks if each.start > chunk.start]

    def close(self) -> tuple[LogChunk, ...]:
        """The same as `unstored`, when the run has ended."""
        if self._printed:
            self.print("\n")
        with self._lock:
            self._is_closed = True
            return tuple(self._seal())

    def _seal(self) -> list[LogChunk]:
        if self._lines:
            self._chunks += self._cut_up()
            self._lines = []
            self._size = 0
        if len(self._chunks) > 1:
            self._bound()
        return self._chunks

    def _bound(self) -> None:
        """Drop the oldest chunks where there are too many: lines that are long as JSON, or a store that is away."""
        size = sum(chunk.size for chunk in self._chunks)
        while size > MOST_OF_ATTEMPT and len(self._chunks) > 1:
            gone, following, *rest = self._chunks
            size -= gone.size
            self._chunks = [replace(following, cut=following.cut + gone.cut + gone.count), *rest]

    def _cut_up(self) -> Iterator[LogChunk]:
        start = self._number - len(self._lines)
        if self._size < LARGEST_CHUNK:
            yield self._chunk(start, self._lines)
            return
        lines, size = list[_Line](), 0
        for line in self._lines:
            if lines and size + _size_of(line) >= LARGEST_CHUNK:
                yield self._chunk(start, lines)
                start, lines, size = start + len(lines), [], 0
            lines.append(line)
            size += _size_of(line)
        yield self._chunk(start, lines)

    def _chunk(self, start: int, lines: list[_Line]) -> LogChunk:
        try:
            text = _write(lines)
        except UnicodeEncodeError:  # the name of a logger, or of a level, may be anything
            text = _write(
                [
                    (at, clean(level, _LONGEST_NAME), clean(logger, _LONGEST_NAME), message)
                    for at, level, logger, message in lines
                ]
            )
        cut, self._cut = self._cut, 0
        return LogChunk(start=start, cut=cut, count=len(lines), size=len(text), lines=text.decode())


def _size_of(line: _Line) -> int:
    return len(line[3]) + len(line[2]) + _BESIDE
