"""Canary: a real HTTP server on loopback that counts connections, keeps what it was sent, and answers as told."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Received:
    """A request as it came in."""

    line: str
    headers: dict[str, str]
    """By name in lower case."""
    body: bytes


Answer = Callable[[Received], bytes | Iterable[bytes]]


def answer(status: int = 200, body: bytes | str = b"", **headers: str) -> bytes:
    """A whole answer, with the length of its body."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


def redirect(location: str, status: int = 302) -> bytes:
    """An answer that leads elsewhere."""
    return answer(status, "elsewhere", Location=location)


class Canary:
    """Listens within `with`."""

    def __init__(
        self, respond: Answer = lambda _: answer(200, "tweet"), *, tls: ssl.SSLContext | None = None
    ) -> None:
        self.respond = respond
        self.connections = 0
        self.requests: list[Received] = []
        self.asked = threading.Event()
        """A request has come in."""
        self.broken = threading.Event()
        """A client has gone away before it had its whole answer."""
        self.released = threading.Event()
        """Set at the end: those who wait for it let their connection go."""
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.origin = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name="canary")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            connection.settimeout(30)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with self._tls.wrap_socket(connection, server_side=True) if self._tls else connection as line:
                received = _read(line)
                if received is None:
                    return
                self.requests.append(received)
                self.asked.set()
                told = self.respond(received)
                for piece in [told] if isinstance(told, bytes) else told:
                    line.sendall(piece)
        except OSError:
            self.broken.set()

    def hold(self, _: Received) -> Iterable[bytes]:
        """Begin an answer, and never end it: `respond=canary.hold` of a slow server."""
        yield b"HTTP/1.1 200 OK\r\n"
        self.released.wait()

    def trickle(self, _: Received) -> Iterable[bytes]:
        """A header that goes on and on, until the client goes away."""
        yield b"HTTP/1.1 200 OK\r\nX-More: "
        yield from self._drops()

    def trickle_body(self, _: Received) -> Iterable[bytes]:
        """A body that does."""
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        yield from self._drops()

    def _drops(self) -> Iterable[bytes]:
        while not self.released.wait(0.05):
            yield b"x"


def _read(connection: socket.socket) -> Received | None:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := connection.recv(65_536)):
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    line, *rest = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65_536)
    return Received(line, headers, body)
