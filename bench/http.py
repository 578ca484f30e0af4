"""`POST /enqueue` of a small JSON job on 64 kept-alive connections, next to a bare Starlette endpoint.

The server is a process of its own (`python -m bench.http memory 0 FOLDER`) on uvloop and one core; the load comes from
this one. The peer runs on uvicorn with httptools, decodes the body with msgspec, puts the job into an `asyncio.Queue` that a
coroutine drains, and answers an id. A connection sends its next request when it has the whole answer to the last.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from .disk import scratch
from .harness import Case, Goal, expect

_ROOT = Path(__file__).parents[1]
_CONNECTIONS = 64
_WARM_UP = 0.2  # seconds after each connection has had an answer
_PATIENCE = 30.0  # seconds for that
_BODY = b'{"type":"noop","payload":{"user":12345,"name":"somebody","tags":["a","b"]}}'
_REQUEST = (
    b"POST /enqueue HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%b"
)
_GOALS = {"memory": 0.8, "SQLite": 0.5}


def cases(*, quick: bool) -> list[Case]:
    seconds = 0.6 if quick else 0.8
    return [_case(store, workers, seconds) for workers in (0, 4) for store in _GOALS]


def _case(store: str, workers: int, seconds: float) -> Case:
    return Case(
        name="http",
        row=f"{store}, {workers} workers",
        shows=f"POST /enqueue a second with {_CONNECTIONS} connections, and so many workers in the same process",
        unit="/s",
        ours=partial(_requests_a_second, store.lower(), workers, seconds),
        peer=partial(_requests_a_second, "bare", 0, seconds),
        peer_name="bare Starlette + msgspec",
        ratio_of="ours/peer",
        goals=() if workers else (Goal(">=", _GOALS[store]),),
    )


# The load


def _requests_a_second(server: str, workers: int, seconds: float) -> float:
    with scratch() as folder, running(server, workers, folder) as port:
        return run(load(port, seconds))


def run(main: Any) -> float:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return float(runner.run(main))


class _Client(asyncio.Protocol):
    """One connection: a request, its answer, the next request."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._is_begun = False  # the answer: its head has come
        self._transport: asyncio.Transport | None = None
        self.answers = 0
        self.is_answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.wrong = b""
        """The first answer that was not 202."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, though by no base class
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self._is_begun:
            if not data.startswith(b"HTTP/1.1 202"):
                self.wrong = self.wrong or data
            self._is_begun = True
        if data.endswith(
            b"}"
        ):  # Why that is the end: the answer is one flat JSON object, and no head ends so
            self._is_begun = False
            if not self.answers:
                self.is_answered.set_result(None)
            self.answers += 1
            if self._transport is not None:
                self._transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()


async def load(
    port: int, seconds: float, connections: int = _CONNECTIONS, warm_up: float = _WARM_UP
) -> float:
    """Answers a second."""
    loop = asyncio.get_running_loop()
    request = _REQUEST % (port, len(_BODY), _BODY)
    clients = []
    for _ in range(connections):
        _, client = await loop.create_connection(lambda: _Client(request), "127.0.0.1", port)
        clients.append(client)
    async with asyncio.timeout(_PATIENCE):
        await asyncio.gather(*(client.is_answered for client in clients))
    await asyncio.sleep(warm_up)
    before, began = sum(client.answers for client in clients), perf_counter()
    await asyncio.sleep(seconds)
    answers, took = sum(client.answers for client in clients) - before, perf_counter() - began
    for client in clients:
        client.close()
    wrong = [client.wrong for client in clients if client.wrong]
    expect(connections - len(wrong), connections, f"connections that were answered well ({wrong[:1]})")
    return answers / took


@contextmanager
def running(server: str, workers: int, folder: Path) -> Iterator[int]:
    """A server in a process of its own; the port on which it listens."""
    command = (sys.executable, "-m", "bench.http", server, str(workers), str(folder))
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


# The servers, each in a process of its own


def serve(server: str, workers: int, folder: Path) -> None:
    """Serve until killed."""
    with socket.create_server(("127.0.0.1", 0), backlog=2 * _CONNECTIONS) as listener:
        listener.setblocking(False)
        run(_serve_bare(listener) if server == "bare" else _serve_ours(server, workers, folder, listener))


async def _serve_ours(server: str, workers: int, folder: Path, listener: socket.socket) -> float:
    from jobpipe import Jobpipe
    from jobpipe.web.serve import serve as serve_pipe

    url = {"memory": "memory://", "sqlite": f"sqlite:///{folder}/bench.db"}[server]
    pipe = Jobpipe(url, queue_size=0, workers=workers)

    @pipe.job("noop")
    async def noop(payload: Any) -> None:
        """The work."""

    await serve_pipe(pipe, [listener], asyncio.Event(), partial(_tell_port, listener))
    return 0.0


async def _serve_bare(listener: socket.socket) -> float:
    import msgspec
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    class Job(msgspec.Struct):
        payload: Any
        type: str = "webhook"
        queue: str = "default"
        id: str = ""

    decode = msgspec.json.Decoder(Job).decode
    encode = msgspec.json.Encoder().encode
    jobs: asyncio.Queue[Job] = asyncio.Queue()
    numbers = iter(range(10**9))

    async def drain() -> None:
        while True:
            await jobs.get()

    async def enqueue(request: Request) -> Response:
        job = decode(await request.body())
        job.id = f"job-{next(numbers)}"
        await jobs.put(job)
        return Response(encode({"id": job.id, "status": "queued"}), 202, media_type="application/json")

    app = Starlette(routes=[Route("/enqueue", enqueue, methods=["POST"])])
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
    draining = asyncio.create_task(drain())
    _tell_port(listener)  # Why so early: connections wait in the backlog until it is up
    await uvicorn.Server(config).serve([listener])
    draining.cancel()
    return 0.0


def _tell_port(listener: socket.socket) -> None:
    print(listener.getsockname()[1], flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
