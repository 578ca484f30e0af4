"""Chores: what keeps leases alive and tidies up after other processes, again and again, each in its time.

They know no thread and no clock: who does them says what time it is, and is told when to come again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from .errors import StoreError
from .marks import reach

if TYPE_CHECKING:
    from .app import Jobpipe
    from .runner import Runner
    from .stores.base import Store

logger = logging.getLogger("jobpipe")

_HEARTBEATS = 3
"""Heartbeats in the time of a lease."""
_LONGEST_PAUSE = 1.0
"""Seconds: so long it may take until a running job learns that another process wants it cancelled."""
_PRUNE_EVERY = 60.0
_KNOWN_FOR = 3.0
"""A worker counts as alive for so many times the pause between its signs of life."""


@dataclass(slots=True)
class _Chore:
    """Something to be done again and again."""

    every: float
    do: Callable[[], float | None]
    """Returns in how many seconds to do it again, if that is sooner."""
    due_at: float = -inf


class Chores:
    """Those of one process, for its runner, if there is one, and for the store."""

    def __init__(self, pipe: Jobpipe, runner: Runner | None, store: Store) -> None:
        self._pipe = pipe
        self._runner = runner
        self._store = store
        self._is_away = False
        lease = pipe.settings.lease
        self._beat_every = min(lease / _HEARTBEATS, 5.0)
        self._chores = [
            _Chore(min(lease / _HEARTBEATS, _LONGEST_PAUSE), self._extend),
            _Chore(min(max(lease / 4, 0.1), 5.0) * random.uniform(0.8, 1.0), self._rescue),  # noqa: S311
            _Chore(self._beat_every, self._beat),
            _Chore(1.0, self._look),
            _Chore(1.0, self._tick),
            _Chore(_PRUNE_EVERY, self._prune),
        ]

    def greet(self) -> None:
        """Have the worker known."""
        self._attempt(self._beat)

    def leave(self) -> None:
        """Have the worker forgotten."""
        if self._runner is not None:
            self._attempt(lambda: self._store.beat(self._runner.info(), 0) if self._runner else None)

    def do(self, now: float) -> float:
        """Do what is due; when to come again."""
        for chore in self._chores:
            if chore.due_at <= now:
                sooner = self._attempt(chore.do)
                chore.due_at = now + (chore.every if sooner is None else min(sooner, chore.every))
        self._attempt(self._note_progress)
        return min(chore.due_at for chore in self._chores)

    def _attempt(self, do: Callable[[], float | None]) -> float | None:
        """Do it; whatever is wrong, go on with the next."""
        try:
            sooner = do()
        except StoreError as error:
            if not self._is_away:
                logger.warning("leases cannot be kept for now: %s", error)
            self._is_away = True
        except Exception:
            logger.exception("the keeper of leases met an error")
        else:
            return sooner
        return None

    def _extend(self) -> None:
        leases = self._runner.leases() if self._runner is not None else []
        if leases and self._runner is not None:
            asked_at = self._runner.now()
            states = self._store.extend(leases, self._pipe.settings.lease)
            self._runner.kept(dict(zip(leases, states, strict=True)), asked_at)

    def _note_progress(self) -> None:
        reports = self._runner.take_progress() if self._runner is not None else []
        if reports:
            self._store.progress(reports)

    def _rescue(self) -> float | None:
        reach("rescue-before")
        rescued = self._store.rescue()
        if rescued:
            reach("rescue-after")
        for job in rescued:
            logger.warning("job %s was lost by its worker %s: it is %s now", job.id, job.worker, job.status)
        # Why not all at once: meanwhile this thread would keep no leases.
        return 0.0 if rescued else None

    def _beat(self) -> None:
        if self._runner is not None:
            self._store.beat(self._runner.info(), self._beat_every * _KNOWN_FOR)

    def _look(self) -> None:
        self._pipe.pace.note(self._store.counts())
        self._is_away = False  # Why only here: other chores may have had nothing to ask the store

    def _tick(self) -> float | None:
        return self._pipe.schedules.tick(self._store)

    def _prune(self) -> float | None:
        return 0.0 if self._store.prune(self._pipe.settings.keep) else None
