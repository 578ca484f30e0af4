"""Commands: called in this process, as processes, and as processes with a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from typer.testing import CliRunner

from jobpipe.cli.main import app

from ...support import starting
from ...support.processes import Program, program
from ...support.waiting import LIMIT

Start = Callable[..., Program]
Called = subprocess.CompletedProcess[str]

# Why: to make the parser of all commands takes 30 ms, most of a call in this process.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]

_COLOURS = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a store, and no settings of the developer's own."""
    for name in [*os.environ]:
        if name.startswith("JOBPIPE_") or name in ("WORKERS", "QUEUE_SIZE"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts processes that end with the test."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(program(["-m", "jobpipe", *arguments], folder))


@pytest.fixture
def service(start: Start) -> str:
    """The URL of a service that runs, with a store of its own and the token `secret`."""
    serving = start("serve", "--store", "memory://", "--port", "0", "--token", "secret", "--queue-size", "0")
    return serving.line(r"listening on (http://127\.0\.0\.1:\d+)$")[1]


@pytest.fixture(params=["store", "service"])
def there(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The flags that lead to jobs: in a store, or behind a service."""
    if request.param == "store":
        monkeypatch.setenv("QUEUE_SIZE", "0")
        call("migrate")
        return []
    return ["--url", request.getfixturevalue("service"), "--token", "secret"]


def call(*arguments: str, code: int = 0, input: str | None = None) -> str:
    """What the command prints: on stdout, or on stderr if it fails."""
    result = CliRunner().invoke(app, list(arguments), input=input)
    assert result.exit_code == code, result.output
    return result.stderr if code else result.stdout


def call_json(*arguments: str, code: int = 0, input: str | None = None) -> Any:
    """The JSON that it prints, however it ends."""
    result = CliRunner().invoke(app, [*arguments, "--json"], input=input)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def call_process(*arguments: str, env: dict[str, str] | None = None, **options: Any) -> Called:
    """The command as a process, when it has ended."""
    line = [sys.executable, "-m", "jobpipe", *arguments]
    return starting.run(line, env={**os.environ, **(env or {})}, timeout=LIMIT, **options)


class Terminal:
    """A process with a terminal as its stdin and stderr; its stdout is a pipe."""

    def __init__(self, command: list[str]) -> None:
        self._ours, theirs = pty.openpty()
        try:
            self.process = starting.popen(
                command,
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=theirs,
                text=True,
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        self.shown = ""

    def until(self, pattern: str) -> str:
        """What was shown by the time the pattern was there."""
        limit = time.monotonic() + LIMIT
        while not re.search(pattern, self.shown):
            assert time.monotonic() < limit, self.shown
            assert self._read(), self.shown
        return self.shown

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def ended(self) -> tuple[int, str]:
        """The exit code, and what it printed."""
        while self._read():
            pass
        printed, _ = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, printed

    def _read(self) -> bool:
        """False once nobody can show anything any more."""
        ready, _, _ = select.select([self._ours], [], [], LIMIT)
        try:
            data = os.read(self._ours, 65_536) if ready else b""
        except OSError:  # how Linux says that the other side is closed
            data = b""
        self.shown += _COLOURS.sub("", data.decode())
        return bool(data)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        os.close(self._ours)


@contextmanager
def terminal(*arguments: str, command: list[str] | None = None) -> Iterator[Terminal]:
    """Of `jobpipe` with these arguments, or of another command."""
    opened = Terminal(command or [sys.executable, "-m", "jobpipe", *arguments])
    try:
        yield opened
    finally:
        opened.close()
