"""Which jobs a claim takes: the lanes merged by precedence, each job past the gate of its limit.

Jobs of a keyed limit that find their gate closed are parked: taken out of the index of those that are ready, until
the gate opens.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from heapq import merge

from ..limits import INSURANCE, LEAD, MOST_PASSED_OVER, Gate, Limit
from .rows import text_of
from .statements import sql

_Lane = tuple[str, str]
"""Queue and type."""
_Candidate = tuple[int, float, int, str, str, str | None]
"""A row of first_in_lane.sql; its order is that of claims."""


class Choice:
    """The choice of one claim, within its transaction."""

    def __init__(self, cursor: sqlite3.Cursor, limits: Sequence[Limit], most: int, now: float) -> None:
        self._cursor = cursor
        self._limits = {limit.type: limit for limit in limits}
        self._most = most
        self._now = now
        self._gates: dict[tuple[str, str], Gate] = {}
        self._entered: set[tuple[str, str]] = set()
        self._closed: set[str] = set()  # types with a limit of their own that was reached
        self._let_out_of: list[tuple[str, str]] = []  # gates of which some may enter, if their turn comes
        self._taken_of: Counter[_Lane] = Counter()
        self._parked: list[int] = []
        self._passed_over = 0
        self.taken: list[tuple[int] | tuple[int, str, float]] = []
        """The seq of each, and for those that pass a gate, its key and the seconds until the start."""
        self.later: dict[int, float] = {}
        """Those of them that start later, by their seq."""
        self.due_in: float | None = None

    @property
    def is_gated(self) -> bool:
        """Did any of them pass a gate?"""
        return bool(self._entered)

    def take(self, lanes: Sequence[_Lane]) -> None:
        """Choose from the lanes, and note in the store what came of it."""
        for _, _, seq, queue, type, key in merge(*(self._walk(lane) for lane in self._opened(lanes))):
            limit = self._limits.get(type)
            if limit is None:
                self.taken.append((seq,))
            elif not self._enter(limit, seq, key):
                if self._passed_over == MOST_PASSED_OVER:
                    self.wait(0.0)
                    break
                continue
            self._taken_of[queue, type] += 1
            if len(self.taken) == self._most:
                break
        self._park()
        self._look_again()
        # Why only those: a claim that brings nothing must write nothing, or others would take it for news.
        paces = [
            (*name, self._gates[name].next_at) for name in self._entered if self._gates[name].limit.interval
        ]
        if paces:
            self._cursor.execute(sql("keep_pace"), {"gates": text_of(paces)})

    def wait(self, seconds: float) -> None:
        """It is worth to ask again in so many seconds."""
        self.due_in = seconds if self.due_in is None else min(self.due_in, seconds)

    def _walk(self, lane: _Lane) -> Iterator[_Candidate]:
        """What is ready in a lane, in order, as far as somebody asks; what was passed over meanwhile is parked."""
        while True:
            values = (*lane, self._most, self._taken_of[lane])
            rows = self._cursor.execute(sql("first_in_lane"), values).fetchall()
            yield from rows
            if len(rows) < self._most or lane[1] in self._closed:
                return
            self._park()

    def _enter(self, limit: Limit, seq: int, key: str | None) -> bool:
        if limit.is_keyed and key is None:
            self.taken.append((seq,))
            return True
        if limit.type in self._closed:
            return False
        name = key or "" if limit.is_keyed else ""
        gate = self._gate(limit, name)
        starts_in = gate.enter(self._now)
        if starts_in is not None:
            self.taken.append((seq, name, starts_in))
            self._entered.add((limit.type, name))
            if starts_in:
                self.later[seq] = starts_in
            return True
        opens_at = gate.opens_at(self._now)
        if limit.is_keyed:
            self._passed_over += 1
            self._parked.append(seq)
            values = {"type": limit.type, "key": name, "opens_at": opens_at}
            self._cursor.execute(sql("close_gate"), values)
        else:
            self._closed.add(limit.type)
            self.wait(opens_at - self._now)
        return False

    def _gate(self, limit: Limit, key: str) -> Gate:
        gate = self._gates.get((limit.type, key))
        if gate is None:
            gate = self._gates[limit.type, key] = self._read_gate(limit, key)
        return gate

    def _read_gate(self, limit: Limit, key: str) -> Gate:
        found = self._cursor.execute(sql("gate"), {"type": limit.type, "key": key})
        return Gate(limit, self._now, *found.fetchone())

    def _park(self) -> None:
        if self._parked:
            self._cursor.execute(sql("park"), (text_of(self._parked),))
            self._parked.clear()

    def _look_again(self) -> None:
        """Gates with room left open again at once. Why: those that were let out may be cancelled before their turn."""
        for name in self._let_out_of:
            gate = self._gates.get(name)
            if gate is None or gate.is_open(self._now):
                self._cursor.execute(sql("reopen"), (*name,))

    def _opened(self, lanes: Sequence[_Lane]) -> list[_Lane]:
        """The lanes whose type may start anything at all, with what may be claimed now back in them."""
        cooling = dict(self._cursor.execute(sql("cooling"), (self._now,)).fetchall())
        queues: defaultdict[str, list[str]] = defaultdict(list)
        for queue, type in lanes:
            if type in cooling:
                self.wait(cooling[type] - self._now)
            else:
                queues[type].append(queue)
        for type, own in queues.items():
            for (key,) in self._cursor.execute(sql("opening"), (type, self._now)).fetchall():
                self._let_out(type, key, own)
        return [(queue, type) for type, own in queues.items() for queue in own]

    def _let_out(self, type: str, key: str, queues: list[str]) -> None:
        """From each queue as many as might enter, since the best of all may be in any."""
        limit = self._limits.get(type)
        soon = self._now + LEAD / 2
        opens_at, room = soon, self._most
        if limit is not None and limit.is_keyed:
            trial = self._read_gate(limit, key)
            room = trial.room(self._most, self._now)
            opens_at = max(trial.opens_at(self._now), soon)
        let_out = 0
        for queue in queues if room else ():
            values = {"type": type, "key": key, "queue": queue, "most": room}
            let_out += self._cursor.execute(sql("let_out"), values).rowcount
        if let_out:
            self._let_out_of.append((type, key))
        elif room:  # all that is parked is in queues that are paused
            opens_at = self._now + INSURANCE
        self._cursor.execute(sql("opened"), {"type": type, "key": key, "opens_at": opens_at})
