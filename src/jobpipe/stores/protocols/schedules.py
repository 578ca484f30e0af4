"""ScheduleStore: schedules, and ticks that fire once."""

from __future__ import annotations

from typing import Protocol

from ...model.newjob import NewJob, Receipt, Refusal
from ...model.schedule import ScheduleEntry, Schedules


class ScheduleStore(Protocol):
    """The schedules."""

    def put_schedule(self, entry: ScheduleEntry) -> ScheduleEntry:
        """Make or change a schedule; what it is now.

        One whose timing stays the same keeps its ticks; one that is paused stays so, and becomes so if the entry is.
        """

    def drop_schedule(self, name: str) -> bool:
        """Forget a schedule; was it there?"""

    def pause_schedule(self, name: str) -> bool:
        """Let no tick of a schedule fire, until it is resumed; is it there?"""

    def resume_schedule(self, name: str, tick_at: float, next_at: float) -> bool:
        """Undo a pause, and go on with another tick in place of the one at which it stood.

        False, and nothing is changed, if it is not paused at that one (any more).
        """

    def schedules(self) -> Schedules:
        """All schedules."""

    def fire_tick(
        self, name: str, tick_at: float, next_at: float, job: NewJob | None, *, capacity: int = 0
    ) -> Receipt | Refusal | None:
        """Insert the job of a tick, if there is one, and go on to the next: both, and only for the first caller.

        None if the schedule's next tick is not that one (any more), or it is paused, or there was no job to insert.
        What keeps the job from being inserted leaves the tick due.
        """
