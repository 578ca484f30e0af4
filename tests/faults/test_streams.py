"""Hundreds of clients of `GET /events`, of which many vanish, or never read what they asked for."""

from __future__ import annotations

import resource
import selectors
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from ..support.waiting import LIMIT, eventually
from .programs import Program, Start, memory

CLIENTS = 500
MOST = 1_000
"""Streams that a service has."""
MIB = 1024 * 1024
REQUEST = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"
ABRUPTLY = struct.pack("ii", 1, 0)

pytestmark = pytest.mark.real  # with the memory of one process, and as many files as the test allows itself


class Readers:
    """Streams that a thread reads to their ends."""

    def __init__(self) -> None:
        self.tails: dict[socket.socket, bytes] = {}
        """The last that came on each."""
        self.ended: list[bytes] = []
        self._selector = selectors.DefaultSelector()
        self._is_over = False
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def add(self, stream: socket.socket) -> None:
        self.tails[stream] = b""
        self._selector.register(stream, selectors.EVENT_READ)

    def _read(self) -> None:
        while not self._is_over:
            for key, _ in self._selector.select(0.05):
                stream = key.fileobj
                assert isinstance(stream, socket.socket)
                try:
                    data = stream.recv(MIB)
                except ConnectionError:
                    data = b""
                if data:
                    self.tails[stream] = (self.tails[stream] + data)[-500:]
                else:
                    self._selector.unregister(stream)
                    self.ended.append(self.tails[stream])

    def have(self, id: str) -> bool:
        """Was the event of the job the last of all of them?"""
        return all(id.encode() in tail for tail in list(self.tails.values()))

    def close(self) -> None:
        self._is_over = True
        self._thread.join()
        self._selector.close()


class Crowd:
    """All clients of a test."""

    def __init__(self) -> None:
        self.readers = Readers()
        self._streams: list[socket.socket] = []

    def open(self, service: Program, room: int | None = None) -> socket.socket:
        """A stream that is served; with `room`, the system keeps no more than that for it."""
        stream = socket.socket()
        self._streams.append(stream)
        if room is not None:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        stream.settimeout(LIMIT)
        stream.connect(("127.0.0.1", service.port))
        stream.sendall(REQUEST)
        answer = b""
        while b": connected\n\n" not in answer:
            data = stream.recv(4_096)
            assert data, answer
            answer += data
            assert answer.startswith(b"HTTP/1.1 200"), answer
        return stream

    def vanish(self, streams: list[socket.socket]) -> None:
        """Close them without a word."""
        for stream in streams:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABRUPTLY)
            stream.close()

    def close(self) -> None:
        self.readers.close()
        for stream in self._streams:
            stream.close()


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * MOST)), hard))
    crowd = Crowd()
    try:
        yield crowd
    finally:
        crowd.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def enqueue_many(service: Program) -> None:
    """More than the system keeps for a client that does not read."""
    for _ in range(3):
        jobs = [{"type": "mark", "queue": "q" * 100} for _ in range(1_000)]
        assert service.call("POST", "/enqueue/batch", {"jobs": jobs}, is_safe=False).status_code == 202


def test_places_and_memory_of_clients_that_vanish_or_never_read_come_back(
    durable: Start, crowd: Crowd
) -> None:
    """Fault 26: those that read miss nothing, and as many as before are served afterwards."""
    service = durable.serve("--workers", "0")
    crowd.vanish([crowd.open(service)])
    before = memory(service.child(), "VmRSS")
    for _ in range(CLIENTS // 2):
        crowd.readers.add(crowd.open(service))
    vanishing = [crowd.open(service) for _ in range(CLIENTS // 4)]
    mute = [crowd.open(service, room=4_096) for _ in range(CLIENTS // 4)]
    service.enqueue("mark")
    crowd.vanish(vanishing)
    enqueue_many(service)
    last = service.enqueue("mark")
    eventually(lambda: crowd.readers.have(last), "a reader missed the last event")
    assert not crowd.readers.ended
    crowd.vanish(mute)

    more = [crowd.open(service) for _ in range(MOST - CLIENTS // 2)]
    assert service.call("GET", "/events").status_code == 503
    crowd.vanish([*more, *crowd.readers.tails])
    eventually(lambda: is_served(service), "no place comes back")
    assert memory(service.child(), "VmRSS") - before < 60 * MIB


def is_served(service: Program) -> bool:
    with service.http.stream("GET", "/events") as answer:
        return answer.status_code == 200


def test_the_stop_is_not_held_up_by_clients(durable: Start, crowd: Crowd) -> None:
    """Fault 26: those that read see a proper end of their stream, the others are cut off."""
    service = durable.serve(
        "--workers", "0", "--grace", "10"
    )  # on a busy machine a proper end takes its time
    for _ in range(CLIENTS // 2):
        crowd.readers.add(crowd.open(service))
        crowd.open(service, room=4_096)
    enqueue_many(service)
    signalled_at = time.monotonic()
    service.signal(signal.SIGTERM)
    assert service.code() == 0
    # The grace and the two seconds beyond it, and some for a machine that is busy: the clients stay for ever.
    assert time.monotonic() - signalled_at < 30
    eventually(lambda: len(crowd.readers.ended) == CLIENTS // 2, "a stream has no end")
    assert {tail[-5:] for tail in crowd.readers.ended} == {b"0\r\n\r\n"}
