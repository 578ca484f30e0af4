"""What every test gets: a check that it leaves no thread behind; and, if it asks for them, real servers."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from hypothesis import settings

from .support import starting
from .support.order import longest_first
from .support.servers_postgres import PostgresServer, PostgresStores, postgres_schema, postgres_server
from .support.servers_redis import redis_url as redis_url  # a fixture

if "SWITCH_INTERVAL" in os.environ:  # those who hunt races want threads to be switched more often
    sys.setswitchinterval(float(os.environ["SWITCH_INTERVAL"]))

# Why: the tests start hundreds of interpreters, and one that has to compile what it imports takes twice as long to start.
if "-B" not in sys.orig_argv:  # as the mutations say, whose source changes within a second
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Why: a process with half a million objects, most of which stay, spends a twelfth of its time looking for garbage.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # the tests themselves stay: who collects all garbage need not look at them


settings.register_profile(
    "suite", deadline=None
)  # Why: that an example took long says that the machine is busy
settings.load_profile("suite")

# Why: a shell has its background jobs ignore it, and so would the programs that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Why: a commit that waits for a disk takes 2 ms, and in memory 0.02. Who kills a process loses nothing there either.
_IN_MEMORY = "/dev/shm"
if os.access(_IN_MEMORY, os.W_OK) and "TMPDIR" not in os.environ:
    _has_room = shutil.disk_usage(_IN_MEMORY).free > 4 << 30
    if _has_room and not os.statvfs(_IN_MEMORY).f_flag & os.ST_NOEXEC:  # some tests make programs
        os.environ["TMPDIR"] = tempfile.tempdir = _IN_MEMORY


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if found := getattr(config, "workerinput", None):
        longest_first(items, found["workercount"])


def pytest_runtest_setup(item: pytest.Item) -> None:
    starting.may_fork = starting.CAN_FORK and item.get_closest_marker("real") is None


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
        assert not thread.is_alive(), f"the test left the thread {thread.name} behind"


@pytest.fixture
def collect() -> Iterator[Callable[[], None]]:
    """Collects the garbage among what the test has made, if it is the first of its fixtures.

    Why not all garbage: to look at everything that the tests before it have left takes most of a second.
    """
    generations = iter((0, 1))  # what survives a look is in the next one, and only that: nobody else looks

    def look() -> None:
        gc.collect(next(generations, 2))

    gc.disable()
    yield look
    gc.enable()


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


@pytest.fixture(scope="session")
def postgres_stores(postgres: str) -> Iterator[PostgresStores]:
    """Stores on it that are migrated and empty, for tests that leave the tables as they are."""
    with closing(PostgresStores(postgres)) as stores:
        yield stores


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that the test may stop; it runs."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()
