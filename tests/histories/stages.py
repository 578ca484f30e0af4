"""Stages: a store for a play, the way to it that is in the play's hands, and what may happen to it. One row for each.

A fault begins and ends in one call, so that whatever a play was doing when it broke off, nothing is left broken.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from ..support.proxy import Proxy
from ..support.servers_postgres import PostgresServer
from ..support.servers_redis import redis_server

Fault = Callable[[random.Random], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A store that is ready."""

    url: str
    """For the programs."""
    direct_url: str
    """For who looks on, and must see everything."""
    faults: Mapping[str, Fault] = field(default_factory=dict)
    forgets_claims: bool = False
    """May a crash of the server undo claims that were seen? They are not on disk at once."""


def _network(proxy: Proxy) -> dict[str, Fault]:
    """What may happen between a program and a server."""

    def stall(rng: random.Random) -> None:
        proxy.stall()
        time.sleep(rng.uniform(0.2, 2.0))
        proxy.heal()

    def dawdle(rng: random.Random) -> None:
        proxy.delay(rng.uniform(0.01, 0.2))
        time.sleep(rng.uniform(0.5, 2.0))
        proxy.heal()

    def lose_replies(rng: random.Random) -> None:
        for _ in range(3):
            proxy.lose_replies(rng.randrange(1, 5))
            time.sleep(rng.uniform(0.1, 0.3))
        proxy.heal()

    def fall_silent(rng: random.Random) -> None:
        proxy.mute()
        time.sleep(rng.uniform(0.1, 1.0))
        proxy.heal()
        proxy.cut()

    return {
        "hang-ups": lambda _: proxy.cut(),
        "a stall": stall,
        "delays": dawdle,
        "lost replies": lose_replies,
        "silence": fall_silent,
    }


@contextmanager
def _sqlite(folder: Path) -> Iterator[Stage]:
    url = f"sqlite:///{folder / 'jobs.db'}"

    def hold_the_lock(rng: random.Random) -> None:
        with closing(sqlite3.connect(folder / "jobs.db", timeout=10, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(rng.uniform(0.1, 1.5))

    yield Stage(url=url, direct_url=url, faults={"a long lock": hold_the_lock})
    with closing(sqlite3.connect(folder / "jobs.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@contextmanager
def _redis(folder: Path) -> Iterator[Stage]:
    settings = {"appendonly": "yes", "appendfsync": "always"}
    with redis_server(folder / "redis", **settings) as server, Proxy(("127.0.0.1", server.port)) as proxy:

        def kill_clients(_: random.Random) -> None:
            server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            server.ask("CLIENT", "KILL", "TYPE", "pubsub")

        def restart(rng: random.Random) -> None:
            server.stop(is_killed=rng.random() < 0.5)
            time.sleep(rng.uniform(0, 0.5))
            server.start()

        faults: dict[str, Fault] = {
            **_network(proxy),
            "CLIENT KILL": kill_clients,
            "SCRIPT FLUSH": lambda _: server.ask("SCRIPT", "FLUSH"),
            "a restart of the server": restart,
        }
        yield Stage(url=f"redis://127.0.0.1:{proxy.port}", direct_url=server.url, faults=faults)


@contextmanager
def _postgres(folder: Path) -> Iterator[Stage]:
    server = PostgresServer()
    try:
        server.start()
        with Proxy(f"{server.folder}/.s.PGSQL.5432") as proxy:

            def end_sessions(_: random.Random) -> None:
                with psycopg.connect(server.url, autocommit=True) as connection:
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'jobpipe'"
                    )

            def restart(rng: random.Random) -> None:
                server.stop("immediate" if rng.random() < 0.7 else "fast")
                time.sleep(rng.uniform(0, 0.5))
                server.start()

            faults: dict[str, Fault] = {
                **_network(proxy),
                "pg_terminate_backend": end_sessions,
                "a restart of the server": restart,
            }
            url = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
            yield Stage(url=url, direct_url=server.url, faults=faults, forgets_claims=True)
    finally:
        server.close()


STAGES: Mapping[str, Callable[[Path], AbstractContextManager[Stage]]] = {
    "sqlite": _sqlite,
    "redis": _redis,
    "postgres": _postgres,
}
"""By the name of the store."""
