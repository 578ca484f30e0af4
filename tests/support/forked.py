"""Programs that begin as forks: `jobpipe …` without the time that its imports take, which is most of a start.

A template has imported what the command needs. For each program it forks a child, which takes over the folder, the
environment, the arguments and the files, and goes on as `python -m jobpipe` does. To its test it is a process like any
other: with a pid, in a session of its own, and with an exit code. A test of the start itself, of the memory of a process,
or of the command as it is installed takes a real one.

Run as a program this is the template (`template FD`), or a command for a shell (`call ADDRESS …`).
"""

from __future__ import annotations

import json
import os
import socket
import sys

# Why not from typing, and why no more above: as a command of a shell, this has to start at once.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

MODULES = (
    *("jobpipe.cli.child", "jobpipe.cli.main", "jobpipe.client.client", "jobpipe.cli.render.tables"),
    *("jobpipe.cli.target", "jobpipe.cli.top.command", "jobpipe.cli.top.screen", "jobpipe.web.serve"),
    *("jobpipe.stores.memory", "jobpipe.stores.postgres", "jobpipe.stores.redis", "jobpipe.stores.sqlite"),
    *("asyncio", "httptools", "prometheus_client", "uvicorn.protocols.http.httptools_impl", "uvloop"),
    # What typer imports, where it is there.
    *("pydantic.fields", "pydantic.json_schema", "pydantic.type_adapter", "typer._adapters"),
)
_MOST = 200_000


def ask(address: str, files: list[int], **request: Any) -> socket.socket:
    """Have a program started; what is to be heard of it: its pid, and when it has ended, its exit code."""
    call = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    call.connect(address)
    socket.send_fds(call, [json.dumps(request).encode()], files)
    return call


def hear(call: socket.socket) -> int:
    return int(call.recv(_MOST))


class Template:
    """Forks children until its stdin ends. One that has ended is buried when its test has heard of that, and not before."""

    def __init__(self, door: socket.socket) -> None:
        from selectors import EVENT_READ, DefaultSelector

        self._selector = DefaultSelector()
        self._door = door
        self._event = EVENT_READ
        for file in (0, door):
            self._selector.register(file, EVENT_READ)

    def run(self) -> tuple[dict[str, Any], list[int]] | None:
        """In a child, what it is to be; None at the end."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    return None
                if key.fileobj is self._door:
                    if (child := self._start()) is not None:
                        return child
                elif isinstance(key.fileobj, int):
                    self._tell(key.fileobj, *key.data)
                else:
                    self._bury(*key.data)

    def _start(self) -> tuple[dict[str, Any], list[int]] | None:
        call, _ = self._door.accept()
        request, files, _, _ = socket.recv_fds(call, _MOST, 3)
        pid = os.fork()
        if pid == 0:
            # Why by hand: an object that closes its file later would close one of the program's.
            for key in [*self._selector.get_map().values()]:
                if key.data is not None:
                    key.data[0].close()
                    if isinstance(key.fileobj, int):
                        os.close(key.fileobj)
            terms = json.loads(request)
            if terms.pop("is_session", False):
                os.setsid()
            call.send(str(os.getpid()).encode())  # Why from here: it has its session when it is known
            call.close()
            self._door.close()
            self._selector.close()
            return terms, files
        for file in files:
            os.close(file)
        self._selector.register(os.pidfd_open(pid), self._event, (call, pid))
        return None

    def _tell(self, ended: int, call: socket.socket, pid: int) -> None:
        self._selector.unregister(ended)
        os.close(ended)
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert found is not None
        code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        try:
            call.send(str(code).encode())
        except OSError:
            pass  # its test is gone
        self._selector.register(call, self._event, (call, pid))

    def _bury(self, call: socket.socket, pid: int) -> None:
        self._selector.unregister(call)
        os.waitpid(pid, 0)
        call.close()


def become(
    files: list[int],
    *,
    folder: str,
    env: dict[str, str],
    arguments: list[str],
    has_terminal: bool = False,
) -> NoReturn:
    """Go on as the program."""
    import runpy
    import time

    for number, file in enumerate(files):
        os.dup2(file, number)
    if has_terminal:
        from fcntl import ioctl
        from termios import TIOCSCTTY

        ioctl(0, TIOCSCTTY, 0)
    os.closerange(3, max(files) + 1)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    if "JOBPIPE_DIE_AT" in env:  # it is looked at by an import, which was before
        from jobpipe import failpoints

        vars(failpoints).update(_FOLDER=env["JOBPIPE_DIE_AT"], ARE_ON=True)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    sys.path[:1] = [os.getcwd(), *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv[1:] = arguments
    code = 0
    try:
        runpy.run_module("jobpipe", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        code = end.code
    _exit(code)


def _exit(code: int) -> NoReturn:
    """End as an interpreter does, but leave its memory to the kernel. Why: to free it object by object copies every page."""
    import atexit
    import threading

    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)  # an interpreter has its own way to tell of that
    os._exit(code)


def _parse_once() -> None:
    """Have typer make its parser of all commands here. Why: it takes 30 ms, and each child would make it again."""
    from functools import cache

    import typer.main

    from jobpipe.cli.main import app

    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(app)


def template(door: int) -> None:
    import gc
    from contextlib import suppress
    from importlib import import_module

    for name in MODULES:
        with suppress(ImportError):  # nobody else will import it, then
            import_module(name)
    _parse_once()
    gc.collect()
    gc.freeze()
    child = Template(socket.socket(fileno=door)).run()
    if child is not None:
        request, files = child
        become(files, **request)


def call(address: str, *arguments: str) -> int:
    terms = {"folder": os.getcwd(), "env": {**os.environ}, "arguments": arguments}
    called = ask(f"\0{address}", [0, 1, 2], **terms)
    hear(called)
    return hear(called)


if __name__ == "__main__":
    if sys.argv[1] == "template":
        template(int(sys.argv[2]))
    else:
        sys.exit(call(*sys.argv[2:]))
