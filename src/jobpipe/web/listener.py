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

    should_exit: bool

    async def serve(self, sockets: list[socket.socket]) -> None: ...


class App(Protocol):
    """What is served."""

    def end_streams(self) -> None: ...


class Listener:
    """The connections of this process."""

    def __init__(self, make: Callable[[], tuple[Server, App]], sockets: Sequence[socket.socket]) -> None:
        self._make = make
        self._sockets = sockets
        self._open: tuple[Server, App, asyncio.Task[None]] | None = None

    async def follow(self, commands: Callable[[], Awaitable[bool]], on_closed: Callable[[], None]) -> None:
        """Open or close as told; returns only if the server fails."""
        while True:
            command = asyncio.ensure_future(commands())
            serving = [] if self._open is None else [self._open[2]]
            try:
                await asyncio.wait([command, *serving], return_when=asyncio.FIRST_COMPLETED)
            finally:
                command.cancel()
            if not command.done():
                return
            if command.result():
                self.open()
            else:
                await self.close()
                on_closed()

    def open(self) -> None:
        """Accept connections; does nothing if it is open."""
        if self._open is None:
            server, app = self._make()
            # Why copies: a server closes its sockets, and another one may follow.
            serving = asyncio.create_task(server.serve([each.dup() for each in self._sockets]))
            self._open = (server, app, serving)

    async def close(self) -> None:
        """Accept no more, and return when none is left; does nothing if it is closed."""
        if self._open is None:
            return
        server, app, serving = self._open
        app.end_streams()
        server.should_exit = True
        await asyncio.wait(
            [serving]
        )  # Why not `await serving`: if this is cancelled, the server goes on closing
        self._open = None
        await serving
