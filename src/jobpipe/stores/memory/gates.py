"""Gates: who holds a place in each, which jobs are parked before one that is closed, and when it opens.

A job of a keyed limit that finds its gate closed is parked, so that no claim has to pass it over again; it goes back to
its lane when the gate opens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count, islice

from ...model.gate import INSURANCE, Gate, GateState, Limit, Limits, split_limits
from ...model.selection import way_out
from .record import Heap, Lane, Record

_SHOWN_HOLDERS = 20


class GateRecord:
    """One gate."""

    __slots__ = ("holders", "key", "next_at", "opens_at", "parked", "type")

    def __init__(self, type: str, key: str) -> None:
        self.type = type
        self.key = key
        self.next_at = 0.0
        self.holders: dict[str, None] = {}
        self.parked: dict[Lane, Heap] = {}
        self.opens_at: float | None = None
        """When to look at those that are parked; None if there are none."""


class Gates:
    """All gates, and the types that are cooling."""

    def __init__(self) -> None:
        self._gates: dict[tuple[str, str], GateRecord] = {}
        self._opening: defaultdict[str, list[tuple[float, int, GateRecord]]] = defaultdict(list)
        """Heaps by type, of gates with parked jobs by opens_at; an entry whose gate says another time is void."""
        self._numbers = count()
        self._cooling: dict[str, float] = {}

    def gate(self, type: str, key: str) -> GateRecord:
        found = self._gates.get((type, key))
        if found is None:
            found = self._gates[type, key] = GateRecord(type, key)
        return found

    def leave(self, record: Record, now: float) -> None:
        """Give up the place that a job has."""
        assert record.gate is not None
        gate = self.gate(record.new.type, record.gate)
        record.gate = None
        del gate.holders[record.new.id]
        if gate.parked:
            self.open_at(gate, now)

    def leave_queue(self, record: Record) -> None:
        """Give up the place that a job has in the gate of its queue, before which nothing is parked."""
        record.is_in_queue_gate = False
        del self.gate("", record.new.queue).holders[record.new.id]

    def open_at(self, gate: GateRecord, at: float) -> None:
        """Have those that are parked before the gate looked at then."""
        gate.opens_at = at
        heappush(self._opening[gate.type], (at, next(self._numbers), gate))

    def park(self, record: Record, gate: GateRecord, opens_at: float) -> None:
        """Move a queued job from its lane to before its gate."""
        record.heap.discard(record)
        gate.parked.setdefault(record.lane, Heap()).push(record, record.precedence())
        if gate.opens_at is None or opens_at < gate.opens_at:
            self.open_at(gate, opens_at)

    def look_again(self, now: float) -> None:
        """Whatever is parked may have a reason less to be."""
        for gate in self._gates.values():
            if gate.opens_at is not None:
                self.open_at(gate, now)

    def let_out(
        self, type: str, limit: Limit | None, lanes: set[Lane], most: int, now: float
    ) -> list[GateRecord]:
        """Put parked jobs of the type's lanes that may be claimed now back into them; the gates with room."""
        opening = self._opening.get(type)
        opened = []
        while opening and opening[0][0] <= now:
            at, _, gate = heappop(opening)
            if gate.opens_at == at:
                gate.opens_at = None
                if self._let_out(gate, limit if limit and limit.is_keyed else None, lanes, most, now):
                    opened.append(gate)
        return opened

    def opens_in(self, type: str, now: float) -> float | None:
        """Seconds until a gate of the type opens for what is parked before it; None if nothing is."""
        opening = self._opening.get(type)
        while opening:
            at, _, gate = opening[0]
            if gate.opens_at == at:
                return max(at - now, 0.0)
            heappop(opening)
        return None

    def _let_out(
        self, gate: GateRecord, limit: Limit | None, lanes: set[Lane], most: int, now: float
    ) -> bool:
        """From each lane as many as might enter, since the best of all may be in any; was any let out?"""
        gate.parked = {lane: heap for lane, heap in gate.parked.items() if heap.live}
        trial = None if limit is None else Gate(limit, now, gate.next_at, len(gate.holders))
        room, opens_at = way_out(trial, most, now)
        let_out = 0
        for lane in lanes & gate.parked.keys():
            parked = gate.parked[lane]
            for _ in range(min(room, parked.live)):
                if record := parked.first():
                    parked.discard(record)
                    lane.ready.push(record, record.precedence())
                    let_out += 1
            if not parked.live:
                del gate.parked[lane]
        if gate.parked:
            # Why later without any: all that is parked is in queues that are paused.
            self.open_at(gate, now + INSURANCE if room and not let_out else opens_at)
        return let_out > 0

    def cool(self, type: str, until: float) -> None:
        self._cooling[type] = max(self._cooling.get(type, 0.0), until)

    def cooling(self, now: float) -> dict[str, float]:
        """Until when types are cooling."""
        self._cooling = {type: until for type, until in self._cooling.items() if until > now}
        return self._cooling

    def look(
        self, type: str | None, key: str | None, limit: int, queues: Sequence[str], now: float
    ) -> Limits:
        found = [
            gate
            for gate in self._gates.values()
            if type in (None, gate.type) and key in (None, gate.key) and (gate.next_at > now or gate.holders)
        ]
        found = sorted((gate for gate in found if gate.type), key=lambda gate: (gate.type, gate.key))
        states = [_state_of(gate, now) for gate in found[:limit]]
        of_queues = [_state_of(self.gate("", queue), now) for queue in queues]
        return Limits(now, states, dict(self.cooling(now)), of_queues)

    def parked_before(self, precedence: tuple[float, float, int], queue: str) -> int:
        """How many parked jobs of the queue come before that."""
        return sum(
            record.precedence() < precedence and record.new.queue == queue
            for gate in self._gates.values()
            for lane in gate.parked.values()
            for record in lane
        )

    def tidy(self, now: float) -> None:
        """Forget the gates that hold nothing up."""
        idle = [
            name
            for name, gate in self._gates.items()
            if gate.next_at <= now and not gate.holders and not gate.parked
        ]
        for name in idle:
            del self._gates[name]
        for type in [type for type in self._opening if self.opens_in(type, now) is None]:
            del self._opening[type]
        self.cooling(now)


def _state_of(gate: GateRecord, now: float) -> GateState:
    return GateState(
        type=gate.type,
        key=gate.key,
        next_at=gate.next_at if gate.next_at > now else 0.0,
        running=len(gate.holders),
        holders=tuple(islice(gate.holders, _SHOWN_HOLDERS)),
    )


class Selection:
    """The gates during one claim: the rule of `..selection`, with records that are moved as they are met.

    Why not that one itself: each step of it would be seen in the time of a claim that reads and writes nothing.
    """

    def __init__(self, gates: Gates, limits: Sequence[Limit], now: float) -> None:
        self._gates = gates
        self._limits, self._queue_limits = split_limits(limits)
        self._now = now
        self._open: dict[tuple[str, str], tuple[GateRecord, Gate]] = {}
        self._let_out_of: list[GateRecord] = []
        self._types: list[str] = []
        self.due_in: float | None = None
        """Seconds until it is worth to ask again, as far as is known."""

    def opened(self, lanes: Sequence[Lane], most: int) -> list[Lane]:
        """The lanes whose type may start anything at all, with what may be claimed now back in them."""
        by_type: defaultdict[str, set[Lane]] = defaultdict(set)
        for lane in lanes:
            by_type[lane.type].add(lane)
        opened: list[Lane] = []
        for type, own in by_type.items():
            until = self._gates.cooling(self._now).get(type)
            if until is not None:
                self.wait(until - self._now)
                continue
            self._types.append(type)
            self._let_out_of += self._gates.let_out(type, self._limits.get(type), own, most, self._now)
            opened += own
        return opened

    def end(self) -> None:
        """All have entered that could: see when it is worth to ask again."""
        for kept in self._let_out_of:
            found = self._open.get((kept.type, kept.key))
            # Why at once, if there is room left: those that were let out may be cancelled before their turn.
            if kept.opens_at is not None and (found is None or found[1].is_open(self._now)):
                self._gates.open_at(kept, self._now)
        for type in self._types:
            opens_in = self._gates.opens_in(type, self._now)
            if opens_in is not None:
                self.wait(opens_in)

    def enter(self, record: Record) -> float | None:
        """In how many seconds a job may start; None if it has to wait: then it is parked, if its limit is keyed."""
        if self._queue_limits and record.new.queue in self._queue_limits:
            return self._enter_both(record, self._queue_limits[record.new.queue])
        limit = self._limit_of(record)
        return 0.0 if limit is None else self._enter_own(record, limit)

    def _limit_of(self, record: Record) -> Limit | None:
        limit = self._limits.get(record.new.type)
        return None if limit is None or (limit.is_keyed and record.key is None) else limit

    def _enter_both(self, record: Record, queue_limit: Limit) -> float | None:
        """Through the gate of its queue and that of its type, or through none."""
        whole, gate = self._gate(queue_limit, record.new.queue)
        if not gate.is_open(self._now):
            self.wait(gate.opens_at(self._now) - self._now)
            return None
        limit = self._limit_of(record)
        starts_in = gate.enter(self._now) if limit is None else self._enter_own(record, limit, gate)
        if starts_in is not None:
            whole.next_at = gate.next_at
            whole.holders[record.new.id] = None
            record.is_in_queue_gate = True
        return starts_in

    def _enter_own(self, record: Record, limit: Limit, other: Gate | None = None) -> float | None:
        kept, gate = self._gate(limit, record.key or "" if limit.is_keyed else "")
        starts_in = gate.enter(self._now, other)
        if starts_in is None:
            opens_at = gate.opens_at(self._now)
            if limit.is_keyed:
                self._gates.park(record, kept, opens_at)
            else:
                self.wait(opens_at - self._now)
            return None
        kept.next_at = gate.next_at
        kept.holders[record.new.id] = None
        record.gate = kept.key
        return starts_in

    def _gate(self, limit: Limit, key: str) -> tuple[GateRecord, Gate]:
        found = self._open.get((limit.type, key))
        if found is None:
            kept = self._gates.gate(limit.type, key)
            gate = Gate(limit, self._now, kept.next_at, len(kept.holders))
            found = self._open[limit.type, key] = (kept, gate)
        return found

    def wait(self, seconds: float) -> None:
        """It is worth to ask again in so many seconds."""
        self.due_in = seconds if self.due_in is None else min(self.due_in, seconds)
