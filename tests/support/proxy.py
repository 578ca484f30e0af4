"""Proxy: stands between a client and a server, and is the bad network that a test wants.

It carries bytes over TCP both ways, and on command hangs up, stands still, dawdles, loses replies or single
messages. One event loop in one thread does it all; its commands may be given from any thread and hold when they return.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from .waiting import LIMIT

_PIECE = 65_536

Server = tuple[str, int] | str
"""Host and port, or the path of a socket."""


class _Line:
    """One client's connection, both ends of it."""

    def __init__(self, *writers: asyncio.StreamWriter) -> None:
        self._writers = writers
        self.asked = b""
        """What the client has said since the last reply."""

    def cut(self) -> None:
        """Hang up on both, with a reset: what is on its way is gone."""
        for writer in self._writers:
            _reset(writer)


class Proxy:
    """A port of its own that leads to the server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lines: set[_Line] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._delay = 0.0
        self._losing = 0
        self._loses_after = b""
        self._swallows = b""
        self._is_mute = False
        self.lost = 0
        """Replies and messages that it has lost so far."""
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._flows.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._thread.start()
        self._listener = self._do(self._listen())
        self.host, self.port = self._listener.sockets[0].getsockname()[:2]

    # Commands

    def cut(self) -> None:
        """Hang up on all; who calls again is connected."""
        self._tell(self._cut_all)

    def stall(self) -> None:
        """Carry nothing, for old connections and new ones, without hanging up, until it is resumed."""
        self._tell(self._flows.clear)

    def resume(self) -> None:
        """Carry on, with what has come meanwhile."""
        self._tell(self._flows.set)

    def delay(self, seconds: float) -> None:
        """Let every piece arrive so much later, in both directions."""
        self._set(_delay=seconds)

    def lose_replies(self, count: int, after: bytes = b"") -> None:
        """Carry the next requests, but hang up in place of so many replies; only those to what holds these bytes."""
        self._set(_losing=count, _loses_after=after)

    def swallow(self, words: bytes) -> None:
        """Let no piece of the server's arrive that holds these bytes, and carry all others."""
        self._set(_swallows=words)

    def mute(self) -> None:
        """Let nothing of the server's arrive, without hanging up: half-open connections."""
        self._set(_is_mute=True)

    def heal(self) -> None:
        """Be a good network again; connections stay."""
        self._set(_delay=0.0, _losing=0, _swallows=b"", _is_mute=False)
        self.resume()

    def close(self) -> None:
        """Hang up on all, and end."""
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _set(self, **values: Any) -> None:
        self._tell(lambda: self.__dict__.update(values))

    def _tell(self, do: Callable[[], object]) -> None:
        async def tell() -> None:
            do()

        self._do(tell())

    def _do(self, call: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result(LIMIT)

    # Carrying

    def _cut_all(self) -> None:
        for line in list(self._lines):
            line.cut()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _close(self) -> None:
        self._listener.close()
        self._cut_all()
        # Why all, until there are none: a connection may have been accepted in this very moment.
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def hang_up(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            _reset(writer)  # nobody is there, or this is the end, which may come before it has begun

        task = self._loop.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(hang_up)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            await self._join(reader, writer)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flows.wait()
        if isinstance(self._server, str):
            there, away = await asyncio.open_unix_connection(self._server)
        else:
            there, away = await asyncio.open_connection(*self._server)
        line = _Line(writer, away)
        self._lines.add(line)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._carry(line, reader, away, is_reply=False))
                tasks.create_task(self._carry(line, there, writer, is_reply=True))
        except* OSError:
            pass  # one of them has hung up
        finally:
            self._lines.discard(line)
            line.cut()

    async def _carry(
        self, line: _Line, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, is_reply: bool
    ) -> None:
        while data := await source.read(_PIECE):
            await self._flows.wait()
            if self._delay:
                await asyncio.sleep(self._delay)
            if not is_reply:
                line.asked = (line.asked + data)[-_PIECE:]
            elif self._is_lost(line, data):
                continue
            target.write(data)
            await target.drain()
        # Why an error: the other direction ends with it.
        raise ConnectionResetError

    def _is_lost(self, line: _Line, data: bytes) -> bool:
        """Is a piece of the server's not to arrive?"""
        asked, line.asked = line.asked, b""
        is_swallowed = self._is_mute or (self._swallows and self._swallows in data)
        is_cut = self._losing > 0 and self._loses_after in asked
        if is_cut:
            self._losing -= 1
            line.cut()
        self.lost += bool(is_swallowed or is_cut)
        return bool(is_swallowed or is_cut)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Hang up so that the other side notices even if it is only reading."""
    if not writer.transport.is_closing():
        end = writer.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
