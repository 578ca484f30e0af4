"""Which jobs a claim with limits takes: the lanes merged by precedence, and what the selection through the gates makes
of them.

Those that are parked are out of the index of those that are ready. All happens in one transaction that has the types'
gates for itself; a round trip brings the next in many lanes, or many gates.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any, TypeAlias

from ....model.gate import INSURANCE, Gate, Limit, split_limits
from ....model.lease import QueueChoice
from ....model.selection import Candidate, Name, Place, Selection, Shares, way_out
from ..verb import Conversation, Step

_Lane: TypeAlias = tuple[str, str]
"""Type and queue."""
_MOST_AT_ONCE = 500
MakeStep: TypeAlias = Callable[..., Step]
"""The statement of that name with these values, by the time of the choice."""


class Choice:
    """The choice of one claim."""

    def __init__(
        self,
        step: MakeStep,
        limits: Sequence[Limit],
        most: int,
        now: float,
        begin: int | None = None,
        queues: QueueChoice | None = None,
    ) -> None:
        self._step = step
        self._most = most
        self._now = now
        self._begin = begin
        self._alone: set[int] = set()  # of all candidates that were read, what is never claimed ahead
        self._gates: dict[Name, Gate] = {}  # of all candidates that were read
        self._let_out_of: list[Name] = []  # gates of which some may enter, if their turn comes
        self._left: Counter[_Lane] = Counter()  # in each lane, what was looked at and stays there for now
        self._parked: dict[int, _Lane] = {}
        self._unread: defaultdict[_Lane, deque[Candidate]] = defaultdict(
            deque
        )  # brought, and not looked at yet
        self._asked: dict[_Lane, int] = {}  # for how many the last time
        self._ended: set[_Lane] = set()  # lanes that had fewer than were asked for
        self._limits, self._queue_limits = split_limits(limits)
        self._queues = queues
        self._shares = Shares(queues.rooms) if queues is not None and queues.rooms else None
        self.selection = Selection(self._limits, most, now, self._gates, self._shares, self._queue_limits)
        self.taken: dict[int, Place] = {}
        """By seq."""
        self.begins: list[bool] = []
        """Of those that are taken, where queues have rooms."""

    def take(self, types: Sequence[str], locked: Sequence[str]) -> Conversation[None]:
        """Choose, and note in the store what came of it; gates are opened only of types that nobody else looks at."""
        cooling = yield from self.open_gates(locked)
        lanes = yield from self._lanes(types, cooling)
        yield from self._read_queue_gates({queue for _, queue in lanes} & self._queue_limits.keys())
        yield from self._read_on(lanes, self._most)
        walks = merge(*map(self._walk, lanes))
        for (_, _, seq, queue, type, _), place in self.selection.take(walks, self._begin, self._alone):
            lane = type, queue
            if place is None:
                self._parked[seq] = lane
            else:
                self.taken[seq] = place
                self._left[lane] += 1
                if self._shares is not None:
                    self.begins.append(self._shares.take(queue))
            if not self._unread[lane] and self._has_more(lane):
                yield from self._park()
                # Why more: the more were passed over, the more are likely to be.
                yield from self._read_on([lane], min(4 * self._asked[lane], _MOST_AT_ONCE))
        yield from self._park()
        closing = self.selection.closing
        if closing:
            yield self._step("close_gates", **_names(closing), opens_at=list(closing.values()))
        with_room = self.selection.with_room(self._let_out_of)
        if with_room:
            yield self._step("reopen", **_names(with_room))

    def keep_pace(self, late: float) -> Conversation[None]:
        """Note when the next may start, as all that were let in start so much later than it was chosen."""
        paces = self.selection.paces()
        if paces:
            yield self._step(
                "keep_pace", **_names(paces), next_at=[next_at + late for next_at in paces.values()]
            )

    def open_gates(self, locked: Sequence[str]) -> Conversation[Mapping[str, float]]:
        """Put back into the lanes what is parked and may be claimed now; the types that start nothing, until when."""
        cooling: dict[str, float] = dict((yield self._step("cooling")).rows)
        warm = [type for type in locked if type not in cooling]
        names: list[Name] = [(type, key) for type, key in (yield self._step("openings", types=warm)).rows]
        if names:
            yield from self._let_out(names)
        return cooling

    def _lanes(self, types: Sequence[str], cooling: Mapping[str, float]) -> Conversation[list[_Lane]]:
        """The lanes whose type may start anything at all."""
        found = (yield self._step("lanes", types=list(types))).rows
        lanes: list[_Lane] = [
            (type, queue) for type, queue in found if self._queues is None or queue in self._queues
        ]
        for type, _ in lanes:
            if type in cooling:
                self.selection.wait(cooling[type] - self._now)
        return [lane for lane in lanes if lane[0] not in cooling]

    def _let_out(self, names: list[Name]) -> Conversation[None]:
        trials = yield from self._read_gates([name for name in names if self.selection.is_keyed(name[0])])
        ways = {name: way_out(trials.get(name), self._most, self._now) for name in names}
        rooms = {name: room for name, (room, _) in ways.items() if room}
        if rooms:
            self._let_out_of = list(rooms)
            yield self._step("let_out", **_names(rooms), rooms=list(rooms.values()))
        opens_at = [opens_at for _, opens_at in ways.values()]
        yield self._step("opened", **_names(ways), opens_at=opens_at, insured_at=self._now + INSURANCE)

    def _read_on(self, lanes: Sequence[_Lane], most: int) -> Conversation[None]:
        """Read the next jobs of each lane, and all the gates that they will meet."""
        if not lanes or not most:
            return
        values = {
            "types": [type for type, _ in lanes],
            "queues": [queue for _, queue in lanes],
            "taken": [self._left[lane] for lane in lanes],
            "most": most,
        }
        rows = (yield self._step("heads", **values)).rows
        behind = [name for *_, name in rows if name is not None]
        if behind:
            yield from put_behind(self._step, behind)
            rows = (yield self._step("heads", **values)).rows
        met: set[Name | None] = set()
        found: list[Candidate] = []
        for *row, is_alone, name in rows:
            _, _, seq, queue, type, key = row
            if name is not None:  # another has locked it
                self._left[type, queue] += 1
                continue
            if is_alone:
                self._alone.add(seq)
            found.append(tuple(row))
            met.add(self.selection.gate_of(type, key))
        for candidate in sorted(found):
            self._unread[candidate[4], candidate[3]].append(candidate)
        self._asked.update(dict.fromkeys(lanes, most))
        self._ended.update(lane for lane in lanes if len(self._unread[lane]) < most)
        unread = [name for name in met if name is not None and name not in self._gates]
        self._gates.update((yield from self._read_gates(unread)))

    def _walk(self, lane: _Lane) -> Iterator[Candidate]:
        """The jobs read of a lane; when the last one is taken, more are read, if there are any."""
        unread = self._unread[lane]
        while unread:
            yield unread.popleft()

    def _has_more(self, lane: _Lane) -> bool:
        """May more of the lane be claimed than was brought?"""
        type, queue = lane
        return not (
            lane in self._ended
            or len(self.taken) == self._most
            or type in self.selection.closed
            or queue in self.selection.closed_queues
            or (self._shares is not None and queue in self._shares.full)
        )

    def _read_gates(self, names: Sequence[Name]) -> Conversation[dict[Name, Gate]]:
        if not names:
            return {}
        found = (yield self._step("gates_of", **_names(names))).rows
        return {(type, key): Gate(self._limits[type], self._now, at, count) for type, key, at, count in found}

    def _read_queue_gates(self, queues: set[str]) -> Conversation[None]:
        found = (yield self._step("queue_gates", queues=sorted(queues))).rows if queues else ()
        for queue, next_at, running, _ in found:
            self._gates["", queue] = Gate(self._queue_limits[queue], self._now, next_at, running)

    def _park(self) -> Conversation[None]:
        if self._parked:
            for (seq,) in (yield self._step("park", seqs=list(self._parked))).rows:
                del self._parked[seq]
            self._left.update(self._parked.values())  # which others have locked
            self._parked = {}


def put_behind(step: MakeStep, names: list[str]) -> Conversation[None]:
    """Park jobs that wait for another of their unique name, within a transaction that has these names for itself."""
    own = [name for (name,) in (yield step("try_names", names=names)).rows]
    if own:
        yield step("put_behind", names=own)  # Why apart: its look is later than the locks


def _names(names: Iterable[Name]) -> dict[str, Any]:
    pairs = list(names)
    return {"types": [type for type, _ in pairs], "keys": [key for _, key in pairs]}
