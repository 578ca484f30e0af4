"""Draining: jobs that wait in a store already, until it shows nothing outstanding, by workers that start on them.

Ours is the real command, `jobpipe worker`, with 16 slots, in one process and in two; the peers run in as many processes of
their own (`crew`), at their best settings. The clock starts when the workers say that they are ready, or with the first
job if that is earlier. Beside the speed stands how busy one CPU was kept by the workers and by the server: where the
two together were not, something waited for nothing.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import NamedTuple, TextIO, TypeAlias

import psutil

from .app import STARTS
from .crew import crew
from .disk import scratch
from .harness import Case, Goal, Shared, expect
from .processing import BATCH
from .queues import Queue, queue_of, run
from .servers import empty_postgres, empty_redis, process_behind

_ROOT = Path(__file__).parents[1]
OURS = "jobpipe"
_WAITING = "jobpipe, waiting"
LOGGING = "jobpipe, logging"
_APPS = {OURS: "bench.app:noop", _WAITING: "bench.app:waiting", LOGGING: "bench.app:logging_"}
_SLOTS = 16
_QUICKLY = 3
"""What a quick run divides the numbers of jobs by."""
_SHORTEST_LOOK, _LONGEST_LOOK = 0.02, 1.0
_PATIENCE = 120.0
_TWO = 1.3
"""What our two processes have to do of what two of the best peer do."""
_SCALES = 1.8
"""What two processes have to do of what one does, with jobs that wait."""
_BUSY = 70.0
"""Percent of one CPU that worker and server have to use together; the rest is the disk's, and the network's."""


Place: TypeAlias = Callable[[], AbstractContextManager[str]]
"""Gives the URL of a store with nothing in it."""


@contextmanager
def _file() -> Iterator[str]:
    with scratch() as folder:
        yield f"sqlite:///{folder}/bench.db"


@dataclass(frozen=True, slots=True)
class _Engine:
    """A kind of store, who is measured on it, and what is expected of us."""

    title: str
    place: Place
    peers: Mapping[str, int]
    """How many jobs each gets: the slower ones fewer, so that none takes much more than some seconds."""
    times: float
    """The best peer's figure, in one process."""
    has_server: bool = True


ENGINES = (
    _Engine("SQLite", _file, {"huey (SQLite)": 10_000, "litequeue": 10_000}, times=5, has_server=False),
    _Engine("PostgreSQL", empty_postgres, {"pgqueuer": 50_000}, times=1.8),
    _Engine("Redis", empty_redis, {"dramatiq": 10_000, "huey": 10_000}, times=8),
)
_JOBS = {OURS: 50_000, _WAITING: 8_000}


@dataclass(frozen=True, slots=True)
class Drained:
    """What one measurement found."""

    rate: float
    """Jobs a second."""
    worker: float
    """Percent of one CPU."""
    server: float

    @property
    def both(self) -> float:
        return self.worker + self.server


def cases(*, quick: bool) -> list[Case]:
    return [case for engine in ENGINES for case in _rows(engine, _QUICKLY if quick else 1)]


def _rows(engine: _Engine, divisor: int) -> Iterator[Case]:
    jobs = {**_JOBS, **engine.peers}
    found = {
        (kind, size): Shared(partial(drained, engine.place, kind, n // divisor, size))
        for kind, n in jobs.items()
        for size in (1, 2)
    }
    for size, times in ((1, engine.times), (2, _TWO)):
        for peer in engine.peers:
            yield Case(
                name="draining",
                row=f"{engine.title} by {size}, next to {peer}",
                shows=f"waiting no-op jobs a second on {engine.title}, until it shows nothing outstanding",
                unit="/s",
                ours=found[OURS, size].figure(_rate),
                peer=found[peer, size].figure(_rate),
                peer_name=peer,
                ratio_of="ours/peer",
                goals=(Goal(">=", times),),
            )
        yield from _busy_rows(engine, size, found[OURS, size])
    yield Case(
        name="draining",
        row=f"{engine.title} by 2, next to 1, jobs of 10 ms",
        shows=f"waiting jobs of 10 ms a second on {engine.title}, until it shows nothing outstanding",
        unit="/s",
        ours=found[_WAITING, 2].figure(_rate),
        peer=found[_WAITING, 1].figure(_rate),
        peer_name="1 process",
        ratio_of="ours/peer",
        goals=(Goal(">=", _SCALES),),
    )


def _busy_rows(engine: _Engine, size: int, found: Shared[Drained]) -> Iterator[Case]:
    figures: dict[str, tuple[Callable[[Drained], float], str]] = {
        "worker": (lambda it: it.worker, "our workers")
    }
    if engine.has_server:
        figures["server"] = (lambda it: it.server, "the server")
        figures["worker and server"] = (lambda it: it.both, "our workers and the server together")
    for who, (of, words) in figures.items():
        is_last = who == list(figures)[-1]
        yield Case(
            name="draining",
            row=f"{engine.title} by {size}, CPU of {who}",
            shows=f"percent of one CPU that {words} used meanwhile",
            unit="%",
            ours=found.figure(of),
            goals=(Goal(">=", _BUSY, on="ours"),) if is_last else (),
        )


def _rate(found: Drained) -> float:
    return found.rate


# One measurement


class _Start(NamedTuple):
    """When a process began its first job, and the CPU time that it had used until then."""

    at: float
    used: float


@dataclass(frozen=True, slots=True)
class _Workers:
    """Processes that run the jobs of one queue, ready."""

    processes: list[psutil.Process]
    """Those whose CPU time is counted; not that of the supervisor, which only waits."""
    starts: Callable[[], Sequence[_Start]]
    """Asked for when all jobs have run."""


def drained(
    place: Place,
    kind: str,
    n: int,
    size: int,
    settings: Mapping[str, str] | None = None,
) -> Drained:
    """Fill the queue, then let so many processes drain it; ours with some settings in their environment."""

    async def measure(url: str) -> Drained:
        queue = queue_of(kind, url)
        await queue.open()
        for first in range(0, n, BATCH):
            await queue.put_many([0.0] * min(BATCH, n - first))
        expect(await queue.outstanding(), n, "jobs waiting")
        start = partial(_command, _APPS[kind], settings or {}) if kind in _APPS else partial(_crew, kind)
        server = process_behind(url)
        served = _seconds(server)
        with start(url, size, n) as workers:
            ready_at = monotonic()
            await _until_done(queue, n, ready_at)
            ended_at, worked = monotonic(), _seconds(workers.processes)
            served = _seconds(server) - served
            starts = workers.starts()
        await queue.close()
        took = ended_at - min(ready_at, *(start.at for start in starts))
        worked -= sum(start.used for start in starts)
        return Drained(n / took, 100 * worked / took, 100 * served / took)

    with place() as url:
        return run(measure(url))


async def _until_done(queue: Queue, n: int, began_at: float) -> None:
    """Look seldom while much is left: on some servers a look at what is outstanding counts all of it."""
    async with asyncio.timeout(_PATIENCE):
        while left := await queue.outstanding():
            done = n - left
            rest = (monotonic() - began_at) * left / done if done else _SHORTEST_LOOK
            await asyncio.sleep(min(max(rest / 2, _SHORTEST_LOOK), _LONGEST_LOOK))


def _seconds(processes: list[psutil.Process]) -> float:
    """CPU time of them and of all that they started."""
    tree = [each for root in processes for each in (root, *root.children(recursive=True))]
    return sum(sum(each.cpu_times()[:4]) for each in tree)


@contextmanager
def _command(app: str, settings: Mapping[str, str], url: str, size: int, n: int) -> Iterator[_Workers]:
    options = ("--store", url, "--workers", str(_SLOTS), "--processes", str(size))
    command = (sys.executable, "-m", "jobpipe", "worker", app, *options)
    with (
        scratch() as starts,
        _killed_at_the_end(command, {**os.environ, **settings, STARTS: str(starts)}) as process,
    ):
        assert process.stderr is not None
        if not any(line.rstrip().endswith(" working") for line in process.stderr):
            raise RuntimeError(f"{command!r} has ended: this measurement is void")
        threading.Thread(target=_read_all, args=(process.stderr,), daemon=True).start()
        yield _Workers(
            psutil.Process(process.pid).children(), lambda: [_noted(note) for note in starts.iterdir()]
        )


def _read_all(stream: TextIO) -> None:
    """Why: who logs must not wait until somebody reads it."""
    for _ in stream:
        pass


def _noted(note: Path) -> _Start:
    return _Start(*map(float, note.read_text(encoding="utf-8").split()))


@contextmanager
def _killed_at_the_end(
    command: Sequence[str], environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, cwd=_ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()  # Why so abruptly: the figures are in; its children end with it


@contextmanager
def _crew(kind: str, url: str, size: int, n: int) -> Iterator[_Workers]:
    def starts() -> list[_Start]:
        instants = members.finish(n)  # Why instants: what was put in as the time of sending is 0
        expect(len(instants), n, "jobs run")
        return [_Start(min(instants), 0.0)]

    with crew(kind, url, size) as members:
        yield _Workers([], starts)
