"""What every test gets: a check that it leaves no thread behind; and, if it asks for them, real servers."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator

import pytest

from .servers_postgres import PostgresServer, postgres_schema, postgres_server
from .servers_redis import redis_url as redis_url  # a fixture

if "SWITCH_INTERVAL" in os.environ:  # those who hunt races want threads to be switched more often
    sys.setswitchinterval(float(os.environ["SWITCH_INTERVAL"]))


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
        assert not thread.is_alive(), f"the test left the thread {thread.name} behind"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server, one for each process that runs tests."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres: str) -> Iterator[str]:
    """The URL of an empty store on it."""
    with postgres_schema(postgres) as url:
        yield url


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that the test may stop; it runs."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()
