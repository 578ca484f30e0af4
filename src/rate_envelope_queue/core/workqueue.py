"""WorkQueue: what is sent, taken and settled. Capacity, deduplication, delay, lifecycle and the counters.

Who is in the queue, and where, is in the three collections of its Backlog. What is occupied, ready, delayed
and running is derived from them, so that no count can leak.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING, Any

from ..envelope import PLAIN, Envelope, identity_of
from ..errors import CapacityExceededError, EnvelopeBlacklistedError
from ..metrics import BATCH
from .backlog import Backlog
from .counters import Counters
from .delay_queue import Due
from .entry import Entry
from .lifecycle import REFUSES, TRANSITIONS, Event, QueueState
from .records import Records
from .run import Run
from .verdict import VERDICTS, Ending, Mode, Verdict

if TYPE_CHECKING:
    from ..clock import Clock
    from ..schedule import Beat


class WorkQueue(Counters):
    """Ready, running and delayed envelopes of one queue. Not thread-safe: the driver holds its lock."""

    __slots__ = (
        "_clock",
        "_drains",
        "_keeps",
        "_room",
        "backlog",
        "blacklist",
        "capacity",
        "follows_wall",
        "is_dispatching",
        "is_paused",
        "may_refuse",
        "records",
        "removed",
        "state",
    )

    def __init__(
        self, *, capacity: int, clock: Clock, tick: float = 0.0, metrics: bool = True, **limits: Any
    ) -> None:
        super().__init__(measures=metrics)
        self.capacity = capacity
        self._room = capacity or inf
        self._clock = clock  # handed on to the contexts, never asked
        self.backlog = Backlog(tick=tick, limits=limits)
        self.records = Records()
        self.blacklist: set[str] = set()
        self.state = QueueState.INIT
        self.is_paused = False
        self._drains = True  # does this stop run what is ready?
        self._keeps = True  # does what waits survive this stop?
        self.is_dispatching = False
        self.may_refuse = False  # may a send be refused for the state or the blacklist?
        self.follows_wall = False  # has there been an envelope that waits for a time of day?
        self.removed: list[Envelope[Any]] = []
        """What was dropped, until the driver has let it go."""

    # -- what it counts, and what comes next

    @property
    def adds(self) -> int:
        """How often an envelope became ready: sent, by a tick or for a retry."""
        return self.added - self._slowly_added + self.backlog.readied

    @property
    def next_due(self) -> float:
        """When the next envelope may start that may not now; infinity if none will by itself."""
        delayed_until = self.backlog.delay_queue.next_at if self.state is QueueState.RUNNING else inf
        if self.backlog.gates is None or not self.is_dispatching:
            return delayed_until
        return min(delayed_until, self.backlog.gates.next_at)

    def next_change(self, now: float) -> float:
        """When something happens by itself after now; what may start already waits only for a worker."""
        next_due = float(self.next_due)
        if next_due > now:
            return next_due
        return float(self.backlog.delay_queue.next_at) if self.state is QueueState.RUNNING else inf

    # -- lifecycle

    def apply(self, event: Event) -> bool:
        """Follow the transition table; False, and nothing changed, where it has no row."""
        after = TRANSITIONS.get((self.state, event))
        if after is None:
            return False
        self.state = after
        if event is Event.START:
            self._keeps = True
        self._changed()
        return True

    def stop(self, event: Event, *, drains: bool, keeps: bool, now: float) -> None:
        """Begin to stop. Called again while stopping, it can only make it stricter."""
        if self.state is QueueState.RUNNING:
            self._drains, self._keeps = drains, keeps
            self.promote(now)
        elif self.state is QueueState.STOPPING:
            self._drains, self._keeps = self._drains and drains, self._keeps and keeps
        self.apply(event)
        self._drop_leftovers()

    def terminate(self) -> list[Envelope[Any]]:
        """End for good; returns what will never run."""
        self.apply(Event.TERMINATE)
        unrun = list(self.backlog)
        for run in self.backlog.runs():
            if run.again is not None:
                unrun.append(run.again[0])
                run.again = None
        self.backlog.clear()
        self.records.clear()
        return unrun

    def pause(self) -> None:
        """Start nothing; a stop under way does not wait for what is ready."""
        self.is_paused = True
        self._changed()
        self._drop_leftovers()

    def resume(self) -> None:
        self.is_paused = False
        self._changed()

    @property
    def has_work(self) -> bool:
        """Is there anything ready that will be run?"""
        return self.is_dispatching and self.backlog.ready > 0

    def can_take(self, now: float) -> bool:
        """Would a worker find something?"""
        if self.backlog.gates is not None:
            return self.is_dispatching and self.backlog.gates.can_pop(now)
        return self.has_work

    def _changed(self) -> None:
        self.is_dispatching = not self.is_paused and (
            self.state is QueueState.RUNNING or (self.state is QueueState.STOPPING and self._drains)
        )
        self.may_refuse = self.state in REFUSES or bool(self.blacklist)

    def _drop_leftovers(self) -> None:
        """Drop what waits and what this stop will not run, if it is not to be kept."""
        if not self._keeps and self.state is QueueState.STOPPING:
            self._drop(list(self.backlog.delay_queue if self.is_dispatching else self.backlog))

    # -- sending

    def check(self, entries: Iterable[Entry]) -> None:
        """Raise what refuses this send: the state, then the blacklist, then the capacity."""
        error = REFUSES.get(self.state)
        if error is not None:
            raise error(f"the queue is {self.state.value} and takes no envelopes")
        for envelope, *_ in entries:
            if envelope._type in self.blacklist:
                raise EnvelopeBlacklistedError(envelope._type)
        if self.capacity:
            # Why not `… - places.keys()`: that walks over all the places, however few the entries.
            places = self.backlog.places
            needed = sum(id not in places for id in {identity_of(envelope) for envelope, *_ in entries})
            if needed and len(places) + needed > self.capacity:
                raise CapacityExceededError(capacity=self.capacity, occupied=len(places), needed=needed)

    def add(self, entries: Iterable[Entry], now: float) -> None:
        """Admit all, or none and say why."""
        self.check(entries)
        self.promote(now)
        for entry in entries:
            self._admit(entry, now)

    def add_one(self, envelope: Envelope[Any], now: float) -> None:
        """`add` of one ordinary envelope that is ready at once: the common case, by a fast path."""
        backlog = self.backlog
        places = backlog.places
        if (
            envelope in places
            or self.may_refuse
            or len(places) >= self._room
            or backlog.tombstones
            or now >= backlog.delay_queue.next_at
        ):
            self.add((Entry(envelope),), now)
        else:
            places[envelope] = now
            backlog.ordinary.append(envelope)
            self.added += 1

    def delay_one(self, envelope: Envelope[Any], now: float, due: float) -> None:
        """`add` of one ordinary envelope that is delayed, by a fast path."""
        backlog = self.backlog
        places = backlog.places
        if (
            envelope in places
            or self.may_refuse
            or len(places) >= self._room
            or now >= backlog.delay_queue.next_at
        ):
            self.add((Entry(envelope, due, due),), now)
        else:
            backlog.delay(envelope, envelope, due)
            self.added += 1
            self._slowly_added += 1

    def _admit(self, entry: Entry, now: float) -> None:
        envelope, first_due, due, beat = entry
        identity = identity_of(envelope)
        place = self.backlog.places.get(identity)
        if beat is not None:
            self.follows_wall |= envelope.schedule is not None and envelope.schedule.follows_wall
        if place is None or (isinstance(place, Run) and place.again is None):
            self.added += 1
            self._slowly_added += 1
        if place is None:
            if beat is not None:
                self.records.keep_beat(identity, beat, failed=None)
            self.backlog.add(identity, envelope, now, first_due)
        elif isinstance(place, Run):
            earlier = now if due is None else due
            if place.again is not None:
                earlier = min(earlier, place.again[1])
            place.again = (envelope, earlier)
        elif isinstance(place, Due) and (due is None or due < place):
            first = self.backlog.delay_queue.remove(identity, place)
            self.backlog.add(identity, first, now, due)

    # -- taking and settling

    def promote(self, now: float) -> None:
        """Make ready what has come due. A queue that does not run keeps it waiting for the next start."""
        if now >= self.backlog.delay_queue.next_at and self.state is QueueState.RUNNING:
            self.backlog.promote(now)

    def take(self, now: float, finished: Run | None = None) -> Run | None:
        """The next envelope to run, or None.

        `finished` is a run that has simply succeeded: it is settled on the way, by a fast path.
        """
        backlog = self.backlog
        places, gates = backlog.places, backlog.gates
        if finished is not None:
            envelope, beat = finished.envelope, finished.beat
            handling = envelope._handling
            if handling is None or handling.ticks is None:
                due = kept = None
            else:
                due, kept = handling.ticks._tick(now, beat)
            if (
                finished.again is not None
                or finished.attempt > 1
                or kept is not beat
                or (due is not None and (self.may_refuse or finished.is_last))
            ):
                self.settle(finished, _DONE if due is None else _TICKED, due, kept, now)
            else:  # Why not `settle`: nothing changes but the place, and this takes a third of the time.
                identity = envelope if envelope._key is None else envelope._key
                if due is None:
                    del places[identity]
                else:
                    places[identity] = at = Due(due)
                    backlog.delay_queue.add(identity, envelope, at)
                self.done += 1
                if gates is not None:
                    gates.leave(envelope._type)
                if self._work_batch is not None:
                    self._work_batch.append(now - finished.began_at)
        if now >= backlog.promotes_at and now >= backlog.delay_queue.next_at:
            self.promote(now)
        if not self.is_dispatching:
            return None
        line = backlog.ready_queue if backlog.ready_queue.priorities else backlog.ordinary
        while line or gates is not None:
            if gates is None:
                envelope = line.popleft()
            elif (opened := gates.pop(now)) is not None:
                envelope = opened
            else:
                return None
            identity = envelope if envelope._key is None else envelope._key
            if backlog.tombstones and identity in backlog.tombstones:
                backlog.tombstones.remove(identity)
                continue
            if (waits := self._wait_batch) is not None:
                waits.append(now - places[identity])  # type: ignore[operator]
                if len(waits) == BATCH:
                    self._fold()
            run = places[identity] = Run()
            run.envelope = envelope
            run.began_at = now
            run.again = run.beat = run.report = run.worker = run._cancelled = None
            run.is_last = False
            run._clock = self._clock
            run.attempt = 1
            if self.records and (memory := self.records.get(identity)) is not None:
                run.beat = memory.beat
                run.attempt += memory.failures
            handling = envelope._handling
            if handling is None or not handling.deadline:
                run._until = inf
            else:
                run._allowed = handling.deadline
                run._until = now + handling.deadline
            return run
        return None

    def finish(self, run: Run, now: float) -> None:
        """Settle a run that simply succeeded, where `take` cannot do it on its way."""
        ticks = (run.envelope._handling or PLAIN).ticks
        due, beat = (None, None) if ticks is None else ticks._tick(now, run.beat)
        self.settle(run, _DONE if due is None else _TICKED, due, beat, now)

    def settle(self, run: Run, verdict: Verdict, due: float | None, beat: Beat, now: float) -> None:
        """Record how a run ended, and put the envelope where it goes next."""
        envelope, again = run.envelope, run.again
        identity = envelope if envelope._key is None else envelope._key
        self.done += verdict.done
        self.failed += verdict.failed
        self.dropped += verdict.dropped
        self.panicked += verdict.panicked
        if self._work_batch is not None:
            self._work_batch.append(now - run.began_at)
        if self.backlog.gates is not None:
            self.backlog.gates.leave(envelope._type)
        if verdict.cools and due is not None:
            self.backlog.cool(envelope._type, due)
        if verdict.bans and envelope._type:
            self._ban(envelope._type)
        is_over = envelope._type in self.blacklist or run.is_last or self.state is QueueState.TERMINATED
        if due is not None and is_over:
            self.dropped += self.state is not QueueState.TERMINATED
            self.removed.append(envelope)
            due = None
        if again is not None and again[0]._type in self.blacklist:
            self.dropped += 1
            self.removed.append(again[0])
            again = None
        if due is None:
            self.records.forget(identity)
        else:
            self.retried += verdict.retried
            self.records.keep_beat(identity, beat, failed=None if verdict.cools else bool(verdict.failed))
        self.promote(now)
        if again is None and due is None:
            del self.backlog.places[identity]
        else:
            # Why never ready while it stops: a drain runs what was ready, not what was decided meanwhile.
            is_stopping = self.state is QueueState.STOPPING
            self.backlog.add_again(identity, envelope, again, now, due, stays_delayed=is_stopping)
        self._drop_leftovers()

    # -- taking out

    def cancel(self, envelope: Envelope[Any]) -> tuple[bool, Run | None]:
        """Take it out for good: was it there, and the run whose context is to be cancelled."""
        identity = identity_of(envelope)
        place = self.backlog.places.get(identity)
        if place is None:
            return False, None
        if isinstance(place, Run):
            place.is_last = True
            place.again = None
            return True, place
        self._drop((envelope,))
        return True, None

    def allow(self, type: str) -> bool:
        """Lift the ban on a type; was there one?"""
        was_banned = type in self.blacklist
        self.blacklist.discard(type)
        self._changed()
        return was_banned

    def _ban(self, type: str) -> None:
        self.blacklist.add(type)
        self._changed()
        self._drop([envelope for envelope in self.backlog if envelope._type == type])

    def _drop(self, envelopes: Iterable[Envelope[Any]]) -> None:
        for envelope in envelopes:
            identity = identity_of(envelope)
            self.backlog.remove(identity)
            self.records.forget(identity)
            self.dropped += 1
            self.removed.append(envelope)


_DONE = VERDICTS[Ending.SUCCESS, Mode.ONCE, None]
_TICKED = VERDICTS[Ending.SUCCESS, Mode.INTERVAL, None]
