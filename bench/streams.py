"""`POST /enqueue` while 500 clients follow `GET /events`, next to the same service without them.

Each job is an event to each of the clients, which read all of it in a process of their own (`python -m bench.streams
PORT STREAMS`), as their machines would. So the figure is what their number costs those who enqueue. It is taken when events
have gone out for longer than the service may hold them back, and counts only if all of them reach all clients.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from urllib.request import urlopen

from .disk import scratch
from .harness import Case, Goal, expect
from .http import load, run, running

_ROOT = Path(__file__).parents[1]
_STREAMS = 500
_ENQUEUERS = 4
_WARM_UP = 3.0
"""Seconds: events are up to two late, and what is not sent yet costs nothing yet."""
_PATIENCE = 20.0
_TAIL = 1_000
"""Bytes in which the last event is found."""
_REQUEST = b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def cases(*, quick: bool) -> list[Case]:
    seconds = 1.0 if quick else 2.0
    return [
        Case(
            name="streams",
            row=store,
            shows=f"POST /enqueue a second on {_ENQUEUERS} connections while {_STREAMS} clients read each event",
            unit="/s",
            ours=partial(_requests_a_second, store.lower(), _STREAMS, seconds),
            peer=partial(_requests_a_second, store.lower(), 0, seconds),
            peer_name="the same without clients",
            ratio_of="ours/peer",
            goals=(Goal(">=", 0.7),),
        )
        for store in ("memory", "SQLite")
    ]


def _requests_a_second(store: str, streams: int, seconds: float) -> float:
    with scratch() as folder, running(store, 0, folder) as port, _followed(port, streams):
        return run(load(port, seconds, _ENQUEUERS, _WARM_UP))


@contextmanager
def _followed(port: int, streams: int) -> Iterator[None]:
    """So many clients, from when all of them are served; each has to have each event in the end."""
    command = (sys.executable, "-m", "bench.streams", str(port), str(streams))
    with subprocess.Popen(
        command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            expect(int(process.stdout.readline()), streams, "streams that were opened")
            yield
            with urlopen(f"http://127.0.0.1:{port}/stats", timeout=_PATIENCE) as answer:
                print(json.load(answer)["queued"], file=process.stdin, flush=True)
            expect(int(process.stdout.readline()), streams, "streams that had all events")
        finally:
            process.kill()


def follow(port: int, streams: int) -> None:
    """Read all that comes on so many streams; say how many there are, and how many had the event that the input names."""
    tails: dict[socket.socket, bytes] = {}
    with selectors.DefaultSelector() as selector:
        for _ in range(streams):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(_REQUEST)
            while not connection.recv(65_536).endswith(b": connected\n\n\r\n"):
                pass
            selector.register(connection, selectors.EVENT_READ)
            tails[connection] = b""
        selector.register(sys.stdin, selectors.EVENT_READ)
        print(streams, flush=True)
        room = memoryview(bytearray(1 << 20))
        last, until = -1, float("inf")
        while monotonic() < until and _seen(tails, last) < streams:
            for key, _ in selector.select(1.0):
                if not isinstance(key.fileobj, socket.socket):
                    last, until = int(sys.stdin.readline()), monotonic() + _PATIENCE
                    selector.unregister(sys.stdin)
                elif size := key.fileobj.recv_into(room):
                    tails[key.fileobj] = (tails[key.fileobj] + room[max(size - _TAIL, 0) : size])[-_TAIL:]
                else:
                    selector.unregister(key.fileobj)
        print(_seen(tails, last), flush=True)


def _seen(tails: dict[socket.socket, bytes], last: int) -> int:
    """On how many streams the event was the last."""
    if last < 0:
        return -1
    numbers = [re.findall(rb"^id: (\d+)\n", tail, re.MULTILINE) for tail in tails.values()]
    return sum(bool(found) and int(found[-1]) >= last for found in numbers)


if __name__ == "__main__":
    follow(int(sys.argv[1]), int(sys.argv[2]))
