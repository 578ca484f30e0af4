"""Gates: how fast, and how many at once, envelopes may start: of a type, and in the whole queue.

An envelope whose gate is shut waits in a queue of its own, and so holds up no other type. When its
gate opens it goes before whatever came later. A gate is passed when a run starts and left when it ends.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from ..envelope import Envelope, identity_of
from .ready_queue import ReadyQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from ..rates import Rate

_LATENESS = 0.005
"""Seconds by which an alarm may be late without slowing the pace; what it starts then is early by no more."""


class Gate:
    """One rate and one concurrency; either may be missing.

    The rate is a bucket of `burst` tokens, kept as one number: the instant at which it will be full.
    """

    __slots__ = (
        "_burst_time",
        "_concurrency",
        "_cool_until",
        "_full_at",
        "_interval",
        "opens_at",
        "paced_until",
        "running",
        "waiting",
    )

    def __init__(self, rate: Rate | None = None, concurrency: int | None = None) -> None:
        self._interval = rate.interval if rate is not None else 0.0
        self._burst_time = self._interval * (rate.burst - 1) if rate is not None else 0.0
        self._full_at = -inf
        self._cool_until = -inf
        self._concurrency = inf if concurrency is None else concurrency
        self.running = 0
        self.waiting = ReadyQueue()  # what waits for it
        self.paced_until = -inf
        """When the rate allows the next start."""
        self.opens_at = -inf
        """When the next may pass; infinity while that depends on one that runs."""

    @property
    def is_taken(self) -> bool:
        """Do as many run as may?"""
        return self.running >= self._concurrency

    def enter(self, now: float, since: float) -> None:
        """Let one pass that has been ready since then."""
        self.running += 1
        if self._interval:
            opened_at = self.paced_until
            # Why: an envelope that waited for the gate starts when an alarm has rung, a little late. Its start is counted
            # as of when the gate opened, or else the pace would fall behind with every start.
            was_held_up = since < opened_at and now - opened_at < _LATENESS
            self._full_at = max(opened_at if was_held_up else now, self._full_at) + self._interval
            self.paced_until = max(self._full_at - self._burst_time, self._cool_until)
        self.opens_at = inf if self.is_taken else self.paced_until

    def leave(self) -> None:
        """One has ended."""
        self.running -= 1
        self.opens_at = self.paced_until

    def cool(self, until: float) -> None:
        """Stay shut until then."""
        self._cool_until = max(self._cool_until, until)
        self.paced_until = max(self.paced_until, until)
        self.opens_at = inf if self.is_taken else self.paced_until


class Gates:
    """The gates of a queue, around its line of ready envelopes."""

    __slots__ = (
        "_by_type",
        "_opens_at",
        "_places",
        "_ready",
        "_shut",
        "_tombstones",
        "_turns",
        "_whole",
        "throttled",
    )

    def __init__(
        self,
        line: ReadyQueue,
        places: Mapping[Hashable, Any],
        tombstones: set[Hashable],
        rate: Rate | None = None,
        rates: Mapping[str, Rate] | None = None,
        concurrency: Mapping[str, int] | None = None,
    ) -> None:
        rates, concurrency = rates or {}, concurrency or {}
        self._ready = line
        self._places = places  # since when each is ready
        self._tombstones = tombstones  # cancelled, and to be skipped
        self._whole = Gate(rate)
        limited = {**rates, **concurrency}
        self._by_type = {name: Gate(rates.get(name), concurrency.get(name)) for name in limited}
        # Those that envelopes wait for, in the order in which they were shut.
        self._shut: dict[Gate, None] = {}
        self._turns: dict[Hashable, int] = {}  # of those that are held back: in which order they came
        self._opens_at = inf  # no gate that envelopes wait for opens before
        self.throttled = 0

    def __len__(self) -> int:
        """How many are held back."""
        return sum(len(gate.waiting) for gate in self._shut)

    def __iter__(self) -> Iterator[Envelope[Any]]:
        for gate in self._shut:
            yield from gate.waiting

    @property
    def next_at(self) -> float:
        """When one may start that may not now; infinity if that depends on one that runs, or none waits."""
        if self._ready:
            return self._whole.opens_at
        return max(self._whole.opens_at, self._opens_at) if self._shut else inf

    def can_pop(self, now: float) -> bool:
        """Is there one that may start, as far as can be seen without taking it?"""
        return self._whole.opens_at <= now and (len(self._ready) > 0 or self._opens_at <= now)

    def pop(self, now: float) -> Envelope[Any] | None:
        """Take out the next that may start, and let it pass its gates."""
        if self._whole.opens_at > now:
            return None
        while True:
            gate = None if now < self._opens_at else self._open_gate(now)
            if self._tombstones:
                self._skip_removed(self._ready)
            if gate is not None and (not self._ready or self._rank(gate.waiting) <= self._rank(self._ready)):
                envelope = gate.waiting.popleft()
                del self._turns[identity_of(envelope)]
            elif self._ready:
                envelope = self._ready.popleft()
                gate = self._by_type.get(envelope._type)
                if gate is not None and gate.opens_at > now:
                    self._hold(gate, envelope)
                    continue
            else:
                return None
            since = self._places[identity_of(envelope)]
            self._whole.enter(now, since)
            if gate is not None:
                gate.enter(now, since)
                if self._shut:
                    self._refresh()
            return envelope

    def leave(self, type: str) -> None:
        """A run of this type has ended."""
        self._whole.leave()
        gate = self._by_type.get(type)
        if gate is not None:
            gate.leave()
            if self._shut:
                self._refresh()

    def cool(self, type: str, until: float) -> None:
        """Start none of this type, or none at all without a type, until then."""
        gate = self._by_type.setdefault(type, Gate()) if type else self._whole
        gate.cool(until)
        self._refresh()

    def of(self, type: str) -> list[Gate]:
        """The gate of the whole queue, and that of the type if it has one."""
        return [self._whole, *filter(None, [self._by_type.get(type)])]

    def keep(self, wanted: Callable[[Envelope[Any]], bool]) -> None:
        """Take all others out."""
        for gate in self._shut:
            gate.waiting.keep(wanted)
        self._turns = {identity: self._turns[identity] for identity in map(identity_of, self)}
        self._refresh()

    def _open_gate(self, now: float) -> Gate | None:
        """Of the open gates that envelopes wait for, the one whose first has the best rank."""
        if self._tombstones:
            for gate in self._shut:
                self._skip_removed(gate.waiting)
            self._refresh()
        return min(
            (gate for gate in self._shut if gate.opens_at <= now),
            key=lambda gate: (self._rank(gate.waiting), self._turns[identity_of(gate.waiting.first)]),
            default=None,
        )

    def _hold(self, gate: Gate, envelope: Envelope[Any]) -> None:
        gate.waiting.append(envelope)
        self._shut[gate] = None
        self._opens_at = min(self._opens_at, gate.opens_at)
        self.throttled += 1
        self._turns[identity_of(envelope)] = self.throttled

    def _refresh(self) -> None:
        """Find the gates that envelopes wait for, and when the first of them opens."""
        self._shut = {gate: None for gate in self._shut if gate.waiting}
        self._opens_at = min((gate.opens_at for gate in self._shut), default=inf)

    def _rank(self, line: ReadyQueue) -> tuple[int, float]:
        """The order among lines: priority, then age."""
        first = line.first
        return -first._priority, self._places[identity_of(first)]

    def _skip_removed(self, line: ReadyQueue) -> None:
        while self._tombstones and line and identity_of(line.first) in self._tombstones:
            identity = identity_of(line.popleft())
            self._tombstones.discard(identity)
            self._turns.pop(identity, None)
