"""How tests start programs: as forks of a template where that makes no difference, else as they are."""

from __future__ import annotations

import atexit
import inspect
import os
import secrets
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from . import forked
from .waiting import LIMIT

_JOBPIPE = [sys.executable, "-m", "jobpipe"]
_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
_LAUNCH = [sys.executable, "-c", _TERMINAL]
CAN_FORK = sys.platform == "linux" and hasattr(os, "pidfd_open")

may_fork = CAN_FORK
"""False while a test runs whose programs are real: one with the mark `real`."""


def popen(arguments: list[str], *, has_terminal: bool = False, **options: Any) -> subprocess.Popen[Any]:
    """A program; with a terminal, its stdin is the one whose signals it gets. `jobpipe` is a fork, where it may be one."""
    env = options.get("env") or os.environ
    is_alike = "preexec_fn" not in options and _of_python(env) == _of_python(os.environ)
    if may_fork and is_alike and arguments[:3] == _JOBPIPE:
        return _Fork(arguments, has_terminal=has_terminal, **options)
    return subprocess.Popen([*(_LAUNCH if has_terminal else []), *arguments], **options)


def run(
    arguments: list[str], *, input: str | None = None, timeout: float, **options: Any
) -> subprocess.CompletedProcess[str]:
    """What has ended, with what it printed."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with popen(arguments, **options) as process:
        try:
            stdout, stderr = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)


def shell_command() -> str:
    """What a shell says for `jobpipe`."""
    if not may_fork:
        return f'"{sys.executable}" -m jobpipe'
    return f'"{sys.executable}" -I -S "{forked.__file__}" call "{_template()[1:]}"'


def _of_python(env: Any) -> dict[str, str]:
    """What an interpreter looks at when it starts; the path is taken over by a fork, too."""
    return {name: env[name] for name in env if name.startswith("PYTHON") and name != "PYTHONPATH"}


class _Fork(subprocess.Popen[Any]):
    """A Popen of which the template makes the process. Why of its innards: pipes and `communicate` are its own."""

    _call: socket.socket | None = None

    def __init__(self, arguments: list[str], *, has_terminal: bool, **options: Any) -> None:
        self._has_terminal = has_terminal
        super().__init__(arguments, **options)

    def _execute_child(self, *given: Any, **named: Any) -> None:
        terms = inspect.signature(super()._execute_child).bind(*given, **named).arguments  # type: ignore[misc]
        files = [terms[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        try:
            self._call = forked.ask(
                _template(),
                [number if file == -1 else file for number, file in enumerate(files)],
                folder=os.path.abspath(terms["cwd"] or "."),
                env={**(os.environ if terms["env"] is None else terms["env"])},
                arguments=terms["args"][3:],
                is_session=terms["start_new_session"],
                has_terminal=self._has_terminal,
            )
            self._call.settimeout(LIMIT)
            self.pid = forked.hear(self._call)
            self._child_created = True
        finally:
            pipes = [
                terms[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
            ]
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        if self._look(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and self._call is not None:
            self._call.settimeout(timeout)
            try:
                self.returncode = forked.hear(self._call)
            except (BlockingIOError, TimeoutError):
                return None
            self._call.settimeout(LIMIT)
            self._call.shutdown(socket.SHUT_WR)  # it may be buried now,
            self._call.recv(1)  # and is
            self._call.close()
        return self.returncode


@cache
def _template() -> str:
    """The address of the template of this process, which ends with it."""
    address = f"\0jobpipe-tests-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(address)
        door.listen(64)
        process = subprocess.Popen(
            [sys.executable, str(Path(forked.__file__)), "template", str(door.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[door.fileno()],
            cwd="/",
            start_new_session=True,
        )
    atexit.register(process.communicate)
    return address
