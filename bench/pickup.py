"""Pick-up latency at 100 jobs/s: from just before a job is put in until its handler begins.

The gaps between jobs vary at random around 10 ms, so that no poll can fall into step with them. The instant is the
payload, by the monotonic clock, which all processes of a machine share. The first jobs, which open connections, do
not count. In two processes, one puts in (`python -m bench.pickup ours PATH JOBS`) and this one runs.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import quantiles
from time import monotonic, sleep
from typing import Any

from jobpipe import Jobpipe

from .disk import scratch
from .harness import Case, Goal, Shared, expect

_ROOT = Path(__file__).parents[1]
RATE = 100  # jobs a second
WARM_UP = 25  # jobs that do not count
_WORKERS = 4
_PATIENCE = 30.0  # seconds for the last job to come

Latencies = list[float]


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to put jobs in and run them, and what is expected of it."""

    row: str
    ours: Callable[[int], Latencies]
    p50: float  # milliseconds
    p99: float
    peer: Callable[[int], Latencies] | None = None


_WAYS = (
    _Way("memory", lambda n: asyncio.run(_in_one_process("memory://", n)), 2, 10),
    _Way("SQLite", lambda n: _on_disk(_ours_alone, n), 2, 10, lambda n: _on_disk(_huey_alone, n)),
    _Way(
        "SQLite, 2 processes",
        lambda n: _on_disk(_ours_and_other, n),
        4,
        10,
        lambda n: _on_disk(_huey_and_other, n),
    ),
)


def cases(*, quick: bool) -> list[Case]:
    n = WARM_UP + (100 if quick else 200)
    return [case for way in _WAYS for case in _rows(way, n)]


def _rows(way: _Way, n: int) -> list[Case]:
    ours = Shared(partial(way.ours, n))
    peer = None if way.peer is None else Shared(partial(way.peer, n))
    return [
        Case(
            name="pickup",
            row=f"{way.row}, p{percent}",
            shows=f"from enqueue to the handler's beginning at {RATE} jobs/s, {percent} % of jobs within",
            unit="ms",
            ours=ours.figure(partial(within, percent)),
            peer=None if peer is None else peer.figure(partial(within, percent)),
            peer_name="" if peer is None else "huey",
            goals=(Goal("<=", goal, on="ours"),),
        )
        for percent, goal in ((50, way.p50), (99, way.p99))
    ]


def within(percent: int, latencies: Latencies) -> float:
    """Milliseconds."""
    return quantiles(latencies, n=100, method="inclusive")[percent - 1] * 1000


def _on_disk(measure: Callable[[Path, int], Latencies], n: int) -> Latencies:
    with scratch() as folder:
        return measure(folder / "bench.db", n)


class _Starts:
    """The latencies that handlers noted, until all have come."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._latencies: Latencies = []
        self._have_come = threading.Event()

    def note(self, sent_at: float) -> None:
        self._latencies.append(monotonic() - sent_at)
        if len(self._latencies) == self._n:
            self._have_come.set()

    def wait(self) -> Latencies:
        self._have_come.wait(_PATIENCE)
        expect(len(self._latencies), self._n, "jobs picked up")
        return self._latencies[WARM_UP:]


def beats(n: int) -> Iterator[float]:
    """Seconds to wait before each job: never made up for, so that a slow enqueue makes no burst."""
    random = Random(n)
    return (random.uniform(0.5, 1.5) / RATE for _ in range(n))


# Ours


def _ours_alone(path: Path, n: int) -> Latencies:
    return asyncio.run(_in_one_process(f"sqlite:///{path}", n))


async def _in_one_process(store: str, n: int) -> Latencies:
    pipe, starts = Jobpipe(store), _Starts(n)
    _register(pipe, starts)
    async with pipe, pipe.running(workers=_WORKERS):
        await _enqueue(pipe, n)
        return await asyncio.to_thread(starts.wait)


def _ours_and_other(path: Path, n: int) -> Latencies:
    async def run() -> Latencies:
        pipe, starts = Jobpipe(f"sqlite:///{path}"), _Starts(n)
        _register(pipe, starts)
        async with pipe, pipe.running(workers=_WORKERS):
            with _other_process("ours", path, n):
                return await asyncio.to_thread(starts.wait)

    return asyncio.run(run())


def _register(pipe: Jobpipe, starts: _Starts) -> None:
    @pipe.job("note")
    async def note(sent_at: float) -> None:
        starts.note(sent_at)


async def _enqueue(pipe: Jobpipe, n: int) -> None:
    for pause in beats(n):
        await asyncio.sleep(pause)
        await pipe.enqueue("note", monotonic())


# huey


def _huey_alone(path: Path, n: int) -> Latencies:
    from .peers_huey import HueyQueue

    starts = _Starts(n)
    queue = HueyQueue(path, starts.note)
    with queue.running():
        _put(queue.put, n)
        latencies = starts.wait()
    queue.close()
    return latencies


def _huey_and_other(path: Path, n: int) -> Latencies:
    from .peers_huey import HueyQueue

    starts = _Starts(n)
    queue = HueyQueue(path, starts.note)
    with queue.running(), _other_process("huey", path, n):
        latencies = starts.wait()
    queue.close()
    return latencies


def _put(put: Callable[[Any], object], n: int) -> None:
    for pause in beats(n):
        sleep(pause)
        put(monotonic())


# The other process


@contextmanager
def _other_process(who: str, path: Path, n: int) -> Iterator[None]:
    """One that puts the jobs in; it has ended after the block."""
    command = (sys.executable, "-m", "bench.pickup", who, str(path), str(n))
    with subprocess.Popen(command, cwd=_ROOT) as process:
        try:
            yield
        except BaseException:
            process.kill()
            raise
    expect(process.returncode, 0, "as exit code of the process that puts jobs in")


def put_in(who: str, path: Path, n: int) -> None:
    """The whole life of the other process."""
    if who == "huey":
        from .peers_huey import HueyQueue

        queue = HueyQueue(path, lambda payload: None)
        _put(queue.put, n)
        queue.close()
        return

    async def run() -> None:
        async with Jobpipe(f"sqlite:///{path}") as pipe:
            await _enqueue(pipe, n)

    asyncio.run(run())


if __name__ == "__main__":
    put_in(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
