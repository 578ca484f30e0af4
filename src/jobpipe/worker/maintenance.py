"""Maintenance: what keeps leases alive and tidies up after other processes: tasks that are due again and again.

It knows no thread and no clock: who runs it says what time it is, and is told when to come again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from ..errors import StoreError
from ..failpoints import reach
from ..model.job import JobStatus

if TYPE_CHECKING:
    from ..model.counts import Counts
    from ..stores.base import Store
    from .runner import Runner

logger = logging.getLogger("jobpipe")

_HEARTBEATS = 3
"""Heartbeats in the time of a lease."""
_LONGEST_PAUSE = 1.0
"""Seconds until a running job learns that another process wants it cancelled, at the most."""
_LONGEST_UNTOLD = 0.05
"""Seconds: a job that began before is to be seen running."""
_PRUNE_EVERY = 60.0
_SUM_UP_EVERY = 60.0
_TELLING = "telling that it lives"
_AGAIN = 2.0
"""Seconds after which what failed is tried again, at the latest."""
_KNOWN_FOR = 3.0
"""A worker counts as alive for this many times the pause between its signs of life."""


@dataclass(slots=True)
class _Task:
    """Something to be done again and again."""

    what: str
    every: float
    do: Callable[[], float | None]
    """Returns in how many seconds to do it again, if that is sooner."""
    due_at: float = -inf


class Maintenance:
    """The tasks of one process, for its runner, if there is one, and for the store."""

    def __init__(
        self,
        store: Store,
        runner: Runner | None,
        *,
        lease: float,
        keep: float,
        keep_failed: float,
        tick: Callable[[Store], float | None],
        on_counts: Callable[[Counts], object],
        on_failed: Callable[[list[str]], object] | None = None,
    ) -> None:
        self._store = store
        self._runner = runner
        self._held = runner.held if runner is not None else None
        self._lease = lease
        self._keep, self._keep_failed = keep, keep_failed
        self._fire_ticks = tick
        self._on_counts = on_counts
        self._on_failed = on_failed
        self._failing = set[str]()  # what could not be done the last time
        self._beat_every = min(lease / _HEARTBEATS, 5.0)
        self._tasks = [
            _Task("keeping leases", min(lease / _HEARTBEATS, _LONGEST_PAUSE), self._extend),
            _Task("looking for lost jobs", _rescue_every(lease), self._rescue),
            _Task(_TELLING, self._beat_every, self._beat),
            _Task("counting jobs", 1.0, self._look),
            _Task("looking at schedules", 1.0, self._tick),
            _Task("deleting old jobs", _PRUNE_EVERY, self._prune),
            _Task("summing up", _SUM_UP_EVERY, self._sum_up),
        ]

    def greet(self) -> None:
        """Have the worker known."""
        self._attempt(_TELLING, self._beat)

    def leave(self) -> None:
        """Have the worker forgotten."""
        if self._runner is not None:
            self._sum_up()
            info = self._runner.info()
            self._attempt(_TELLING, lambda: self._store.beat(info, 0))

    def do(self, now: float) -> float:
        """Do what is due; when to come again."""
        for task in self._tasks:
            if task.due_at <= now:
                sooner = self._attempt(task.what, task.do)
                task.due_at = now + (task.every if sooner is None else min(sooner, task.every))
        self._attempt("noting progress", self._note_progress)
        self._attempt("storing logs", self._store_logs)
        return min(task.due_at for task in self._tasks)

    def _attempt(self, what: str, do: Callable[[], float | None]) -> float | None:
        """Do it; whatever is wrong, go on with the next. One line when something fails, one when all goes on."""
        try:
            sooner = do()
        except StoreError as error:
            if not self._failing:
                logger.warning("the heartbeat waits for the store (%s): %s", what, error)
            self._failing.add(what)
            return _AGAIN
        except Exception:
            logger.exception("the heartbeat met an error")
        else:
            if what in self._failing:
                self._failing.discard(what)
                if not self._failing:
                    logger.info("the heartbeat goes on: the store answers again")
            return sooner
        return None

    def _extend(self) -> None:
        leases = self._held.leases() if self._held is not None else []
        if leases and self._held is not None:
            asked_at = self._held.now()
            states = self._store.extend(leases, self._lease)
            self._held.extended(dict(zip(leases, states, strict=True)), asked_at)
        self._tell_begins(after=_LONGEST_UNTOLD)  # Why last: nothing may hold up the leases

    def _tell_begins(self, after: float) -> None:
        """Why here, too: a handler may block the event loop, and is to be seen running all the same."""
        leases, started_at = self._held.begins.due(after) if self._held is not None else ([], [])
        if leases and self._held is not None:
            states = self._store.begin(leases, started_at)
            self._held.begins.stored(dict(zip(leases, states, strict=True)))

    def _note_progress(self) -> None:
        reports = self._held.take_progress() if self._held is not None else []
        if reports:
            self._tell_begins(after=0.0)
            self._store.progress(reports)

    def _store_logs(self) -> None:
        chunks = self._held.unstored_logs() if self._held is not None else []
        if chunks and self._held is not None:
            self._tell_begins(after=0.0)
            self._store.write_logs(chunks)
            self._held.stored_logs(chunks)

    def _rescue(self) -> float | None:
        reach("rescue-before")
        rescued = self._store.rescue()
        if rescued:
            reach("rescue-after")
        for job in rescued:
            logger.log(
                logging.ERROR if job.status is JobStatus.FAILED else logging.WARNING,
                "job %s was lost by its worker %s: it is %s now",
                *(job.id, job.worker, job.status),
                extra={"job_id": job.id, "job_type": job.type, "attempt": job.attempts},
            )
        failed = [job.id for job in rescued if job.status is JobStatus.FAILED]
        if failed and self._on_failed is not None:
            self._on_failed(failed)
        # Why not all at once: meanwhile this thread would keep no leases.
        return 0.0 if rescued else None

    def _beat(self) -> None:
        if self._runner is not None:
            self._store.beat(self._runner.info(), self._beat_every * _KNOWN_FOR)

    def _sum_up(self) -> None:
        if self._runner is not None:
            self._runner.log.sum_up()

    def _look(self) -> None:
        self._on_counts(self._store.counts())

    def _tick(self) -> float | None:
        return self._fire_ticks(self._store)

    def _prune(self) -> float | None:
        return 0.0 if self._store.prune(self._keep, keep_failed=self._keep_failed) else None


def _rescue_every(lease: float) -> float:
    """Why not all at the same time: one of them is enough."""
    return min(max(lease / 4, 0.1), 5.0) * random.uniform(0.8, 1.0)  # noqa: S311
