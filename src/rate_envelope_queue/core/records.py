"""Records: what is remembered of an envelope between two runs: failures in a row, and its schedule's beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..schedule import Beat


class Record:
    """What is remembered of one envelope; never changed, but replaced."""

    __slots__ = ("beat", "failures")

    def __init__(self, failures: int, beat: Beat) -> None:
        self.failures = failures
        self.beat = beat


_NOTHING = Record(0, None)


class Records(dict["Hashable", Record]):
    """By identity; only for those that have failed or have a beat, so that it is empty for most queues."""

    __slots__ = ()

    def beat(self, identity: Hashable) -> Beat:
        """What the schedule remembers."""
        return self.get(identity, _NOTHING).beat

    def waits_for_beat(self, identity: Hashable, until: object) -> bool:
        """Is that the instant of its beat?"""
        beat = self.beat(identity)
        return isinstance(beat, tuple) and beat[1] == until

    def keep_beat(self, identity: Hashable, beat: Beat, *, failed: bool | None = False) -> None:
        """After a run, or (failed=None) apart from one: remember the beat, and count or forget the failures."""
        before = self.get(identity, _NOTHING)
        if failed is False and not before.failures and (beat is before.beat or beat is None):
            return  # nothing has changed: nearly always
        failures = before.failures if failed is None else before.failures + 1 if failed else 0
        remembered = before.beat if beat is None else beat
        if failures or remembered is not None:
            self[identity] = Record(failures, remembered)
        else:
            self.forget(identity)

    def forget(self, identity: Hashable) -> None:
        """It is finished."""
        self.pop(identity, None)
