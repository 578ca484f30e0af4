"""`POST /enqueue` while 500 clients follow `GET /events`, next to the same service without them.

Each job is an event to each of the clients, which read all of it in a process of their own (`python -m bench.streams
PORT`), as their machines would. So the figure is what their number costs those who enqueue.
"""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from .disk import scratch
from .harness import Case, Goal, expect
from .http import load, run, running

_ROOT = Path(__file__).parents[1]
_STREAMS = 500
_ENQUEUERS = 4
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
        return run(load(port, seconds, _ENQUEUERS))


@contextmanager
def _followed(port: int, streams: int) -> Iterator[None]:
    """So many clients, from when all of them are served; all of them have to be there at the end."""
    command = (sys.executable, "-m", "bench.streams", str(port), str(streams))
    with subprocess.Popen(
        command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            expect(int(process.stdout.readline()), streams, "streams that were opened")
            yield
            process.stdin.close()
            expect(int(process.stdout.readline()), streams, "streams that were open to the end")
        finally:
            process.kill()


def follow(port: int, streams: int) -> None:
    """Read all that comes on so many streams until the input ends; say how many there are before and after."""
    with selectors.DefaultSelector() as selector:
        for _ in range(streams):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.sendall(_REQUEST)
            while not connection.recv(65_536).endswith(b": connected\n\n\r\n"):
                pass
            selector.register(connection, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        print(streams, flush=True)
        room = bytearray(1 << 20)
        while True:
            for key, _ in selector.select():
                if not isinstance(key.fileobj, socket.socket):
                    print(len(selector.get_map()) - 1, flush=True)
                    return
                if not key.fileobj.recv_into(room):
                    selector.unregister(key.fileobj)


if __name__ == "__main__":
    follow(int(sys.argv[1]), int(sys.argv[2]))
