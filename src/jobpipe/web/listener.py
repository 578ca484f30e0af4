"""Listener: accepts connections while it is open; the supervisor says when (`acceptors.py`).

A server and its application are made anew each time it opens. Closing it ends streams, and lets requests under way end.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol


class Server(Protocol):
    """What serves, as far as the listener is concerned."""

    def start(self, listeners: list[socket.socket]) -> None: ...

    async def close(self) -> None: ...


class App(Protocol):
    """What is served."""

    def end_streams(self) -> None: ...


class Listener:
    """The connections of this process."""

    def __init__(self, make: Callable[[], tuple[Server, App]], sockets: Sequence[socket.socket]) -> None:
        self._make = make
        self._sockets = sockets
        self._open: tuple[Server, App] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def follow(self, commands: Callable[[], Awaitable[bool]], on_closed: Callable[[], None]) -> None:
        """Open or close as told, for ever."""
        while True:
            if await commands():
                self.open()
            else:
                await self.close()
                on_closed()

    def open(self) -> None:
        """Accept connections; does nothing if it is open."""
        if self._open is None:
            self._open = self._make()
            # Why copies: a server closes its sockets, and another one may follow.
            self._open[0].start([each.dup() for each in self._sockets])

    async def close(self) -> None:
        """Accept no more, and return when none is left; does nothing if it is closed."""
        if self._open is not None:
            server, app = self._open
            self._open = None
            app.end_streams()
            self._closing = asyncio.create_task(server.close())
        if self._closing is not None:
            await asyncio.shield(self._closing)  # Why: if this is cancelled, the server goes on closing
