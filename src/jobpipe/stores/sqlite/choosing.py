"""Which jobs a claim takes: the lanes merged by precedence, and what the selection through the gates makes of them.

Those that are parked are out of the index of those that are ready. Gates are read one by one, as jobs come to them.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge

from ...model.gate import INSURANCE, Gate, Limit, split_limits
from ...model.lease import QueueChoice
from ...model.selection import Candidate, Name, Place, Selection, Shares, way_out
from ..sql_rows import text_of
from .statements import sql

_Lane = tuple[str, str]
"""Queue and type."""


def has_lane(cursor: sqlite3.Cursor, types: str, queues: QueueChoice | None) -> bool:
    """Is there a lane of these types, and queues, with jobs?"""
    lanes = cursor.execute(sql("lanes"), (types,))
    return lanes.fetchone() is not None if queues is None else any(queue in queues for queue, _ in lanes)


class _Gates(dict[Name, Gate]):
    """Those that jobs have come to, each read when the first does."""

    def __init__(
        self,
        cursor: sqlite3.Cursor,
        limits: Mapping[str, Limit],
        queue_limits: Mapping[str, Limit],
        now: float,
    ) -> None:
        self._cursor = cursor
        self._limits = limits
        self._queue_limits = queue_limits
        self._now = now

    def __missing__(self, name: Name) -> Gate:
        gate = self[name] = self.read(*name)
        return gate

    def read(self, type: str, key: str) -> Gate:
        if not type:
            next_at, running, _ = self._cursor.execute(sql("queue_gate"), {"queue": key}).fetchone()
            return Gate(self._queue_limits[key], self._now, next_at, running)
        found = self._cursor.execute(sql("gate"), {"type": type, "key": key})
        return Gate(self._limits[type], self._now, *found.fetchone())


class Choice:
    """The choice of one claim, within its transaction."""

    def __init__(
        self,
        cursor: sqlite3.Cursor,
        limits: Sequence[Limit],
        most: int,
        begin: int | None,
        now: float,
        queues: QueueChoice | None = None,
    ) -> None:
        self._cursor = cursor
        self._most = most
        self._begin = begin
        self._now = now
        self._let_out_of: list[Name] = []  # gates of which some may enter, if their turn comes
        self._taken_of: Counter[_Lane] = Counter()
        self._parked: list[int] = []
        self._alone: set[int] = set()  # of those that were read, what is never claimed ahead
        by_type, by_queue = split_limits(limits)
        self._gates = _Gates(cursor, by_type, by_queue, now)
        self._queues = queues
        self._shares = Shares(queues.rooms) if queues is not None and queues.rooms else None
        self._beginning: set[int] = set()  # by seq, where queues have rooms
        self.selection = Selection(by_type, most, now, self._gates, self._shares, by_queue)
        self.taken: dict[int, Place] = {}
        """By seq."""

    def take(self, lanes: Sequence[_Lane]) -> None:
        """Choose from the lanes, and note in the store what came of it."""
        if self._queues is not None:
            # Why all queues of such a type: what its gates let out is for every worker.
            served = {type for queue, type in lanes if queue in self._queues}
            lanes = [lane for lane in lanes if lane[1] in served]
        walks = merge(*(self._walk(lane) for lane in self._opened(lanes) if self._serves(lane)))
        for (_, _, seq, queue, type, _), place in self.selection.take(walks, self._begin, self._alone):
            if place is None:
                self._parked.append(seq)
            else:
                self.taken[seq] = place
                self._taken_of[queue, type] += 1
                if self._shares is not None and self._shares.take(queue):
                    self._beginning.add(seq)
        self._park()
        for (type, key), opens_at in self.selection.closing.items():
            self._cursor.execute(sql("close_gate"), {"type": type, "key": key, "opens_at": opens_at})
        for name in self.selection.with_room(self._let_out_of):
            self._cursor.execute(sql("reopen"), name)
        # Why only those: a claim that brings nothing must write nothing, or others would take it for news.
        paces = [(*name, next_at) for name, next_at in self.selection.paces().items()]
        if paces:
            self._cursor.execute(sql("keep_pace"), {"gates": text_of(paces)})

    def claims(self) -> tuple[list[tuple[int, str | None, float, int]], list[int]]:
        """What was taken: as claim.sql's `:jobs`, and the seqs of the rest, which neither begin nor pass a gate."""
        most = len(self.taken) if self._begin is None else self._begin
        jobs = [
            (seq, gate, starts_in, int(at < most if self._shares is None else seq in self._beginning))
            for at, (seq, (gate, starts_in)) in enumerate(self.taken.items())
        ]
        if self.selection.entered:
            return jobs, []
        return [job for job in jobs if job[-1]], [seq for seq, *_, begins in jobs if not begins]

    def _serves(self, lane: _Lane) -> bool:
        return self._queues is None or lane[0] in self._queues

    def _is_over(self, lane: _Lane) -> bool:
        """Will nothing more of the lane be claimed?"""
        queue, type = lane
        return (
            type in self.selection.closed
            or queue in self.selection.closed_queues
            or (self._shares is not None and queue in self._shares.full)
        )

    def _walk(self, lane: _Lane) -> Iterator[Candidate]:
        """What is ready in a lane, in order, as far as somebody asks; what was passed over meanwhile is parked."""
        while True:
            values = (*lane, self._most, self._taken_of[lane])
            rows = self._cursor.execute(sql("first_in_lane"), values).fetchall()
            for row in rows:
                if row[6]:
                    self._alone.add(row[2])
                yield row[:6]
            if len(rows) < self._most or self._is_over(lane):
                return
            self._park()

    def _park(self) -> None:
        if self._parked:
            self._cursor.execute(sql("park"), (text_of(self._parked),))
            self._parked.clear()

    def _opened(self, lanes: Sequence[_Lane]) -> list[_Lane]:
        """The lanes whose type may start anything at all, with what may be claimed now back in them."""
        cooling = dict(self._cursor.execute(sql("cooling"), (self._now,)).fetchall())
        queues: defaultdict[str, list[str]] = defaultdict(list)
        for queue, type in lanes:
            if type in cooling:
                self.selection.wait(cooling[type] - self._now)
            else:
                queues[type].append(queue)
        for type, own in queues.items():
            for (key,) in self._cursor.execute(sql("opening"), (type, self._now)).fetchall():
                self._let_out((type, key), own)
        return [(queue, type) for type, own in queues.items() for queue in own]

    def _let_out(self, name: Name, queues: list[str]) -> None:
        """From each queue as many as might enter, since the best of all may be in any."""
        type, key = name
        trial = self._gates.read(type, key) if self.selection.is_keyed(type) else None
        room, opens_at = way_out(trial, self._most, self._now)
        let_out = 0
        for queue in queues if room else ():
            values = {"type": type, "key": key, "queue": queue, "most": room}
            let_out += self._cursor.execute(sql("let_out"), values).rowcount
        if let_out:
            self._let_out_of.append(name)
        elif room:  # all that is parked is in queues that are paused
            opens_at = self._now + INSURANCE
        self._cursor.execute(sql("opened"), {"type": type, "key": key, "opens_at": opens_at})
