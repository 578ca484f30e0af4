"""A terminal with `top` in it, whose screen a test can read, and jobs to look at."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyte

from jobpipe.cli.target import ServiceTarget

from ....support.processes import Program, program
from ....support.starting import popen
from ....support.waiting import LIMIT
from ..conftest import Start

_APP = """
import asyncio
from jobpipe import Jobpipe, current_job

pipe = Jobpipe()

@pipe.job("step", max_retries=0)
async def step(note):
    current_job().progress(0.5, note)
    await asyncio.sleep(600)

@pipe.job("crash", max_retries=0)
async def crash(message):
    raise ValueError(message)
"""


class Window:
    """A process in a terminal, and what is on its screen."""

    def __init__(self, arguments: list[str], width: int, height: int, env: dict[str, str]) -> None:
        self._ours, self._theirs = pty.openpty()
        self._set_size(width, height)
        self.before = self.attributes()
        # Why with a terminal: only in one of its own does a process get what Ctrl+C and a resize send.
        self.process = popen(
            arguments,
            has_terminal=True,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env={**_plain(), "TERM": "xterm-256color", "LANG": "C.UTF-8", **env},
            start_new_session=True,
        )
        self._screen = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        """All that was ever sent to the terminal."""

    def attributes(self) -> list[Any]:
        """What `stty` would tell."""
        return termios.tcgetattr(self._theirs)

    @property
    def shown(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def until(self, pattern: str) -> str:
        """What is shown once the pattern is there; `^` and `$` are the ends of a line."""
        return self._until(lambda: re.search(pattern, self.shown, re.MULTILINE) is not None, pattern)

    def without(self, pattern: str) -> str:
        """What is shown once the pattern is not there any more."""
        return self._until(lambda: re.search(pattern, self.shown, re.MULTILINE) is None, f"not {pattern}")

    def _until(self, is_it: Any, wanted: str) -> str:
        limit = time.monotonic() + LIMIT
        while not is_it():
            assert time.monotonic() < limit, f"{wanted}\n{self.shown}"
            assert self._read(), f"{wanted}\n{self.shown}"
        return self.shown

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def resize(self, width: int, height: int) -> None:
        self._screen.resize(height, width)
        self._set_size(width, height)

    def code(self) -> int:
        """The exit code; all that it showed is read."""
        code = self.process.wait(LIMIT)
        while select.select([self._ours], [], [], 0)[0] and self._read():
            pass
        return code

    def hang_up(self) -> None:
        """The terminal is gone, as when its window is closed."""
        os.close(self._theirs)
        os.close(self._ours)
        self._ours = self._theirs = -1

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LIMIT)
        if self._ours != -1:
            self.hang_up()

    def _set_size(self, width: int, height: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], LIMIT)
        data = os.read(self._ours, 65_536) if ready else b""
        self.raw += data
        self._stream.feed(data)
        return bool(data)


def _plain() -> dict[str, str]:
    """The environment without what developers may wish for their own terminals."""
    theirs = {"NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "LINES", "LC_ALL"}
    return {name: value for name, value in os.environ.items() if name not in theirs}


@contextmanager
def window(
    *arguments: str, width: int = 80, height: int = 24, env: dict[str, str] | None = None
) -> Iterator[Window]:
    """A terminal with a command in it."""
    opened = Window(list(arguments), width, height, env or {})
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def top(service: Service, **options: Any) -> Iterator[Window]:
    """A terminal with `top` in it, once it shows the service."""
    with window(sys.executable, "-m", "jobpipe", "top", *service.flags, **options) as opened:
        opened.until("live")
        yield opened


class Service:
    """A running service, and a way to put jobs in."""

    def __init__(self, start: Start, folder: Path, *, port: int = 0, token: str = "secret") -> None:
        (folder / "app.py").write_text(_APP)
        arguments = [
            "--port",
            str(port),
            "--token",
            token,
            "--store",
            "sqlite:///jobs.db",
            "--queue-size",
            "0",
        ]
        self.program: Program = start("serve", "app:pipe", *arguments, "--grace", "1")
        self.url = self.program.line(r"listening on (http://127\.0\.0\.1:\d+)$")[1]
        self.port = int(self.url.rpartition(":")[2])
        self.flags = ["--url", self.url, "--token", token]
        self._token = token

    def ask(self) -> ServiceTarget:
        """Within `with`, what has jobs."""
        return ServiceTarget(self.url, self._token)

    def put(self, id: str, type: str, payload: Any = None, **options: Any) -> str:
        with self.ask() as target:
            return target.enqueue(type, payload, id=id, **options).id

    def pause(self, queue: str) -> None:
        with self.ask() as target:
            target.hold("pause", queue)

    def put_failed(self, id: str, message: str = "no luck", **options: Any) -> None:
        """A job that has failed."""
        with self.ask() as target:
            target.job_within(self.put(id, "crash", message, **options), LIMIT)

    def status(self, id: str) -> str:
        with self.ask() as target:
            return str(target.job(id).status)


@contextmanager
def service_in(folder: Path) -> Iterator[Service]:
    """A service for several tests."""
    with ExitStack() as stack:
        yield Service(
            lambda *arguments: stack.enter_context(program(["-m", "jobpipe", *arguments], folder)), folder
        )
