"""The program of a child: `main`, with its end of the socket pair, the number of its parent and `sys.path` as arguments.

It imports the handlers as the worker did, and runs one job after the other, handlers in its main thread. It speaks to the
worker alone, which has the leases and the store.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import resource
import signal
import socket
import sys
import time
import traceback
from contextlib import nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from ...jobtypes.current import current_job
from ...jobtypes.jobtype import JobType
from ...model.outcome import Backoff, outcome_of
from ..capture import Captures, full_message
from .child_run import ChildRun
from .connection import Connection
from .messages import Broken, End, Ready, Record, Setup, Start, plain
from .orphans import die_with
from .remote_store import RemoteStore

if TYPE_CHECKING:
    from ...gateway.lazy_store import Gateway
    from ...gateway.tracing import Tracing
    from ...settings import Settings
    from ...stores.base import Store

_OOM_SCORE = Path("/proc/self/oom_score_adj")
_FIRST = 500
"""Of 1,000: where memory runs out, the kernel kills this process before its worker and other services."""
_TIMES = 4
"""How much more data than resident memory a run may have."""


class Pipe(Protocol):
    """A pipe, as far as a child needs it."""

    @property
    def types(self) -> dict[str, JobType[..., Any]]: ...

    @property
    def tracing(self) -> Tracing | None: ...

    def attach(self, store: Store, settings: Settings) -> Gateway: ...


class LogForwarding(logging.Handler):
    """Gives the log of the worker what is logged here, where the program has set up no log of its own."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = plain(full_message(record))
            if self._connection.is_own:
                self._connection.send(Record(record.levelno, plain(record.name), message, _about()))
            else:  # a fork, which has nobody to tell
                sys.stderr.write(f"{message}\n")
        except Exception:
            self.handleError(record)


def _about() -> tuple[str, str, int] | None:
    """The job of who logs. Why not as the record says: a program may give it fields of these names."""
    try:
        job = current_job()
    except RuntimeError:
        return None
    return job.id, job.type, job.attempts


class Child:
    """What this process is set to, and its runs."""

    def __init__(self, connection: Connection, setup: Setup) -> None:
        self._connection = connection
        self._settings = setup.settings
        self._addresses = setup.addresses
        store = cast("Store", RemoteStore(connection, setup.settings.store, setup.capabilities))
        # Why all of them, though they lead to one pipe: each module brings types of its own.
        self._pipe, *_ = map(_pipe_at, sorted(set(setup.addresses.values())))
        self._gateway = self._pipe.attach(store, setup.settings)
        if not logging.root.handlers:
            logging.root.addHandler(LogForwarding(connection))
            logging.root.setLevel(setup.log_level)
        Captures(setup.settings.job_logs).start()
        self._runner = asyncio.Runner()

    def run(self, start: Start) -> None:
        """Run a job, and tell the worker what it came to."""
        name, tracing = start.claim.type, self._pipe.tracing
        job_type = self._pipe.types.get(name)
        if job_type is None:
            error = RuntimeError(
                f"the type {name!r} is unknown in child processes: the import of {self._addresses[name]} does not declare it"
            )
            outcome = outcome_of(error, start.claim, Backoff())
            self._connection.send(End(start.run, outcome, False, time.process_time()))
            return
        _limit_data(start.memory)
        headers = ((name.encode(), value.encode()) for name, value in start.trace.items())
        run = ChildRun(self._connection, self._gateway, job_type, start, self._settings.max_payload)
        with nullcontext() if tracing is None else tracing.request(headers):
            outcome = run.outcome(self._runner)
        if not self._connection.is_own:
            os._exit(0)  # a fork came out of the handler: the job is not its own
        self._connection.send(End(start.run, outcome, run.is_finishing, time.process_time()))

    def close(self) -> None:
        """Let go of the event loop."""
        self._runner.close()


def _pipe_at(address: str) -> Pipe:
    """The pipe that the text names, itself or by one of its job types."""
    module, _, path = address.partition(":")
    found: Any = import_module(module)
    for step in path.split("."):
        found = getattr(found, step)
    return cast("Pipe", found.pipe if isinstance(found, JobType) else found)


def _limit_data(memory: int | None) -> None:
    """Refuse a run what would exhaust the machine before its worker looks: it gets a MemoryError.

    Why data: address space that is only reserved does not count. Why a multiple: not all of it is ever resident.
    """
    if sys.platform == "linux":
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = hard if memory is None else memory * _TIMES
        resource.setrlimit(
            resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )


def _prepare(parent: int) -> None:
    """Be a process that can be killed without loss, and that leaves nothing behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the worker ends it
    die_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with suppress(OSError, ValueError):
        if int(_OOM_SCORE.read_text()) < _FIRST:
            _OOM_SCORE.write_text(str(_FIRST))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable()


def main() -> None:
    """Run jobs until the worker wants no more of them."""
    descriptor, parent = map(int, sys.argv[1:3])
    del sys.argv[1:]
    _prepare(parent)
    channel = socket.socket(fileno=descriptor)
    channel.set_inheritable(False)  # what a handler starts has nothing to do with it
    connection = Connection(channel)
    setup = connection.next_order()
    assert isinstance(setup, Setup)
    try:
        child = Child(connection, setup)
    except BaseException as error:
        words = "".join(traceback.format_exception_only(error)).strip()
        connection.send(Broken(words, traceback.format_exc()))
        return
    connection.send(Ready())
    while isinstance(order := connection.next_order(), Start):
        child.run(order)
    child.close()
