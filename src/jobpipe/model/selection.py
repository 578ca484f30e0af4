"""Which candidates of a claim pass the gates of their limits: the rule, without any store.

A store feeds it candidates and says how gates stand; what it answers, the store writes down. A type, or queue, whose own
limit is reached is closed for the rest of the claim. A job of a keyed limit that finds its gate closed is parked: out of
the way of all claims, until the gate opens. The stores in memory and Redis follow the same rule in steps of their own.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TypeAlias

from .gate import LEAD, MOST_PASSED_OVER, Gate, Limit
from .lease import Room

Candidate: TypeAlias = tuple[float, float, int, str, str, str | None]
"""Minus its priority, run_at and seq, then queue, type and key; the order is that of claims."""
Name: TypeAlias = tuple[str, str]
"""Of a gate: type and key; of that of a queue: nothing and the queue."""
Place: TypeAlias = tuple[str | None, float]
"""Of a job to be claimed: the key of the gate that it passed, None if there was none, and the seconds until it starts."""
_FREE: Place = (None, 0.0)


class Shares:
    """What is left of the rooms of queues with slots of their own, during one claim."""

    def __init__(self, rooms: Mapping[str, Room]) -> None:
        self._most = {queue: room.most for queue, room in rooms.items()}
        self._begin = {queue: room.begin for queue, room in rooms.items()}
        self.full: set[str] = set()
        """Queues of which no more can be claimed, though there is more."""

    def has_room(self, queue: str, *, is_alone: bool) -> bool:
        """May the next job of the queue be claimed? If not, none after it, either."""
        if self._most[queue] > 0 and (self._begin[queue] > 0 or not is_alone) and queue not in self.full:
            return True
        self.full.add(queue)
        return False

    def take(self, queue: str) -> bool:
        """The next job of the queue is claimed: does it begin?"""
        self._most[queue] -= 1
        self._begin[queue] -= 1
        return self._begin[queue] >= 0


class Selection:
    """The gates during one claim."""

    def __init__(
        self,
        limits: Mapping[str, Limit],
        most: int,
        now: float,
        gates: dict[Name, Gate],
        shares: Shares | None = None,
        queue_limits: Mapping[str, Limit] | None = None,
    ) -> None:
        self._limits = limits
        self._most = most
        self._now = now
        self._gates = gates
        """As they stand: all that candidates come to must be there by then, if only by `__missing__`."""
        self._shares = shares
        self._queue_limits = queue_limits or {}
        self.closed_queues: set[str] = set()
        """Those whose own limit was reached."""
        self.entered: set[Name] = set()
        """Gates that somebody passed."""
        self.closed: set[str] = set()
        """Types with a limit of their own that was reached."""
        self.closing: dict[Name, float] = {}
        """Gates before which jobs are parked now, and when each opens."""
        self.due_in: float | None = None
        """Seconds until it is worth to ask again, as far as is known."""
        self.is_cut = False
        """Did it end before a job that is never claimed ahead, or a queue with slots of its own before its jobs did?"""

    def take(
        self, candidates: Iterable[Candidate], begin: int | None = None, alone: Container[int] = ()
    ) -> Iterator[tuple[Candidate, Place | None]]:
        """Those to be claimed with their places, and those to be parked without; of closed types nothing is told.

        After the first that begin it ends before one that is never claimed ahead, given by seq.

        The next candidate is asked for only when it is needed, and when the one before is dealt with.
        """
        taken = passed_over = 0
        for candidate in candidates if self._most > 0 else ():
            _, _, seq, queue, type, key = candidate
            if self._shares is not None:
                if not self._shares.has_room(queue, is_alone=seq in alone):
                    self.is_cut = True
                    continue
            elif begin is not None and taken >= begin and seq in alone:
                self.is_cut = True
                return
            if queue in self._queue_limits:
                place = self._enter(type, key, queue)
                if queue in self.closed_queues:
                    continue
            else:
                place = self._enter(type, key) if type in self._limits else _FREE
            if place is not None:
                yield candidate, place
                taken += 1
                if taken == self._most:
                    return
            elif type not in self.closed:
                yield candidate, None
                passed_over += 1
                if passed_over == MOST_PASSED_OVER:
                    self.wait(0.0)
                    return

    def gate_of(self, type: str, key: str | None) -> Name | None:
        """On the way of such a job; None if there is none."""
        limit = self._limits.get(type)
        if limit is None:
            return None
        if limit.is_keyed:
            return None if key is None else (type, key)
        return type, ""

    def is_keyed(self, type: str) -> bool:
        limit = self._limits.get(type)
        return limit is not None and limit.is_keyed

    def wait(self, seconds: float) -> None:
        """It is worth to ask again in so many seconds."""
        self.due_in = seconds if self.due_in is None else min(self.due_in, seconds)

    def paces(self) -> dict[Name, float]:
        """When the next start is evenly paced, of the gates with a rate that let somebody in."""
        paced = [name for name in self.entered if self._gates[name].limit.interval]
        return {name: self._gates[name].next_at for name in paced}

    def with_room(self, names: Iterable[Name]) -> list[Name]:
        """Of gates that some were let out of, those that would let in more: they open again at once."""
        # Why: those that were let out may be cancelled before their turn.
        gates = [(name, self._gates.get(name)) for name in names]
        return [name for name, gate in gates if gate is None or gate.is_open(self._now)]

    def _enter(self, type: str, key: str | None, queue: str = "") -> Place | None:
        name = self.gate_of(type, key)
        whole = self._gates["", queue] if queue else None
        if whole is not None and not whole.is_open(self._now):
            self.closed_queues.add(queue)
            self.wait(whole.opens_at(self._now) - self._now)
            return None
        gate = self._gates[name] if name is not None else whole
        if gate is None:
            return _FREE
        starts_in = gate.enter(self._now, None if gate is whole else whole)
        if starts_in is not None:
            if whole is not None:
                self.entered.add(("", queue))
            if name is None:
                return None, starts_in
            self.entered.add(name)
            return name[1], starts_in
        opens_at = gate.opens_at(self._now)
        if name is not None and gate.limit.is_keyed:
            self.closing[name] = opens_at
        else:
            self.closed.add(type)
            self.wait(opens_at - self._now)
        return None


def way_out(trial: Gate | None, most: int, now: float) -> tuple[int, float]:
    """How many of those parked before a gate might enter, up to so many, and when it opens for the others.

    None stands for a gate that holds nobody up any more. The gate is used up by the trial.
    """
    soon = now + LEAD / 2
    if trial is None:
        return most, soon
    return trial.room(most, now), max(trial.opens_at(now), soon)
