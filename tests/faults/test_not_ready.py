"""Callers never meet a process that is not ready while another is: at the start, at a replacement, at a stop of one."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from ..support.waiting import LIMIT, eventually
from .programs import Program, Start, jobpipe

HELD = """
import asyncio, os
from pathlib import Path
from jobpipe.process.link import SupervisorLink
from jobpipe.worker.service import Service
from app import pipe

start = Service.start

async def held(self):
    Path(f"starting-{os.getpid()}").touch()
    while not os.path.exists(f"go-{os.getpid()}"):
        await asyncio.sleep(0.01)
    await start(self)

Service.start = held
ready = SupervisorLink.ready

def told(self):
    ready(self)
    Path(f"ready-{os.getpid()}").touch()

SupervisorLink.ready = told
"""
"""The app, whose processes are ready only when they are let go."""


class Caller:
    """Reads and writes all the time, on new connections and on kept ones; counts what it is answered."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ended = threading.Event()
        self.answers: Counter[int] = Counter()
        self.refusals: list[str] = []
        self.broken = 0

    def calls(self, count: int) -> None:
        """Return after so many more answers."""
        wanted = self.answers.total() + count
        eventually(lambda: self.answers.total() >= wanted, lambda: (self.answers, self.broken))

    def is_served(self, count: int) -> bool:
        """Is none of so many more calls refused?"""
        before = len(self.refusals)
        self.calls(count)
        return len(self.refusals) == before

    def _call(self, keeps: bool) -> None:
        with httpx.Client(verify=False, base_url=self._url, timeout=LIMIT) as client:
            headers = {} if keeps else {"Connection": "close"}
            while not self._ended.is_set():
                for method, path in (("GET", "/readyz"), ("GET", "/stats"), ("POST", "/enqueue")):
                    json = {"type": "mark"} if method == "POST" else None
                    try:
                        answer = client.request(method, path, json=json, headers=headers)
                    except httpx.TransportError:
                        self.broken += 1  # the process was killed, or closed a kept connection that was idle
                    else:
                        self.answers[answer.status_code] += 1
                        if answer.is_error:
                            self.refusals.append(f"{method} {path}: {answer.text}")

    @contextmanager
    def calling(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._call, args=[keeps]) for keeps in (True, False)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def begun(folder: Path, service: Program) -> list[int]:
    """The children that have come as far as to need the store, the oldest first."""
    return [pid for pid in sorted(service.children()) if (folder / f"starting-{pid}").exists()]


def status(service: str, path: str) -> int:
    try:
        return httpx.get(f"{service}{path}", timeout=LIMIT).status_code
    except httpx.TransportError:
        return 0


def test_no_caller_is_sent_away_while_a_process_is_ready(durable: Start) -> None:
    """Fault 49: it takes seconds, as three processes start."""
    folder = durable.folder
    (folder / "held.py").write_text(HELD)
    url = f"http://127.0.0.1:{free_port()}"
    arguments = ["held:pipe", "--processes", "2", "--port", url.rpartition(":")[2], "--grace", "60"]
    service = durable.command(jobpipe("serve", *arguments))

    first, second = eventually(lambda: found if len(found := begun(folder, service)) == 2 else None)
    eventually(lambda: status(url, "/health") == 200)
    assert status(url, "/readyz") == status(url, "/stats") == 503

    # Why the second: the first is the one that has taken the connections so far.
    durable.let_go(second)
    eventually(lambda: status(url, "/readyz") == 200)
    caller = Caller(url)
    with caller.calling():
        caller.calls(60)
        durable.let_go(first)
        service.line("listening on")
        caller.calls(30)

        os.kill(second, signal.SIGKILL)
        third = eventually(lambda: next(iter({*begun(folder, service)} - {first, second}), None))
        caller.calls(60)
        durable.let_go(third)
        eventually(lambda: all((folder / f"ready-{pid}").exists() for pid in (first, third)))
        caller.calls(30)
        assert not caller.refusals, (caller.answers, service.output)

        busy = durable.begun(service.enqueue("stuck"))
        os.kill(busy, signal.SIGTERM)  # it alone, and it takes the whole grace
        eventually(lambda: caller.is_served(60))
        assert busy in service.children()
