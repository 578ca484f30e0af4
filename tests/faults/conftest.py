"""Real processes of the real command, all of which are gone after the test."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from ..support.servers_redis import with_own_keys
from .programs import APP, Start

DURABLE = ("sqlite", "postgres", "redis")

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]  # they look into /proc


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    (tmp_path / "app.py").write_text(APP)
    start = Start(tmp_path)
    try:
        yield start
    finally:
        start.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of `durable` is for each of the stores; every day it is tried on one of them, and with ALL_STORES on all.

    Why: they take seconds each. Those of the marks are always tried on all, since the stores differ there.
    """
    if "durable" in metafunc.fixturenames:
        is_whole = os.environ.get("ALL_STORES") or metafunc.module.__name__.endswith("test_marks")
        one = crc32(metafunc.function.__name__.encode()) % len(DURABLE)
        stores = DURABLE if is_whole else DURABLE[one : one + 1]
        metafunc.parametrize("durable", stores, indirect=True)


@pytest.fixture
def durable(request: pytest.FixtureRequest, start: Start) -> Start:
    """Programs on one of the stores that outlive them."""
    if request.param == "postgres":
        start.env["JOBPIPE_STORE"] = request.getfixturevalue("postgres_url")
    elif request.param == "redis":
        start.env["JOBPIPE_STORE"] = with_own_keys(request.getfixturevalue("redis_url"))
    else:
        start.env["JOBPIPE_STORE"] = f"sqlite:///{start.database}"
    return start
