"""ChildProcess: a child, as its worker sees it: started, given one run at a time, killed, and waited for.

It belongs to who has it: a run that is broken off kills it, and so no kill can hit another run. All of it happens on the
event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from msgspec import MsgspecError

from rate_envelope_queue import DeadlineExceeded

from ...errors import MemoryExceeded, ProcessDied
from .messages import (
    Broken,
    Call,
    End,
    Finishing,
    Frames,
    Leave,
    Lends,
    Line,
    Lost,
    Printed,
    Ready,
    Record,
    Reply,
    Report,
    Setup,
    Start,
    ToChild,
    ToWorker,
    encode,
    frame,
    to_worker,
)
from .orphans import kill_group
from .output import Output
from .usage import cpu_seconds, has_ended, resident

if TYPE_CHECKING:
    from ...model.job import Progress
    from ...model.lease import Outcome
    from ...model.logs import LogChunk

logger = logging.getLogger("jobpipe")

_PROGRAM = "import sys; sys.path[:] = sys.argv[3:]; from jobpipe.worker.isolation.child import main; main()"
"""Why not `-m`: a new interpreter may look for modules elsewhere than this one does."""
_START_LIMIT = 120.0
"""Seconds for which a child may import the program."""
_PEACE = 1.0
"""Seconds in which it may end by itself."""
_LOOK = 0.01
"""Seconds between two looks whether it has ended."""
_LAST_WORDS = 0.25
"""Seconds in which what it has written is still read, and it may become known how it ended."""


class Run(Protocol):
    """A run, for what its child says of it."""

    def report(self, progress: Progress) -> None: ...

    def add_line(self, level: str, logger: str, message: str) -> None: ...

    def add_printed(self, text: str) -> None: ...

    def lend(self) -> None: ...

    def lose(self) -> None: ...

    def end(self, *, is_finishing: bool) -> None: ...

    def finishing(self) -> tuple[LogChunk, ...]: ...


class ChildProcess(asyncio.Protocol):
    """One child."""

    def __init__(
        self,
        answer: Callable[[Call], Coroutine[Any, Any, Reply]],
        on_death: Callable[[ChildProcess], object] = lambda _: None,
    ) -> None:
        self._answer = answer
        self._on_death = on_death
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._outputs: list[Output] = []
        self._answering: set[asyncio.Task[None]] = set()
        self._transport: asyncio.Transport | None = None
        self._is_ready: asyncio.Future[None] = self._loop.create_future()
        self._end: asyncio.Future[Outcome] | None = None
        self._run: Run | None = None
        self._number = 0
        self._cpu_before = 0.0  # of its earlier runs
        self.is_over = False
        """Has it ended, or is it about to?"""
        self.runs = 0
        self.memory = 0
        """Bytes resident, as of the last look."""
        ours, theirs = socket.socketpair()
        try:
            self._process = _popen(theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._channel = ours
        self.pid = self._process.pid

    # From the start to the end

    async def start(self, setup: Setup) -> None:
        """Have it import the program; ProcessDied if it cannot."""
        self._channel.setblocking(False)
        await self._loop.create_unix_connection(lambda: self, sock=self._channel)
        streams: list[tuple[IO[bytes] | None, Callable[[], Any]]] = [
            (self._process.stdout, lambda: sys.stdout),
            (self._process.stderr, lambda: sys.stderr),
        ]
        for pipe, stream in streams:
            _, output = await self._loop.connect_read_pipe(partial(Output, self.pid, stream), pipe)
            self._outputs.append(output)
        self._send(setup)
        try:
            async with asyncio.timeout(_START_LIMIT):
                await self._is_ready
        except TimeoutError:
            raise ProcessDied(f"the process did not start within {_START_LIMIT:g} s") from None

    async def run(self, start: Start, run: Run, deadline: float | None) -> Outcome:
        """Have it run a job to its end; the errors are those that the handler has no part in.

        If it is broken off, the process must not be used any more, but killed.
        """
        self.runs += 1
        self._number = start.run
        self._run = run
        end: asyncio.Future[Outcome] = self._loop.create_future()
        self._end = end
        try:
            if self.is_over:
                raise self._death()
            self._send(start)
            async with asyncio.timeout(deadline):
                return await end
        except TimeoutError:
            if not end.cancelled():
                # Why: it has ended, and only the event loop was held up by others until both were due.
                return end.result()
            raise DeadlineExceeded(f"timed out after {deadline:g} s") from None
        finally:
            self._end = self._run = None

    def kill(self) -> None:
        """Kill it and all that it has started, whatever they do."""
        self.is_over = True
        self._kill_group()

    def _kill_group(self) -> None:
        if self._process.returncode is None:  # else the number may be that of others by now
            kill_group(self.pid)

    async def leave(self) -> None:
        """Let it end by itself, or kill it."""
        if not self.is_over:
            self.is_over = True
            self._send(Leave())
            with suppress(TimeoutError):
                async with asyncio.timeout(_PEACE):
                    await self._wait_for(lambda: has_ended(self.pid))
        await self.bury()

    async def bury(self) -> None:
        """Kill it, wait for it, and let go of all that it had."""
        self.kill()
        await self._wait_for(lambda: self._process.poll() is not None)
        if self._transport is not None:
            self._transport.abort()
        self._channel.close()
        if self._answering:
            await asyncio.wait(self._answering, timeout=_LAST_WORDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                for output in self._outputs:
                    await output.is_closed.wait()
        for output in self._outputs:
            output.transport.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    async def _wait_for(self, is_so: Callable[[], bool]) -> None:
        while not is_so():  # noqa: ASYNC110 - the system tells nobody, unless all of the program's own children, too
            await asyncio.sleep(_LOOK)

    @property
    def is_lost(self) -> bool:
        """Is it of no use any more, though nobody may have noticed yet?"""
        return self.is_over or self._transport is None or self._transport.is_closing() or has_ended(self.pid)

    # What it uses

    def look(self, most: int | None) -> None:
        """See whether it lives, and how much memory it has; at the most that many bytes."""
        self.memory = resident(self.pid)
        if has_ended(self.pid):
            self._lose()
        elif most is not None and self.memory > most:
            self._fail(MemoryExceeded(self.memory, most))

    @property
    def cpu(self) -> float:
        """Seconds of CPU that its run has used."""
        return max(cpu_seconds(self.pid) - self._cpu_before, 0.0)

    # What it says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._await_end(self._loop.time() + _LAST_WORDS)

    def data_received(self, data: bytes) -> None:
        try:
            for body in self._frames.feed(data):
                self._handle(to_worker.decode(body))
        except (ValueError, MsgspecError) as error:
            self._fail(ProcessDied(f"the process of the run sent what cannot be read: {error}"))

    def _handle(self, message: ToWorker) -> None:
        match message:
            case Call():
                self._do(self._answer_call(message))
            case Record():
                _log(message, self.pid)
            case Ready():
                if not self._is_ready.done():
                    self._is_ready.set_result(None)
            case Broken():
                logger.error("process %d could not start:\n%s", self.pid, message.traceback)
                self._fail(ProcessDied(f"the process could not start: {message.text}"))
            case _:
                # Why compared: a thread that an earlier run has left behind may speak late.
                if self._run is not None and message.run == self._number:
                    self._handle_run(self._run, message)

    def _handle_run(
        self, run: Run, message: Finishing | Report | Line | Printed | Lends | Lost | End
    ) -> None:
        match message:
            case End():
                if self._end is not None and not self._end.done():
                    self._cpu_before = message.cpu
                    run.end(is_finishing=message.is_finishing)
                    self._end.set_result(message.outcome)
            case Report():
                run.report(message.progress)
            case Line():
                run.add_line(message.level, message.logger, message.message)
            case Printed():
                run.add_printed(message.text)
            case Lends():
                run.lend()
            case Lost():
                run.lose()
            case Finishing():
                self._send(Reply(message.call, result=encode(run.finishing())))

    async def _answer_call(self, call: Call) -> None:
        self._send(await self._answer(call))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work, name="jobpipe-answer")
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    def _send(self, message: ToChild) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(message))

    # How it ended

    def _await_end(self, until: float) -> None:
        """It does not speak any more: most likely it is about to end, and then it can be told how."""
        if self.is_over:
            return
        if has_ended(self.pid) or self._loop.time() >= until:
            self._lose()
        else:
            self._loop.call_later(_LOOK, self._await_end, until)

    def _lose(self) -> None:
        """It has ended, or does not speak any more."""
        if not self.is_over:
            self._fail(self._death())

    def _fail(self, error: Exception) -> None:
        self.is_over = True
        for future in (self._is_ready, self._end):
            if future is not None and not future.done():
                future.set_exception(error)
                future.exception()  # Why: nobody may wait for it
        self._kill_group()
        self._on_death(self)

    def _death(self) -> ProcessDied:
        self._kill_group()  # Why first: what it has started goes with it
        code = self._process.poll()
        return ProcessDied(f"the process of the run {_how(code)}")


def _how(code: int | None) -> str:
    if code is None:
        return "closed its connection to the worker"
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def _popen(channel: socket.socket) -> subprocess.Popen[bytes]:
    """Why on the event loop: where its thread ended, the kernel would kill the child."""
    options = [*("-O" for _ in range(sys.flags.optimize)), *(f"-W{each}" for each in sys.warnoptions)]
    if sys.flags.dev_mode:
        options.append("-Xdev")
    number = channel.fileno()
    return subprocess.Popen(  # noqa: S603
        [sys.executable, *options, "-P", "-c", _PROGRAM, str(number), str(os.getpid()), *map(str, sys.path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[number],
        start_new_session=True,
    )


def _log(message: Record, pid: int) -> None:
    log = logging.getLogger(message.logger)
    if not log.isEnabledFor(message.level):
        return
    extra = (
        {} if message.job is None else dict(zip(("job_id", "job_type", "attempt"), message.job, strict=True))
    )
    record = log.makeRecord(log.name, message.level, "", 0, message.message, (), None, extra=extra)
    record.process = pid
    try:
        log.handle(record)
    except Exception:  # Why: log handlers of the program may raise, which costs no run
        logger.exception("what a child has logged could not be logged")
