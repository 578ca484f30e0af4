"""Slots: how many jobs run at once in this process, for all queues together or for each by itself.

A pool is a number of slots, the jobs that hold one or wait for one here, and how many to claim ahead. Queues with slots
of their own have a pool each: the jobs of one never wait for those of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..model.lease import QueueChoice, Room
from .prefetch import Prefetch

if TYPE_CHECKING:
    from ..model.counts import WorkerInfo


class Pool:
    """Some slots of one runner; used on its event loop."""

    __slots__ = ("prefetch", "slots", "unended")

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.prefetch = Prefetch(slots)
        self.unended = 0
        """Jobs that wait or run."""

    @property
    def is_low(self) -> bool:
        """Is it time to claim more, as far as there is more?"""
        return self.prefetch.is_low(self.unended)

    def room(self, now: float) -> int:
        """How many jobs to claim now."""
        return self.prefetch.room(self.unended, now)

    def has_slots(self, now: float) -> bool:
        """Is a slot free, or about to be?"""
        return self.unended < self.slots or self.prefetch.has_turnover(now)


class Pools:
    """All slots of a runner, and which queues it serves."""

    def __init__(self, worker: WorkerInfo) -> None:
        self._by_queue = {queue: Pool(slots) for queue, slots in worker.slots_by_queue.items()}
        self._shared = None if self._by_queue else Pool(worker.slots)
        self.all: list[Pool] = [self._shared] if self._shared is not None else list(self._by_queue.values())
        self._choice = _choice_of(worker)
        self.limited = frozenset(limit.queue for limit in worker.limits if limit.queue)
        """Queues with limits of their own."""

    @property
    def concurrency(self) -> Mapping[str, int]:
        """The slots of the queues that have their own."""
        return {queue: pool.slots for queue, pool in self._by_queue.items()}

    def of(self, queue: str) -> Pool:
        """That of the queue's jobs."""
        return self._shared or self._by_queue[queue]

    @property
    def is_low(self) -> bool:
        """Is it time to claim more for one of them?"""
        return any(pool.is_low for pool in self.all)

    def choice(self, rooms: Mapping[Pool, Room], without: frozenset[str] = frozenset()) -> QueueChoice | None:
        """What a claim is told of the queues, some left out; None if it is for all."""
        if self._shared is None:
            asked = {queue: pool for queue, pool in self._by_queue.items() if pool in rooms}
            found = {queue: rooms[pool] for queue, pool in asked.items() if queue not in without}
            return QueueChoice(rooms=found) if found else QueueChoice(only=frozenset())
        if not without:
            return self._choice
        chosen = self._choice or QueueChoice()
        if chosen.only is not None:
            return QueueChoice(only=chosen.only - without)
        return QueueChoice(excluded=chosen.excluded | without)


def _choice_of(worker: WorkerInfo) -> QueueChoice | None:
    if worker.queues is not None:
        return QueueChoice(only=frozenset(worker.queues))
    return QueueChoice(excluded=frozenset(worker.except_queues)) if worker.except_queues else None
