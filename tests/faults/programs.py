"""Program: the real command in a process of its own, with its output in a file, and an HTTP client for it.

`eventually` is the one way to wait for them: a condition, looked at again and again.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from sqlite3 import connect
from typing import Any, TypeVar

import httpx

from jobpipe import Job
from jobpipe.stores import open_store
from jobpipe.stores.base import Filter, Store

from ..support.starting import popen
from ..support.waiting import LIMIT, eventually

T = TypeVar("T")


APP = """
import asyncio, os, time
from pathlib import Path
from jobpipe import Jobpipe, current_job

pipe = Jobpipe("sqlite:///jobs.db", port=0, lease=1, grace=1, queue_size=0)

def note():
    job = current_job()
    file = os.open("runs", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{job.id} {os.getpid()} {job.attempts}\\n".encode())  # in one piece
    os.close(file)

@pipe.job("mark", max_retries=50)
async def mark(payload):
    note()
    return payload

@pipe.job("hold")
async def hold():
    note()
    while not (os.path.exists("go") or os.path.exists(f"go-{os.getpid()}")):
        await asyncio.sleep(0.01)
    return os.getpid()

@pipe.job("stuck")
def stuck():
    note()
    time.sleep(1000)

@pipe.job("block")
async def block(seconds: float):
    note()
    until = time.monotonic() + seconds
    time.sleep(seconds / 2)
    while time.monotonic() < until:
        pass

@pipe.job("poison", max_retries=1)
async def poison():
    note()
    os._exit(1)

@pipe.job("doomed", max_retries=0)
async def doomed():
    raise ValueError("doomed")

@pipe.on_failure
def tell(job):
    with open("failures", "a") as file:
        file.write(f"{job.id} {job.error.type}\\n")
    if job.error.type == "ValueError":
        os._exit(1)
"""


class Program:
    """A process in a group of its own."""

    def __init__(
        self, arguments: Sequence[str], folder: Path, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        ours = ("JOBPIPE_", "WORKERS", "QUEUE_SIZE")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.arguments = list(arguments)
        self.log = log
        with log.open("wb") as output:
            self.process = popen(
                self.arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**clean, **(env or {})},
                start_new_session=True,
            )
        self.pid = self.process.pid
        self._client: httpx.Client | None = None

    # Its output and its end

    @property
    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def line(self, pattern: str) -> re.Match[str]:
        """The first line that matches, when there is one."""

        def found() -> re.Match[str] | None:
            if match := re.search(pattern, self.output):
                return match
            assert self.process.poll() is None, f"it ended without {pattern!r}: {self.output}"
            return None

        return eventually(found, lambda: f"no line {pattern!r}: {self.output}")

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def code(self) -> int:
        """The exit code."""
        return self.process.wait(LIMIT)

    def kill(self) -> None:
        """`kill -9` of the process alone; returns when its whole group is gone."""
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
        self.process.wait(LIMIT)
        eventually(lambda: not _has_members(self.pid), "its children live on")

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        try:
            os.killpg(self.pid, signal.SIGCONT)
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(LIMIT)

    # Its children

    def children(self) -> list[int]:
        """The processes that it supervises."""
        return [pid for pid in _pids() if _stat(pid)[:1] == [self.pid]]

    def child(self) -> int:
        """The one child, as soon as there is one."""
        return eventually(self.children, "no child")[0]

    def signal_child(self, number: int) -> None:
        os.kill(self.child(), number)

    def kill_child(self) -> int:
        """`kill -9` of the child; returns when it is buried."""
        pid = self.child()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: pid not in self.children(), "it is not buried")
        return pid

    # Over HTTP

    @cached_property
    def url(self) -> str:
        return self.line(r"listening on (http://[\w.:\[\]]+)")[1]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def http(self) -> httpx.Client:
        if self._client is None:
            # Why not verified: there is nothing to verify, and to load the certificates of the system takes 20 ms.
            self._client = httpx.Client(verify=False, base_url=self.url, timeout=LIMIT)
        return self._client

    def call(self, method: str, path: str, json: Any = None, *, is_safe: bool = True) -> httpx.Response:
        """The answer, once the service has started; asked again where the connection breaks, if that is safe."""

        def answer() -> httpx.Response | None:
            try:
                found = self.http.request(method, path, json=json)
            except httpx.TransportError:
                if not is_safe:
                    raise
                return None
            return None if found.status_code == 503 and "not-ready" in found.text else found

        # Why in a tuple: a response with an error status is false.
        return eventually(lambda: (found,) if (found := answer()) is not None else None, self.log.read_text)[
            0
        ]

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str) -> None:
        answer = self.call("POST", path)
        assert answer.status_code == 200, answer.text

    def enqueue(self, type: str, payload: Any = None, **options: Any) -> str:
        """Put a job in that is new; its id."""
        job = {"type": type, "payload": payload, **options}
        answer = self.call("POST", "/enqueue", job, is_safe=False)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def accept(self, id: str, type: str = "mark") -> None:
        """Send the job until an answer comes, as a client does whose connection may break."""
        answer = self.call("POST", "/enqueue", {"id": id, "type": type, "payload": id})
        assert answer.status_code in (200, 202), answer.text

    def job(self, id: str) -> Any:
        return self.get(f"/jobs/{id}")

    def finished(self, id: str) -> Any:
        """The job when it is finished."""
        job = self.get(f"/jobs/{id}/wait?timeout={LIMIT:g}")
        assert job["status"] in ("done", "failed", "cancelled"), (job, self.output)
        return job

    def all_done(self, ids: Iterable[str]) -> list[Any]:
        """The jobs when all are done."""
        jobs = [self.finished(id) for id in ids]
        assert {job["status"] for job in jobs} <= {"done"}, jobs
        return jobs


def jobpipe(*arguments: str) -> list[str]:
    """The command line of the command."""
    return [sys.executable, "-m", "jobpipe", *arguments]


def script(code: str, *arguments: object) -> list[str]:
    """The command line of a few lines of Python."""
    return [sys.executable, "-c", code, *map(str, arguments)]


class Start:
    """Starts programs in one folder, and ends them all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs: list[Program] = []
        self.env: dict[str, str] = {}
        """What programs that are started from now on have in their environment."""

    def __call__(self, *arguments: str) -> Program:
        """`jobpipe …` with the app, unless another is named."""
        command, *rest = arguments
        app = [] if rest and ":" in rest[0] and "/" not in rest[0] else ["app:pipe"]
        return self.command(jobpipe(command, *app, *rest))

    def command(self, arguments: Sequence[str]) -> Program:
        program = Program(arguments, self.folder, self.folder / f"output-{len(self.programs)}", self.env)
        self.programs.append(program)
        return program

    def serve(self, *arguments: str) -> Program:
        """A service that listens."""
        program = self("serve", *arguments)
        _ = program.http  # made here and not by the first to use it: there may be several threads
        return program

    def plain(self, *arguments: str) -> Program:
        """A service with the built-in types only."""
        program = self.command(jobpipe("serve", "--port", "0", *arguments))
        _ = program.http
        return program

    def worker(self, *arguments: str) -> Program:
        """A worker that works."""
        program = self("worker", *arguments)
        program.line("working")
        return program

    def close(self) -> None:
        for program in self.programs:
            program.close()

    # What is in the folder

    def runs(self, id: str | None = None) -> list[tuple[str, int, int]]:
        """The runs that handlers have noted: id, process, attempt."""
        file = self.folder / "runs"
        rows = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [(each, int(pid), int(attempt)) for each, pid, attempt in rows if id in (None, each)]

    def failures(self, id: str) -> list[str]:
        """The errors of which the program was told when the job had failed for good."""
        file = self.folder / "failures"
        rows = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [error for each, error in rows if each == id]

    def begun(self, id: str, attempt: int = 1) -> int:
        """The process that runs it, as soon as one does."""

        def found() -> list[int]:
            return [pid for _, pid, number in self.runs(id) if number == attempt]

        return eventually(found, lambda: [program.output for program in self.programs])[0]

    def let_go(self, pid: int | None = None) -> None:
        """Let all jobs end that hold, or those of one process."""
        (self.folder / ("go" if pid is None else f"go-{pid}")).touch()

    @property
    def database(self) -> Path:
        return self.folder / "jobs.db"

    # What is in the store

    @property
    def store_url(self) -> str:
        return self.env.get("JOBPIPE_STORE", f"sqlite:///{self.database}")

    @contextmanager
    def store(self) -> Iterator[Store]:
        """A handle on the store of the programs."""
        with closing(open_store(self.store_url)) as store:
            store.migrate()
            yield store

    def jobs(self) -> dict[str, Job]:
        """All jobs, whole, by their ids, the oldest first."""
        with self.store() as store:
            ids: list[str] = []
            before: int | None = None
            while True:
                page = store.page(Filter(), 500, before)
                ids += [job.id for job in page.jobs]
                before = page.next
                if before is None:
                    return {id: job for id in reversed(ids) if (job := store.get(id)) is not None}

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """In the file, where the store is one."""
        with closing(connect(self.database, timeout=LIMIT)) as connection, connection:
            return connection.execute(statement, values).fetchall()


def is_one_outcome(job: Any) -> bool:
    """Is the last run of its history the only one that was not lost?"""
    *lost, last = job["history"]
    return last["error"] is None and all(run["error"]["type"] == "WorkerLost" for run in lost)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> list[int]:
    """Its parent and its group; nothing if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    state, *rest = text.rpartition(")")[2].split()
    return [] if state == "Z" else [int(rest[0]), int(rest[1])]


def _has_members(group: int) -> bool:
    return any(_stat(pid)[1:] == [group] for pid in _pids())


def memory(pid: int, field: str = "VmHWM") -> int:
    """The most that the process ever had in memory, in bytes; with `VmRSS`, what it has now."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024
