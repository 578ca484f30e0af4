"""WallWatch: notices that the wall clock was set, and moves what waits for a time of day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..envelope import identity_of

if TYPE_CHECKING:
    from datetime import datetime

    from ..clock import Clock
    from ..core.workqueue import WorkQueue

_DRIFT = 1.0
"""Seconds between wall and monotonic clock that are no setting of either."""


class WallWatch:
    """The wall clock of one queue. Not thread-safe: the driver holds its lock."""

    __slots__ = ("_clock", "_offset", "_queue")

    def __init__(self, queue: WorkQueue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._offset = clock.wall().timestamp() - clock.now()

    def check(self, now: float) -> None:
        """If the clock was set, give each envelope that waits for a time of day its new instant."""
        if not self._queue.follows_wall:
            return
        wall = self._clock.wall()
        offset = wall.timestamp() - now
        was_set = abs(offset - self._offset) > _DRIFT
        self._offset = offset
        if was_set:
            self._move_all(now, wall)

    def _move_all(self, now: float, wall: datetime) -> None:
        backlog, records = self._queue.backlog, self._queue.records
        for envelope in list(backlog.delay_queue):
            schedule, identity = envelope.schedule, identity_of(envelope)
            if schedule is None or not schedule.follows_wall:
                continue
            if records.waits_for_beat(identity, backlog.places[identity]):  # else it waits for a retry
                due, beat = schedule.next_due(now, wall, records.beat(identity))
                backlog.move(identity, envelope, due)
                records.keep_beat(identity, beat, failed=None)
