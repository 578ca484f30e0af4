"""What every test gets: a check that it leaves no thread behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from .servers_redis import redis_url as redis_url  # a fixture


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
        assert not thread.is_alive(), f"the test left the thread {thread.name} behind"
