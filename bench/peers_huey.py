"""huey on a SQLite file, at its best for no-op work: one worker thread in this process, which looks every millisecond.

It commits as durably as our store does (WAL, `fsync`). Results are off, so that nothing is stored when a task has
run. A task is deleted when it is taken, so there is nothing to settle, and nothing to rescue either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from huey import SqliteHuey
from huey.consumer import Consumer

_POLL = 0.001
"""Seconds between two looks at an empty queue: the default of 0.1 would be its pick-up latency."""


class QuietConsumer(Consumer):  # type: ignore[misc]
    """Without handlers of signals: they are the benchmark's."""

    def _set_signal_handlers(self) -> None:
        pass


class HueyQueue:
    """A huey with one task, which calls the function that is given."""

    def __init__(self, path: Path, work: Callable[[Any], object]) -> None:
        self._huey = SqliteHuey("bench", filename=str(path), fsync=True, results=False)

        @self._huey.task(name="work")  # type: ignore[untyped-decorator]
        def run(payload: Any) -> None:
            work(payload)

        self.put: Callable[[Any], object] = run
        """Enqueue one task with this payload."""
        self._task = run.s

    def put_many(self, payloads: Iterable[Any]) -> None:
        """Enqueue in one transaction. huey itself has only a commit a task, which takes ten times as long."""
        storage = self._huey.storage
        rows = [(storage.name, self._huey.serialize_task(self._task(payload)), 0.0) for payload in payloads]
        with storage.db(commit=True) as cursor:
            cursor.executemany("insert into task (queue, data, priority) values (?, ?, ?)", rows)

    @property
    def waiting(self) -> int:
        """Tasks in the queue."""
        return int(self._huey.storage.queue_size())

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run tasks for as long as the block lasts."""
        # Why one thread: two and four are slower, as they wait for each other's lock.
        consumer = QuietConsumer(
            self._huey, workers=1, periodic=False, initial_delay=_POLL, backoff=1.0, max_delay=_POLL
        )
        consumer.start()
        try:
            yield
        finally:
            consumer.stop(graceful=True)

    def close(self) -> None:
        """Let go of the file."""
        self._huey.storage.close()
