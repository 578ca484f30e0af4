"""The tests' own bad network: a server that echoes lines, seen through it."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from typing import Self

import pytest

from .support.proxy import Proxy
from .support.waiting import LIMIT, eventually


class Echo(socketserver.StreamRequestHandler):
    """Answers each line with itself."""

    def handle(self) -> None:
        try:
            for line in self.rfile:
                self.server.heard.append(line)  # type: ignore[attr-defined]
                self.wfile.write(line)
        except OSError:
            pass


class EchoServer(socketserver.ThreadingTCPServer):
    daemon_threads = False
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Echo)
        self.heard: list[bytes] = []


@pytest.fixture
def server() -> Iterator[EchoServer]:
    with EchoServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(server: EchoServer) -> Iterator[Proxy]:
    with Proxy(("127.0.0.1", server.server_address[1])) as proxy:
        yield proxy


class Client:
    """Says a line, and hears one."""

    def __init__(self, proxy: Proxy, timeout: float = LIMIT) -> None:
        self.socket = socket.create_connection((proxy.host, proxy.port), timeout)

    def ask(self, line: bytes) -> bytes:
        self.socket.sendall(line)
        return self.hear()

    def hear(self) -> bytes:
        return self.socket.recv(100)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def test_carries_both_ways_for_many(proxy: Proxy) -> None:
    with Client(proxy) as one, Client(proxy) as two:
        assert [one.ask(b"a\n"), two.ask(b"b\n"), one.ask(b"c\n")] == [b"a\n", b"b\n", b"c\n"]


def test_cut_hangs_up_and_lets_in_again(proxy: Proxy) -> None:
    with Client(proxy) as client:
        assert client.ask(b"a\n")
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            client.hear()
    with Client(proxy) as client:
        assert client.ask(b"b\n") == b"b\n"


def test_stall_keeps_what_is_said_until_it_is_resumed(proxy: Proxy, server: EchoServer) -> None:
    with Client(proxy, 0.2) as client:
        proxy.stall()
        with pytest.raises(TimeoutError):
            client.ask(b"a\n")
        assert server.heard == []
        client.socket.settimeout(LIMIT)
        proxy.resume()
        assert client.hear() == b"a\n"


def test_delay_holds_for_each_way(proxy: Proxy) -> None:
    proxy.delay(0.1)
    with Client(proxy) as client:
        began_at = time.monotonic()
        assert client.ask(b"a\n") == b"a\n"
        assert time.monotonic() - began_at >= 0.2


def test_lost_reply_is_a_hang_up_after_the_request_was_heard(proxy: Proxy, server: EchoServer) -> None:
    proxy.lose_replies(1, after=b"poor")
    with Client(proxy) as rich, Client(proxy) as poor:
        assert rich.ask(b"rich\n") == b"rich\n"
        with pytest.raises(ConnectionResetError):
            poor.ask(b"poor\n")
    with Client(proxy) as poor:
        assert poor.ask(b"poor\n") == b"poor\n"
    assert server.heard == [b"rich\n", b"poor\n", b"poor\n"]
    assert proxy.lost == 1


def test_swallowed_messages_do_not_arrive_and_others_do(proxy: Proxy) -> None:
    proxy.swallow(b"news")
    with Client(proxy) as client:
        client.socket.sendall(b"news\n")
        eventually(lambda: proxy.lost)
        assert client.ask(b"a\n") == b"a\n"


def test_muted_server_hears_and_its_answers_are_gone_for_good(proxy: Proxy, server: EchoServer) -> None:
    with Client(proxy, 0.2) as client:
        proxy.mute()
        with pytest.raises(TimeoutError):
            client.ask(b"a\n")
        proxy.heal()
        client.socket.settimeout(LIMIT)
        assert client.ask(b"b\n") == b"b\n"
    assert server.heard == [b"a\n", b"b\n"]


def test_server_that_is_away_is_a_hang_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Proxy(("127.0.0.1", port)) as proxy, pytest.raises(ConnectionError), Client(proxy) as client:
        client.ask(b"a\n")
