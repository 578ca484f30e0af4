"""Which jobs a claim with limits takes: the lanes merged by precedence, and what the selection through the gates makes
of them.

Those that are parked are out of the index of those that are ready. All happens in one transaction that has the types'
gates for itself; a round trip brings the next in many lanes, or many gates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any, TypeAlias

from ...model.gate import INSURANCE, Gate, Limit, split_limits
from ...model.lease import QueueChoice
from ...model.selection import Candidate, Name, Place, Selection, Shares, way_out
from .connection import Result

_Lane: TypeAlias = tuple[str, str]
"""Type and queue."""
_MOST_AT_ONCE = 500
Ask: TypeAlias = Callable[..., Result]
"""Runs the statement of that name with these values, within the transaction."""


class Choice:
    """The choice of one claim."""

    def __init__(
        self,
        ask: Ask,
        limits: Sequence[Limit],
        most: int,
        now: float,
        begin: int | None = None,
        queues: QueueChoice | None = None,
    ) -> None:
        self._ask = ask
        self._most = most
        self._now = now
        self._begin = begin
        self._alone: set[int] = set()  # of all candidates that were read, what is never claimed ahead
        self._gates: dict[Name, Gate] = {}  # of all candidates that were read
        self._let_out_of: list[Name] = []  # gates of which some may enter, if their turn comes
        self._left: Counter[_Lane] = Counter()  # in each lane, what was looked at and stays there for now
        self._parked: dict[int, _Lane] = {}
        self._limits, self._queue_limits = split_limits(limits)
        self._queues = queues
        self._shares = Shares(queues.rooms) if queues is not None and queues.rooms else None
        self.selection = Selection(self._limits, most, now, self._gates, self._shares, self._queue_limits)
        self.taken: dict[int, Place] = {}
        """By seq."""
        self.begins: list[bool] = []
        """Of those that are taken, where queues have rooms."""

    def take(self, types: Sequence[str], locked: Sequence[str]) -> None:
        """Choose, and note in the store what came of it; gates are opened only of types that nobody else looks at."""
        cooling = self.open_gates(locked)
        lanes = self._lanes(types, cooling)
        self._read_queue_gates({queue for _, queue in lanes} & self._queue_limits.keys())
        first = self._heads(lanes, self._most)
        walks = merge(*(self._walk(lane, first[lane]) for lane in lanes))
        for (_, _, seq, queue, type, _), place in self.selection.take(walks, self._begin, self._alone):
            if place is None:
                self._parked[seq] = type, queue
            else:
                self.taken[seq] = place
                self._left[type, queue] += 1
                if self._shares is not None:
                    self.begins.append(self._shares.take(queue))
        self._park()
        closing = self.selection.closing
        if closing:
            self._ask("close_gates", **_names(closing), opens_at=list(closing.values()))
        with_room = self.selection.with_room(self._let_out_of)
        if with_room:
            self._ask("reopen", **_names(with_room))

    def keep_pace(self, late: float) -> None:
        """Note when the next may start, as all that were let in start so much later than it was chosen."""
        paces = self.selection.paces()
        if paces:
            self._ask("keep_pace", **_names(paces), next_at=[next_at + late for next_at in paces.values()])

    def open_gates(self, locked: Sequence[str]) -> Mapping[str, float]:
        """Put back into the lanes what is parked and may be claimed now; the types that start nothing, until when."""
        cooling: dict[str, float] = dict(self._ask("cooling").rows)
        warm = [type for type in locked if type not in cooling]
        names: list[Name] = [(type, key) for type, key in self._ask("openings", types=warm).rows]
        if names:
            self._let_out(names)
        return cooling

    def _lanes(self, types: Sequence[str], cooling: Mapping[str, float]) -> list[_Lane]:
        """The lanes whose type may start anything at all."""
        found = self._ask("lanes", types=list(types)).rows
        lanes: list[_Lane] = [
            (type, queue) for type, queue in found if self._queues is None or queue in self._queues
        ]
        for type, _ in lanes:
            if type in cooling:
                self.selection.wait(cooling[type] - self._now)
        return [lane for lane in lanes if lane[0] not in cooling]

    def _let_out(self, names: list[Name]) -> None:
        trials = self._read_gates([name for name in names if self.selection.is_keyed(name[0])])
        ways = {name: way_out(trials.get(name), self._most, self._now) for name in names}
        rooms = {name: room for name, (room, _) in ways.items() if room}
        if rooms:
            self._let_out_of = list(rooms)
            self._ask("let_out", **_names(rooms), rooms=list(rooms.values()))
        opens_at = [opens_at for _, opens_at in ways.values()]
        self._ask("opened", **_names(ways), opens_at=opens_at, insured_at=self._now + INSURANCE)

    def _heads(self, lanes: Sequence[_Lane], most: int) -> dict[_Lane, list[Candidate]]:
        """The next so many in each lane, and all the gates that they will meet."""
        found: dict[_Lane, list[Candidate]] = {lane: [] for lane in lanes}
        if not lanes or not most:
            return found
        values = {
            "types": [type for type, _ in lanes],
            "queues": [queue for _, queue in lanes],
            "taken": [self._left[lane] for lane in lanes],
            "most": most,
        }
        rows = self._ask("heads", **values).rows
        behind = [name for *_, name in rows if name is not None]
        if behind:
            put_behind(self._ask, behind)
            rows = self._ask("heads", **values).rows
        for *row, is_alone, name in rows:
            candidate: Candidate = tuple(row)
            if name is not None:  # another has locked it
                self._left[candidate[4], candidate[3]] += 1
                continue
            if is_alone:
                self._alone.add(candidate[2])
            found[candidate[4], candidate[3]].append(candidate)
        met = {self.selection.gate_of(type, key) for rows in found.values() for *_, type, key in rows}
        unread = [name for name in met if name is not None and name not in self._gates]
        self._gates.update(self._read_gates(unread))
        return found

    def _is_over(self, lane: _Lane) -> bool:
        """Will nothing more of the lane be claimed?"""
        type, queue = lane
        return (
            type in self.selection.closed
            or queue in self.selection.closed_queues
            or (self._shares is not None and queue in self._shares.full)
        )

    def _walk(self, lane: _Lane, rows: list[Candidate]) -> Iterator[Candidate]:
        """What is ready in a lane, as far as somebody asks; what was passed over meanwhile is parked."""
        most = self._most
        while True:
            yield from sorted(rows)
            if len(rows) < most or self._is_over(lane):
                return
            self._park()
            most = min(4 * most, _MOST_AT_ONCE)  # the more were passed over, the more are likely to be
            rows = self._heads([lane], most)[lane]

    def _read_gates(self, names: Sequence[Name]) -> dict[Name, Gate]:
        if not names:
            return {}
        found = self._ask("gates_of", **_names(names)).rows
        return {(type, key): Gate(self._limits[type], self._now, at, count) for type, key, at, count in found}

    def _read_queue_gates(self, queues: set[str]) -> None:
        found = self._ask("queue_gates", queues=sorted(queues)).rows if queues else ()
        for queue, next_at, running, _ in found:
            self._gates["", queue] = Gate(self._queue_limits[queue], self._now, next_at, running)

    def _park(self) -> None:
        if self._parked:
            for (seq,) in self._ask("park", seqs=list(self._parked)).rows:
                del self._parked[seq]
            self._left.update(self._parked.values())  # which others have locked
            self._parked = {}


def put_behind(ask: Ask, names: list[str]) -> None:
    """Park jobs that wait for another of their unique name, within a transaction that has these names for itself."""
    own = [name for (name,) in ask("try_names", names=names).rows]
    if own:
        ask("put_behind", names=own)  # Why apart: its look is later than the locks


def _names(names: Iterable[Name]) -> dict[str, Any]:
    pairs = list(names)
    return {"types": [type for type, _ in pairs], "keys": [key for _, key in pairs]}
