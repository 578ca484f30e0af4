"""Real processes of the real command, all of which are gone after the test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..servers_redis import with_own_keys
from .programs import APP, Start

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


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def durable(request: pytest.FixtureRequest, start: Start) -> Start:
    """Programs on each of the stores that outlive them."""
    if request.param == "postgres":
        start.env["JOBPIPE_STORE"] = request.getfixturevalue("postgres_url")
    elif request.param == "redis":
        start.env["JOBPIPE_STORE"] = with_own_keys(request.getfixturevalue("redis_url"))
    else:
        start.env["JOBPIPE_STORE"] = f"sqlite:///{start.database}"
    return start
