"""Which jobs a claim with limits takes: the lanes merged by precedence, each job past the gate of its limit.

Jobs of a keyed limit that find their gate closed are parked: taken out of the index of those that are ready, until
the gate opens. All happens in one transaction that has the types' gates for itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any, TypeAlias

from ..limits import INSURANCE, LEAD, MOST_PASSED_OVER, Gate, Limit
from .connection import Result

_Lane: TypeAlias = tuple[str, str]
"""Type and queue."""
_Name: TypeAlias = tuple[str, str]
"""Of a gate: type and key."""
_Candidate: TypeAlias = tuple[int, float, int, str, str, str | None]
"""A row of heads.sql; its order is that of claims."""
_MOST_AT_ONCE = 500
Ask: TypeAlias = Callable[..., Result]
"""Runs the statement of that name with these values, within the transaction."""


class Choice:
    """The choice of one claim."""

    def __init__(self, ask: Ask, limits: Sequence[Limit], most: int, now: float) -> None:
        self._ask = ask
        self._limits = {limit.type: limit for limit in limits}
        self._most = most
        self._now = now
        self._gates: dict[_Name, Gate] = {}
        self._entered: set[_Name] = set()  # gates with a pace that let somebody in
        self._closed: set[str] = set()  # types with a limit of their own that was reached
        self._let_out_of: list[_Name] = []  # gates of which some may enter, if their turn comes
        self._left: Counter[_Lane] = Counter()  # in each lane, what was looked at and stays there for now
        self._parked: dict[int, _Lane] = {}
        self._opens_at: dict[_Name, float] = {}  # gates before which some were parked
        self._passed_over = 0
        self.seqs: list[int] = []
        self.held: dict[int, tuple[str, float]] = {}
        """Of those that passed a gate, by seq: the gate's key, and the seconds until the start."""
        self.due_in: float | None = None

    def take(self, types: Sequence[str], locked: Sequence[str]) -> None:
        """Choose, and note in the store what came of it; gates are opened only of types that nobody else looks at."""
        cooling = self.open_gates(locked)
        lanes = self._lanes(types, cooling)
        first = self._heads(lanes, self._most)
        for _, _, seq, queue, type, key in merge(*(self._walk(lane, first[lane]) for lane in lanes)):
            limit = self._limits.get(type)
            if limit is None or self._enter(limit, seq, queue, key):
                self.seqs.append(seq)
                self._left[type, queue] += 1
                if len(self.seqs) >= self._most:
                    break
            elif self._passed_over == MOST_PASSED_OVER:
                self.wait(0.0)
                break
        self._park()
        if self._opens_at:
            self._ask("close_gates", **_names(self._opens_at), opens_at=list(self._opens_at.values()))
        self._look_again()

    def keep_pace(self, late: float) -> None:
        """Note when the next may start, as all that were let in start so much later than it was chosen."""
        paces = {name: self._gates[name].next_at + late for name in self._entered}
        if paces:
            self._ask("keep_pace", **_names(paces), next_at=list(paces.values()))

    def wait(self, seconds: float) -> None:
        """It is worth to ask again in so many seconds."""
        self.due_in = seconds if self.due_in is None else min(self.due_in, seconds)

    def open_gates(self, locked: Sequence[str]) -> Mapping[str, float]:
        """Put back into the lanes what is parked and may be claimed now; the types that start nothing, until when."""
        cooling: dict[str, float] = dict(self._ask("cooling").rows)
        warm = [type for type in locked if type not in cooling]
        names: list[_Name] = [(type, key) for type, key in self._ask("openings", types=warm).rows]
        if names:
            self._let_out(names)
        return cooling

    def _lanes(self, types: Sequence[str], cooling: Mapping[str, float]) -> list[_Lane]:
        """The lanes whose type may start anything at all."""
        lanes: list[_Lane] = [(type, queue) for type, queue in self._ask("lanes", types=list(types)).rows]
        for type, _ in lanes:
            if type in cooling:
                self.wait(cooling[type] - self._now)
        return [lane for lane in lanes if lane[0] not in cooling]

    def _let_out(self, names: list[_Name]) -> None:
        soon = self._now + LEAD / 2
        trials = self._read_gates([name for name in names if self._is_keyed(name[0])])
        rooms: dict[_Name, int] = {}
        opens_at: list[float] = []
        for name in names:
            trial = trials.get(name)
            rooms[name] = self._most if trial is None else trial.room(self._most, self._now)
            opens_at.append(soon if trial is None else max(trial.opens_at(self._now), soon))
        self._let_out_of = [name for name, room in rooms.items() if room]
        if self._let_out_of:
            found = [rooms[name] for name in self._let_out_of]
            self._ask("let_out", **_names(self._let_out_of), rooms=found)
        self._ask("opened", **_names(names), opens_at=opens_at, insured_at=self._now + INSURANCE)

    def _is_keyed(self, type: str) -> bool:
        limit = self._limits.get(type)
        return limit is not None and limit.is_keyed

    def _heads(self, lanes: Sequence[_Lane], most: int) -> dict[_Lane, list[_Candidate]]:
        """The next so many in each lane, and all the gates that they will meet."""
        found: dict[_Lane, list[_Candidate]] = {lane: [] for lane in lanes}
        if not lanes or not most:
            return found
        values = {
            "types": [type for type, _ in lanes],
            "queues": [queue for _, queue in lanes],
            "taken": [self._left[lane] for lane in lanes],
            "most": most,
        }
        for row in self._ask("heads", **values).rows:
            candidate: _Candidate = row
            found[candidate[4], candidate[3]].append(candidate)
        met = {self._gate_of(type, key) for rows in found.values() for _, _, _, _, type, key in rows}
        self._gates |= self._read_gates(
            [name for name in met if name is not None and name not in self._gates]
        )
        return found

    def _walk(self, lane: _Lane, rows: list[_Candidate]) -> Iterator[_Candidate]:
        """What is ready in a lane, as far as somebody asks; what was passed over meanwhile is parked."""
        most = self._most
        while True:
            yield from sorted(rows)
            if len(rows) < most or lane[0] in self._closed:
                return
            self._park()
            most = min(4 * most, _MOST_AT_ONCE)  # the more were passed over, the more are likely to be
            rows = self._heads([lane], most)[lane]

    def _gate_of(self, type: str, key: str | None) -> _Name | None:
        limit = self._limits.get(type)
        if limit is None or (limit.is_keyed and key is None):
            return None
        return type, (key or "" if limit.is_keyed else "")

    def _read_gates(self, names: Sequence[_Name]) -> dict[_Name, Gate]:
        if not names:
            return {}
        found = self._ask("gates_of", **_names(names)).rows
        return {(type, key): Gate(self._limits[type], self._now, at, count) for type, key, at, count in found}

    def _enter(self, limit: Limit, seq: int, queue: str, key: str | None) -> bool:
        name = self._gate_of(limit.type, key)
        if name is None:
            return True
        if limit.type in self._closed:
            return False
        gate = self._gates[name]
        starts_in = gate.enter(self._now)
        if starts_in is not None:
            self.held[seq] = (name[1], starts_in)
            if limit.interval:
                self._entered.add(name)
            return True
        opens_at = gate.opens_at(self._now)
        if limit.is_keyed:
            self._passed_over += 1
            self._parked[seq] = limit.type, queue
            self._opens_at[name] = opens_at
        else:
            self._closed.add(limit.type)
            self.wait(opens_at - self._now)
        return False

    def _park(self) -> None:
        if self._parked:
            for (seq,) in self._ask("park", seqs=list(self._parked)).rows:
                del self._parked[seq]
            self._left.update(self._parked.values())  # which others have locked
            self._parked = {}

    def _look_again(self) -> None:
        """Gates with room left open again at once. Why: those that were let out may be cancelled before their turn."""
        open = [
            name
            for name in self._let_out_of
            if (gate := self._gates.get(name)) is None or gate.is_open(self._now)
        ]
        if open:
            self._ask("reopen", **_names(open))


def _names(names: Iterable[_Name]) -> dict[str, Any]:
    pairs = list(names)
    return {"types": [type for type, _ in pairs], "keys": [key for _, key in pairs]}
