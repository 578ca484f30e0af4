"""StreamClient: one client of the event stream, and what waits for it.

What is new is written past its task where the server can do so at once. Otherwise it waits in a backlog, in memory once
for all, which the task writes as the client reads; the client is cut off when that grows too long. All runs on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator

from .piece import EventsPiece, Piece

LONGEST_BACKLOG = 8_000
"""Events that may wait for one client."""
MOST_PROGRESS = 30
"""Looks at the progress of jobs that may wait for one client: those before are of no use any more."""

WriteAtOnce = Callable[[bytes], bool]
"""Writes a chunk of a body, or says that it would have to wait."""


class StreamClient:
    """Where it is, and what it gets next."""

    def __init__(self, write_at_once: WriteAtOnce | None) -> None:
        self._write_at_once = write_at_once
        self._backlog: deque[EventsPiece] = deque()
        self._waiting = 0
        """Events in the backlog."""
        self._news: Piece | None = None
        """The last pulse or heartbeat, if it was not sent yet: older ones are of no use to anybody."""
        self._progress: deque[Piece] = deque(maxlen=MOST_PROGRESS)
        """What was told of jobs' progress and was not sent yet."""
        self._bell = asyncio.Event()
        """Set while something waits for the task, which resets it when all is written; nothing may overtake that."""
        self._bell.set()  # what the store has comes first
        self._is_over = False
        self.after = 0
        """The number of the last event that was sent."""
        self.is_live = False
        """Does it get what is new? It does not while it catches up from the store, nor once it has left."""
        self.wants_pulse = False
        self.writer: asyncio.Task[None] | None = None

    def take(self, piece: EventsPiece) -> None:
        """Get what is new."""
        if not self.is_live or piece.last <= self.after:
            return
        if self.after < piece.first and self._has_written(piece):
            self.after = piece.last
            return
        self._backlog.append(piece)
        self._waiting += len(piece)
        self._bell.set()
        if self._waiting > LONGEST_BACKLOG and self.writer is not None:
            self.writer.cancel()

    def on_pulse(self, news: Piece) -> None:
        """Get a pulse."""
        if not self._has_written(news):
            self._news = news
            self._bell.set()

    def on_progress(self, news: Piece) -> None:
        """Get how far jobs are."""
        if self.is_live and not self._has_written(news):
            self._progress.append(news)
            self._bell.set()

    def beat(self, sign_of_life: Piece) -> None:
        """Get a heartbeat, unless something better is on its way."""
        if not self._bell.is_set():
            self.on_pulse(sign_of_life)

    def finish(self) -> None:
        """Have `write` return when all is written."""
        self._is_over = True
        self._bell.set()

    async def write(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        """Write what could not be written at once, until the stream is over."""
        while True:
            await self._bell.wait()
            for body in self._drain():
                await write(body)
                await asyncio.sleep(0)  # Why: only then it is known whether the connection takes more
            if self._is_over:
                return

    def _has_written(self, piece: Piece) -> bool:
        if self._write_at_once is None or self._bell.is_set():
            return False
        return self._write_at_once(piece.chunk)

    def _drain(self) -> Iterator[bytes]:
        while self._backlog or self._progress or self._news is not None:
            if self._backlog:
                piece = self._backlog.popleft()
                self._waiting -= len(piece)
                body = piece.since(self.after)
                self.after = max(self.after, piece.last)
                if body:
                    yield body
            elif self._progress:
                yield self._progress.popleft().body
            elif self._news is not None:
                news, self._news = self._news, None
                yield news.body
        self._bell.clear()
