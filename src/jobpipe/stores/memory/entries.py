"""Entries: the schedules of a memory store, by name. Whoever calls holds the store's lock."""

from __future__ import annotations

from msgspec.structs import replace

from ...model.schedule import ScheduleEntry


class Entries:
    """All schedules, and how far each has come."""

    def __init__(self) -> None:
        self._entries: dict[str, ScheduleEntry] = {}

    def all(self) -> list[ScheduleEntry]:
        """By name."""
        return [self._entries[name] for name in sorted(self._entries)]

    def put(self, entry: ScheduleEntry) -> ScheduleEntry:
        """Make or change one; what has passed, and a pause, stay as they are."""
        known = self._entries.get(entry.name)
        if known is not None:
            is_paused = known.is_paused or entry.is_paused
            entry = replace(entry, last_at=known.last_at, last_job=known.last_job, is_paused=is_paused)
            if known.timing == entry.timing:
                entry = replace(entry, anchor_at=known.anchor_at, next_at=known.next_at)
        self._entries[entry.name] = entry
        return entry

    def drop(self, name: str) -> bool:
        """Was it there?"""
        return self._entries.pop(name, None) is not None

    def pause(self, name: str) -> bool:
        """Is it there?"""
        entry = self._entries.get(name)
        if entry is not None:
            self._entries[name] = replace(entry, is_paused=True)
        return entry is not None

    def resume(self, name: str, tick_at: float, next_at: float) -> bool:
        """Was it paused at that tick?"""
        entry = self._entries.get(name)
        if entry is None or not entry.is_paused or entry.next_at != tick_at:
            return False
        self._entries[name] = replace(entry, is_paused=False, next_at=next_at)
        return True

    def is_next_tick(self, name: str, tick_at: float) -> bool:
        """May it fire?"""
        entry = self._entries.get(name)
        return entry is not None and not entry.is_paused and entry.next_at == tick_at

    def advance(self, name: str, next_at: float, job: str | None) -> None:
        """Go on from its next tick, which has put the job in, if there is one."""
        entry = self._entries[name]
        if job is not None:
            entry = replace(entry, last_at=entry.next_at, last_job=job)
        self._entries[name] = replace(entry, next_at=next_at)
