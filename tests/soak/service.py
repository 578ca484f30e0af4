"""The service under an even load of all kinds, with processes that are restarted at random: what stays, stays as it is.

Measured are a serving process that is never restarted, the supervisors, and the store, which is pruned all the while.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import httpx
import psycopg
import redis

from ..faults.programs import Program, Start, jobpipe
from ..histories.stages import STAGES
from ..support.waiting import LIMIT, eventually
from .gauges import MIB, Gauges

KEEP = 3.0
"""Seconds that finished jobs are kept."""
BATCH, EVERY = 20, 0.2
"""Jobs put in at once, and seconds between."""
LOOK_EVERY = 0.25
SAY_EVERY = 10.0
_MOST_WAL = 80 * MIB

Say = Callable[[str], object]


class Load:
    """Threads that put jobs in, look at them, and listen, until they are told to end."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_over = threading.Event()
        self.sent = 0
        self.failures: list[str] = []
        """What went wrong beyond connections that broke with a process."""
        self._threads = [
            threading.Thread(target=self._again_and_again, args=[do, every], name=do.__name__)
            for do, every in ((self._send, EVERY), (self._look, 0.1), (self._listen, 0.5), (self._err, 0.3))
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(LIMIT)

    def _again_and_again(self, do: Callable[[httpx.Client], None], every: float) -> None:
        with httpx.Client(verify=False, base_url=self._url, timeout=LIMIT) as http:
            while not self._is_over.wait(every):
                try:
                    do(http)
                except httpx.TransportError:
                    pass  # the process at the other end was killed
                except Exception as error:
                    self.failures.append(f"{do.__name__}: {error!r}")

    def _send(self, http: httpx.Client) -> None:
        """Most are done at once; some fail for good, run again, take a while, or come later."""
        jobs: list[dict[str, object]] = [{"payload": "x" * 200} for _ in range(BATCH - 4)]
        jobs += [
            {"type": "fail", "payload": "as told", "max_retries": 0},
            {"type": "fail", "payload": "again", "max_retries": 1},
            {"type": "sleep", "payload": 0.05},
            {"payload": "later", "delay": 1},
        ]
        answer = http.post("/enqueue/batch", json={"jobs": jobs})
        assert answer.status_code == 202, answer.text
        self.sent += BATCH

    def _look(self, http: httpx.Client) -> None:
        for path in ("/jobs?limit=20", "/stats", "/queues", "/metrics", "/"):
            assert http.get(path).status_code == 200
        for job in http.get("/jobs?limit=2").json()["jobs"]:
            assert http.get(f"/jobs/{job['id']}/wait?timeout=1").status_code in (200, 404)

    def _listen(self, http: httpx.Client) -> None:
        with http.stream("GET", "/events") as events:
            for number, _ in enumerate(events.iter_lines()):
                if number > 50 or self._is_over.is_set():
                    return

    def _err(self, http: httpx.Client) -> None:
        assert http.get("/jobs/unknown").status_code == 404
        assert (
            http.post("/enqueue", content=b"{", headers={"Content-Type": "application/json"}).status_code
            == 400
        )


class Restarts:
    """Kills and restarts everything but the one process that is measured."""

    def __init__(self, start: Start, url: str, seed: int) -> None:
        self._rng = random.Random(seed)
        self._start = start
        self.service = start.command(jobpipe("serve", "--port", "0", "--store", url, "--processes", "2"))
        self._call = jobpipe("worker", "--store", url, "--processes", "2")
        self.worker = start.command(self._call)
        _ = self.service.url
        self.spared = eventually(self.service.children)[0]
        self.count = 0

    def again(self) -> None:
        self.count += 1
        self._rng.choice((self._kill_server, self._kill_worker, self._kill_worker, self._stop_worker))()

    def _kill_server(self) -> None:
        self._kill([pid for pid in self.service.children() if pid != self.spared])

    def _kill_worker(self) -> None:
        self._kill(self.worker.children())

    def _kill(self, pids: list[int]) -> None:
        if pids:
            with suppress(ProcessLookupError):
                os.kill(self._rng.choice(pids), signal.SIGKILL)

    def _stop_worker(self) -> None:
        self.worker.signal(signal.SIGTERM)
        self.worker.code()
        self.worker = self._start.command(self._call)

    @property
    def next_in(self) -> float:
        return self._rng.uniform(1.0, 4.0)


def _sqlite_size(url: str) -> float:
    """The pages in use and those that are free to be used: the file, once the log is folded into it."""
    path = url.removeprefix("sqlite:///")
    log = Path(f"{path}-wal")
    assert not log.exists() or log.stat().st_size < _MOST_WAL, "the log of SQLite grows without end"
    with closing(sqlite3.connect(path, timeout=LIMIT)) as connection:
        ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
    return float(pages * size)


def _redis_size(url: str) -> float:
    with closing(redis.Redis.from_url(url, protocol=2)) as client:
        return float(client.info("memory")["used_memory_dataset"])


def _postgres_size(url: str) -> float:
    with psycopg.connect(url) as connection:
        ((size,),) = connection.execute(
            "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::float8 FROM pg_class "
            "WHERE relnamespace = 'jobpipe'::regnamespace AND relkind = 'r'"
        ).fetchall()
    return float(size)


SIZES: dict[str, Callable[[str], float]] = {
    "sqlite": _sqlite_size,
    "redis": _redis_size,
    "postgres": _postgres_size,
}
"""Bytes of a store, by its name."""


def soak(store: str, seconds: float, seed: int, say: Say = lambda _: None) -> tuple[Gauges, list[str]]:
    """Soak the service on that store: the gauges, and what else was wrong."""
    gauges = Gauges()
    with tempfile.TemporaryDirectory(prefix=f"soak-{store}-") as name, STAGES[store](Path(name)) as stage:
        start = Start(Path(name))
        start.env = {
            "QUEUE_SIZE": "0",
            "JOBPIPE_KEEP": f"{KEEP:g}",
            "JOBPIPE_LEASE": "2",
            "JOBPIPE_GRACE": "2",
        }
        try:
            restarts = Restarts(start, stage.direct_url, seed)
            load = Load(restarts.service.url)
            try:
                _watch(gauges, restarts, load, lambda: SIZES[store](stage.direct_url), seconds, say)
            finally:
                load.close()
            problems = [*load.failures[:10], *_complaints(start.programs)]
            if restarts.spared not in restarts.service.children():
                problems.append("the process that was measured has died")
            say(f"{load.sent:,} jobs sent, {restarts.count} restarts")
        finally:
            start.close()
    return gauges, problems


def _watch(
    gauges: Gauges, restarts: Restarts, load: Load, size: Callable[[], float], seconds: float, say: Say
) -> None:
    began_at = time.monotonic()
    restart_at = began_at + 5.0
    say_at = began_at + SAY_EVERY
    with httpx.Client(verify=False, base_url=restarts.service.url, timeout=LIMIT) as http:
        while (now := time.monotonic()) < began_at + seconds:
            if now >= restart_at:
                restarts.again()
                restart_at = now + restarts.next_in
            gauges.read_process("server", restarts.spared)
            gauges.read_process("supervisor", restarts.service.pid)
            gauges.read("store: size", "store", size())
            with suppress(httpx.TransportError):
                stats = http.get("/stats").json()
                gauges.read("store: jobs", "jobs", sum(n for n in stats.values() if isinstance(n, int)))
            if now >= say_at:
                say_at += SAY_EVERY
                say(f"{now - began_at:5.0f} s  {load.sent:,} sent, {gauges.now()}")
            time.sleep(LOOK_EVERY)


def _complaints(programs: list[Program]) -> list[str]:
    return [
        f"{program.log.name}: {line}"
        for program in programs
        for line in program.output.splitlines()
        if line.startswith("Traceback")
    ]
