"""What the tests of connections run: a server on a clock of its own, a small application, and clients that speak raw HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from jobpipe.web.server.limits import Limits
from jobpipe.web.server.server import Server
from jobpipe.web.tally import Tally

LIMITS = Limits(sweep=0.01)
"""Those of the service, looked at often."""
HOST = b"Host: localhost\r\n"
HEALTH = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
CHUNKED = b"POST /echo HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
KIB = 1024


class App:
    """Answers what it was asked; `/events` and `/wait` last until the client is gone."""

    def __init__(self) -> None:
        self.open = 0
        self.scopes: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        path = scope["path"]
        if path in ("/events", "/wait"):
            self.open += 1
            try:
                if path == "/events":
                    await send({"type": "http.response.start", "status": 200, "headers": []})
                    await send({"type": "http.response.body", "body": b"begun", "more_body": True})
                while (await receive())["type"] != "http.disconnect":
                    pass
            finally:
                self.open -= 1
            return
        if path == "/raise":
            raise ValueError("a bug")
        if path == "/half":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
            return
        body = b"ok"
        if path == "/large":
            body = b"x" * 100 * KIB
        elif path == "/echo":
            parts = []
            while (message := await receive())["type"] == "http.request":
                parts.append(message["body"])
                if not message["more_body"]:
                    break
            else:
                return
            body = b"".join(parts)
            self.bodies.append(body)
        status = 413 if path == "/refuse" else 204 if path == "/nothing" else 200
        headers = [] if path == "/stream" or status == 204 else [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if status == 204 else body})


class Client:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next one."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        body = b""
        if "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            while size := int(await self.reader.readline(), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readline()
        return int(head[0].split()[1]), headers, body

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        await self.send(request)
        return await self.answer()

    async def rest(self) -> bytes:
        """What comes until the server ends the connection."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""


class World:
    """A server and its clients."""

    def __init__(self, server: Server, app: App, port: int) -> None:
        self.server = server
        self.app = app
        self.port = port
        self.clients: list[Client] = []
        self.time = 0.0
        """What the server takes for the time."""
        server.now = lambda: self.time

    async def pass_by(self, condition: Callable[[], object]) -> float:
        """Let time go by, a second at a time, until it holds; how many seconds that took."""
        began = self.time
        while not condition():
            await asyncio.sleep(1.5 * LIMITS.sweep)  # so that the server looks at its timers
            self.time += 1.0
            assert self.time - began < 1_000
        return self.time - began

    async def connect(self, room: int | None = None) -> Client:
        """A connection; with `room`, the client's system keeps no more than that for it."""
        end = socket.socket()
        if room is not None:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        end.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(end, ("127.0.0.1", self.port))
        except OSError:
            end.close()
            raise
        self.clients.append(Client(*await asyncio.open_connection(sock=end, limit=2 * KIB)))
        return self.clients[-1]

    async def is_well(self) -> bool:
        client = await self.connect()
        status, _, _ = await client.ask(HEALTH)
        client.writer.close()
        return status == 200


Scenario = Callable[[World], Coroutine[Any, Any, None]]


@contextlib.asynccontextmanager
async def world(limits: Limits, tally: Tally | None = None) -> AsyncIterator[World]:
    listener = socket.create_server(("127.0.0.1", 0))
    app = App()
    server = Server(app, limits, tally)
    server.start([listener])
    found = World(server, app, listener.getsockname()[1])
    try:
        yield found
    finally:
        for client in found.clients:
            client.writer.transport.abort()
        await server.close()


Run = Callable[..., None]
