"""Handlers that run in child processes: those that behave, and those that do not."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from jobpipe import BadInputError, Jobpipe, Retry, StoreError, current_job
from jobpipe.jobtypes.terms import TypeOptions
from rate_envelope_queue import Context, Envelope

logger = logging.getLogger("handlers")
MEBIBYTE = 2**20
SLOW_IMPORT = "TEST_SLOW_IMPORT"
"""Seconds that the import of this module takes, where it is set."""
time.sleep(float(os.environ.get(SLOW_IMPORT, "0")))


class Words(str):
    """A text as frameworks have them: it is its own `str`."""

    __slots__ = ()

    def __str__(self) -> str:
        return self


def outermost(inner: Callable[..., Any]) -> Callable[..., Any]:
    """A stamp that changes what the handler gets and returns."""

    def call(context: Context, envelope: Envelope[Any]) -> Any:
        return f"<{inner(context, envelope)}>"

    return call


def declare(pipe: Jobpipe) -> Jobpipe:
    """Give a pipe the types. Why a function: pipes on other stores have them, too."""
    declare_good(pipe)
    declare_transactional(pipe)
    declare_bad(pipe)
    return pipe


def declare_good(pipe: Jobpipe) -> None:
    """Those that behave."""
    isolated: TypeOptions = {"isolate": True, "max_retries": 0}

    @pipe.job("pid", **isolated)
    def pid() -> int:
        return os.getpid()

    @pipe.job("pid-async", **isolated)
    async def pid_async() -> int:
        await asyncio.sleep(0)
        return os.getpid()

    @pipe.job("pid-here")
    async def pid_here() -> int:
        return os.getpid()

    @pipe.job("twice", isolate=True, max_retries=0, max_jobs_per_child=2)
    def twice() -> int:
        return os.getpid()

    @pipe.job("echoed", **isolated)
    def echoed(payload: dict[str, int]) -> dict[str, int]:
        return payload

    @pipe.job("stamped", stamps=[outermost], isolate=True, max_retries=0)
    def stamped(text: str) -> str:
        return text.upper()

    @pipe.job("about", isolate=True, max_retries=0, deadline=50)
    def about(text: str) -> dict[str, Any]:
        job = current_job()
        job.progress(0.5, "half")
        logger.warning("it says %s", text)
        print("printed", text)
        remaining = job.context.remaining()
        return {"id": job.id, "attempts": job.attempts, "worker": job.worker, "remaining": remaining}

    @pipe.job("naps", **isolated)
    def naps(seconds: float) -> str:
        current_job().progress(0)
        time.sleep(seconds)
        return "rested"

    @pipe.job("logs", **isolated)
    def logs(job: str | int) -> None:
        logger.warning("of another job", extra={"job_id": job})
        logger.warning("a name that is no text: \udce9")
        logger.warning(Words("words of a class of their own"))

    @pipe.job("finds-itself", **isolated)
    async def finds_itself() -> str:
        return (await pipe.get(Words(current_job().id))).status

    @pipe.job("process", **isolated)
    def process() -> dict[str, Any]:
        return {
            "is_leader": os.getpgid(0) == os.getpid(),
            "ignores_interrupts": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
            "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
            "arguments": sys.argv[1:],
        }

    @pipe.job("raises", isolate=True, max_retries=1, fail_on=(KeyError,))
    def raises(kind: str) -> None:
        errors = {"value": ValueError("boom"), "key": KeyError("x"), "exit": SystemExit(3)}
        raise errors.get(kind) or Retry(after=3600)

    @pipe.job("exits", **isolated)
    async def exits() -> None:
        raise SystemExit(3)

    @pipe.job("ordered", **isolated)
    async def ordered() -> list[Any]:
        job = current_job()
        first = await job.step("first", os.getpid)
        second = job.step_sync("second", lambda: "two")
        await job.sleep("nap", 0)
        receipt = await pipe.enqueue("pid", id=f"{job.id}-more")
        answer = await job.wait_for("approved", timeout=3600)
        return [first, second, receipt.id, answer]

    @pipe.job("passes-on", **isolated)
    async def passes_on() -> str:
        return (await pipe.enqueue("pid")).id

    @pipe.job("waits-for-another", **isolated)
    async def waits_for_another() -> list[int]:
        other = await pipe.wait((await pipe.enqueue("pid")).id)
        return [os.getpid(), other.result, len(await pipe.workers()), (await pipe.stats()).running]

    @pipe.job("signals", **isolated)
    def signals(id: str) -> str:
        pipe.signal_sync(id, "approved", {"from": current_job().id})
        return pipe.get_sync(id).status


def declare_transactional(pipe: Jobpipe) -> None:
    """Those that write in a transaction of their own."""
    isolated: TypeOptions = {"isolate": True, "max_retries": 0}

    @pipe.job("in-transaction", **isolated)
    def in_transaction(path: str, commits: bool) -> str:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE IF NOT EXISTS charges (job TEXT)")
        connection.execute("INSERT INTO charges VALUES (?)", [current_job().id])
        current_job().finish_sync("charged", connection=connection)
        if commits:
            connection.commit()
        connection.close()
        return "not this"

    @pipe.job("keeps-its-transaction-open", **isolated)
    async def keeps_its_transaction_open(path: str) -> None:
        connection = sqlite3.connect(path)
        connection.execute("BEGIN")
        await current_job().step("own", _seventeen, connection=connection)
        current_job().progress(0)
        time.sleep(1000)

    @pipe.job("catches-the-refusal", **isolated)
    async def catches_the_refusal() -> str:
        with suppress(BadInputError):
            await current_job().finish("no", connection="none")
        return "done otherwise"

    @pipe.job("writes-past-its-transaction", **isolated)
    async def writes_past_its_transaction(path: str) -> list[str]:
        refused: list[str] = []
        with closing(sqlite3.connect(path)) as connection:
            for write in (
                lambda: pipe.enqueue("pid", id="more"),
                lambda: current_job().step("more", _seventeen),
            ):
                connection.execute("BEGIN")
                await current_job().step(f"own-{len(refused)}", _seventeen, connection=connection)
                try:
                    await write()
                except StoreError as error:
                    refused.append(str(error))
                connection.commit()
        return [*refused, (await pipe.enqueue("pid", id="more")).id]


def declare_bad(pipe: Jobpipe) -> None:
    """Those that do not."""
    isolated: TypeOptions = {"isolate": True, "max_retries": 0}

    @pipe.job("spins", **isolated)
    def spins() -> None:
        current_job().progress(0)
        while True:
            pass

    @pipe.job("stuck", **isolated)
    def stuck() -> None:
        """In C, with all locks and deaf to signals: `PyDLL` keeps the interpreter's lock."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        current_job().progress(0)
        ctypes.PyDLL(None).sleep(1000)

    @pipe.job("hungry", isolate=True, memory="96M", max_retries=0)
    def hungry(mebibytes: int) -> int:
        held = bytearray(mebibytes * MEBIBYTE)
        held[::4096] = bytes(len(held[::4096]))  # or it would not be in memory
        if mebibytes > 96:
            time.sleep(1000)
        return os.getpid()

    @pipe.job("hoards", **isolated)
    def hoards(mebibytes: int) -> int:
        kept.append(bytearray(b"x") * (mebibytes * MEBIBYTE))
        return os.getpid()

    @pipe.job("small", isolate=True, memory="16M", max_retries=0)
    def small() -> None:
        """Less than an interpreter needs."""

    @pipe.job("leaks", isolate=True, memory="96M", max_retries=0)
    def leaks(mebibytes: int) -> int:
        kept.append(bytearray(b"x") * (mebibytes * MEBIBYTE))
        return os.getpid()

    @pipe.job("dies", **isolated)
    def dies(how: str) -> None:
        DEATHS[how]()

    @pipe.job("floods", **isolated)
    def floods(mebibytes: int) -> int:
        for _ in range(mebibytes):
            os.write(1, b"x" * MEBIBYTE)
        return os.getpid()

    @pipe.job("forks", **isolated)
    def forks() -> list[int]:
        child = os.fork()
        if child == 0:
            return [0]  # out of the handler, as a careless one does
        os.waitpid(child, 0)
        return [os.getpid(), child]

    @pipe.job("prints-in-a-fork", **isolated)
    def prints_in_a_fork() -> int:
        child = os.fork()
        if child == 0:
            code = 1
            with suppress(Exception):
                logger.warning("logged in a fork")
                print("printed in a fork")
                code = 0
            os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    @pipe.job("starts", **isolated)
    def starts(command: list[str]) -> None:
        """Starts a process, tells its number, and does not end."""
        started = subprocess.Popen(command)
        current_job().progress(0, str(started.pid))
        time.sleep(1000)


kept: list[bytearray] = []


def _seventeen() -> int:
    return 17


def _raise_segmentation_fault() -> None:
    ctypes.string_at(0)


DEATHS: dict[str, Callable[[], object]] = {
    "exit": lambda: os._exit(7),
    "segmentation": _raise_segmentation_fault,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "close": lambda: os.closerange(3, 256),
    "abort": os.abort,
}

SLEEPER = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)"]
pipe = declare(Jobpipe("memory://"))
