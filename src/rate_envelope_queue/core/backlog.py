"""Backlog: the envelopes that wait in a queue, and where each one is. It knows neither states nor counters.

`places` has one entry for each envelope in the queue and says where it is: a number, ready since then;
a Due, delayed until then; a Run, running. `ready_queue` orders the ready ones, `delay_queue` the delayed ones.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from ..envelope import identity_of
from .delay_queue import DelayQueue, Due
from .gates import Gate, Gates
from .ready_queue import ReadyQueue
from .run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from ..envelope import Envelope
    from .run import Again

_FEW = 64


class Backlog:
    """Ready and delayed envelopes; the work queue reads its collections directly where that is faster."""

    __slots__ = (
        "_tick",
        "delay_queue",
        "gates",
        "ordinary",
        "places",
        "promotes_at",
        "readied",
        "ready_queue",
        "tombstones",
    )

    def __init__(self, *, tick: float, limits: dict[str, Any]) -> None:
        self.places: dict[Hashable, float | Due | Run] = {}
        self.ready_queue = ReadyQueue()
        self.ordinary = self.ready_queue.ordinary
        self.tombstones: set[Hashable] = (
            set()
        )  # cancelled while ready, still in the line; none has a ready place
        self.delay_queue = DelayQueue()
        self.gates = (
            Gates(self.ready_queue, self.places, self.tombstones, **limits) if any(limits.values()) else None
        )
        self.readied = 0  # how often one became ready, apart from the fast path
        self._tick = tick
        self.promotes_at = -inf  # Why: those of a tick together cost half as much as one by one

    def __iter__(self) -> Iterator[Envelope[Any]]:
        """All, the ready ones first."""
        yield from self.ready_envelopes()
        yield from self.delay_queue

    @property
    def occupied(self) -> int:
        return len(self.places)

    @property
    def ready(self) -> int:
        held = 0 if self.gates is None else len(self.gates)
        return len(self.ready_queue) + held - len(self.tombstones)

    @property
    def delayed(self) -> int:
        return len(self.delay_queue)

    @property
    def running(self) -> int:
        return len(self.places) - self.ready - len(self.delay_queue)

    @property
    def throttled(self) -> int:
        """How often an envelope was held back by a gate."""
        return 0 if self.gates is None else self.gates.throttled

    @property
    def is_quiet(self) -> bool:
        """Is nothing ready or running?"""
        return len(self.places) == len(self.delay_queue)

    def runs(self) -> list[Run]:
        """What runs right now."""
        return [place for place in self.places.values() if isinstance(place, Run)]

    def ready_envelopes(self) -> list[Envelope[Any]]:
        """All that are ready, in order of their turn as far as no gate is in the way."""
        line = list(self.ready_queue)
        if self.gates is not None:
            line = sorted([*self.gates, *line], key=lambda envelope: -envelope._priority)
        return [envelope for envelope in line if identity_of(envelope) not in self.tombstones]

    def gates_of(self, envelope: Envelope[Any]) -> list[Gate]:
        """The gates it has to pass."""
        return [] if self.gates is None else self.gates.of(envelope._type)

    def add(self, identity: Hashable, envelope: Envelope[Any], now: float, due: float | None) -> None:
        """Ready at once, or delayed."""
        if due is not None and due > now:
            self.delay(identity, envelope, due)
            return
        if identity in self.tombstones:
            self._sweep()
        self.places[identity] = now
        self.ready_queue.append(envelope)
        self.readied += 1

    def delay(self, identity: Hashable, envelope: Envelope[Any], due: float) -> None:
        """Delayed until then, also if that is now."""
        at = Due(due)
        self.places[identity] = at
        self.delay_queue.add(identity, envelope, at)

    def add_again(
        self,
        identity: Hashable,
        envelope: Envelope[Any],
        again: Again | None,
        now: float,
        due: float | None,
        *,
        stays_delayed: bool,
    ) -> None:
        """After a run that is not the last: the newest that was sent meanwhile, at the earliest of the times."""
        if again is not None:
            envelope, sent_for = again
            if sent_for <= now:
                self.add(identity, envelope, now, None)
                return
            due = sent_for if due is None else min(due, sent_for)
        if due is not None and stays_delayed:
            self.delay(identity, envelope, due)
        else:
            self.add(identity, envelope, now, due)

    def promote(self, now: float) -> None:
        """Make ready what has come due."""
        due = self.delay_queue.pop_due(now)
        if self.tombstones:
            self._sweep()
        places, line, ordinary = self.places, self.ready_queue, self.ordinary
        for envelope in due:
            places[envelope if envelope._key is None else envelope._key] = now
            if envelope._priority:
                line.append(envelope)
            else:
                ordinary.append(envelope)
        self.readied += len(due)
        self.promotes_at = now + self._tick

    def move(self, identity: Hashable, envelope: Envelope[Any], due: float) -> None:
        """Have a delayed envelope wait until another instant."""
        place = self.places[identity]
        if isinstance(place, Due):
            self.delay_queue.remove(identity, place)
            self.delay(identity, envelope, due)

    def cool(self, type: str, until: float) -> None:
        """Start none of this type until then."""
        if self.gates is None:
            self.gates = Gates(self.ready_queue, self.places, self.tombstones)
        self.gates.cool(type, until)

    def remove(self, identity: Hashable) -> None:
        """Take out one that waits."""
        place = self.places.pop(identity)
        if isinstance(place, Due):
            self.delay_queue.remove(identity, place)
            return
        self.tombstones.add(identity)
        if len(self.tombstones) > _FEW and len(self.tombstones) * 2 > len(self.ready_queue):
            self._sweep()

    def clear(self) -> None:
        """Take out all that wait; what runs stays."""
        running = {identity_of(run.envelope): run for run in self.runs()}
        self.places.clear()
        self.places.update(running)
        self.tombstones.clear()
        self._keep(lambda _: False)
        self.delay_queue = DelayQueue()

    def _sweep(self) -> None:
        """Take the removed ones out of the ready queue."""
        self._keep(lambda envelope: identity_of(envelope) not in self.tombstones)
        self.tombstones.clear()

    def _keep(self, wanted: Callable[[Envelope[Any]], bool]) -> None:
        self.ready_queue.keep(wanted)
        if self.gates is not None:
            self.gates.keep(wanted)
