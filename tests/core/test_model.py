"""The work queue against a model that is as naive as it can be: lists that are searched and sorted.

The machine makes the same calls to both and compares what they say. The model never looks into the queue;
the invariants do, to see that nothing is in two places.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rate_envelope_queue.core.lifecycle import Event, QueueState
from rate_envelope_queue.core.verdict import VERDICTS, Ending, Mode
from rate_envelope_queue.core.workqueue import Entry, WorkQueue
from rate_envelope_queue.decision import Choice
from rate_envelope_queue.errors import (
    CapacityExceededError,
    EnvelopeBlacklistedError,
    QueueNotRunningError,
    QueueTerminatedError,
    RateEnvelopeQueueError,
)

from .conftest import NO_CLOCK, env

if TYPE_CHECKING:
    from collections.abc import Hashable

    from rate_envelope_queue.core.run import Run
    from rate_envelope_queue.envelope import Envelope

COUNTERS = ("added", "done", "failed", "retried", "dropped", "panicked")
CRON_WAIT = 3.0
"""The envelope "cron" runs first so long after it was sent."""


def envelopes() -> list[Envelope[Any]]:
    """Few, so that they meet often: plain, typed, urgent, idle, periodic, and three under one key."""
    return [
        env("plain"),
        env("mail", type="mail"),
        env("urgent mail", type="mail", priority=5),
        env("idle sms", type="sms", priority=-1),
        env("ticker", type="sms", interval=4),
        env("cron", interval=4),
        env("key 1", type="mail", key="k"),
        env("key 2", type="sms", key="k"),
        env("key 3", key="k", priority=5),
    ]


def name_of(envelope: Envelope[Any]) -> Hashable:
    return envelope if envelope.key is None else envelope.key


@dataclass
class Running:
    """What the model knows of a run."""

    envelope: Envelope[Any]
    again: Envelope[Any] | None = None
    again_at: float = inf
    is_given_up: bool = False


@dataclass
class Model:
    """The contract, in lists."""

    capacity: int
    state: str = "init"
    is_paused: bool = False
    drains: bool = True
    keeps: bool = True
    ready: list[Envelope[Any]] = field(default_factory=list)  # in order of arrival
    delayed: list[tuple[float, Envelope[Any]]] = field(default_factory=list)  # in order of arrival
    running: list[Running] = field(default_factory=list)
    failures: dict[Hashable, int] = field(default_factory=dict)
    beats: dict[Hashable, float | None] = field(default_factory=dict)
    blacklist: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0))

    def names(self) -> list[Hashable]:
        """Of all that occupy a place."""
        waiting = [*self.ready, *(envelope for _, envelope in self.delayed)]
        return [name_of(each) for each in (*waiting, *(run.envelope for run in self.running))]

    def is_dispatching(self) -> bool:
        return not self.is_paused and (self.state == "running" or (self.state == "stopping" and self.drains))

    def come_due(self, now: float) -> None:
        if self.state == "running":
            due = [entry for entry in self.delayed if entry[0] <= now]
            self.delayed = [entry for entry in self.delayed if entry[0] > now]
            self.ready += [envelope for _, envelope in sorted(due, key=lambda entry: entry[0])]

    def refusal(self, sent: list[Envelope[Any]]) -> RateEnvelopeQueueError | None:
        if self.state == "terminated":
            return QueueTerminatedError()
        if self.state in ("stopping", "stopped"):
            return QueueNotRunningError()
        for envelope in sent:
            if envelope.type in self.blacklist:
                return EnvelopeBlacklistedError(envelope.type)
        occupied, new = self.names(), {name_of(envelope) for envelope in sent}
        needed = len([name for name in new if name not in occupied])
        if self.capacity and needed and len(occupied) + needed > self.capacity:
            return CapacityExceededError(capacity=self.capacity, occupied=len(occupied), needed=needed)
        return None

    def send(self, envelope: Envelope[Any], delay: float, first_at: float, beat: Any, now: float) -> None:
        self.come_due(now)
        name, at = name_of(envelope), now + delay
        for run in self.running:
            if name_of(run.envelope) == name:
                self.counts["added"] += run.again is None
                run.again_at = min(run.again_at, at) if run.again else at
                run.again = envelope
                return
        if name in [name_of(each) for each in self.ready]:
            return
        for entry in self.delayed:
            if name_of(entry[1]) == name:
                if delay == 0 or at < entry[0]:
                    self.delayed.remove(entry)
                    self.wait(entry[1], at, now)
                return
        self.counts["added"] += 1
        self.failures[name], self.beats[name] = 0, beat
        self.wait(envelope, first_at, now)

    def wait(self, envelope: Envelope[Any], at: float, now: float) -> None:
        if at <= now:
            self.ready.append(envelope)
        else:
            self.delayed.append((at, envelope))

    def take(self, now: float) -> Running | None:
        self.come_due(now)
        if not self.ready or not self.is_dispatching():
            return None
        highest = max(envelope.priority for envelope in self.ready)
        first = next(envelope for envelope in self.ready if envelope.priority == highest)
        self.ready.remove(first)
        self.running.append(Running(first))
        return self.running[-1]

    def settle(
        self, run: Running, ending: Ending, choice: Choice | None, at: float | None, beat: Any, now: float
    ) -> None:
        self.running.remove(run)
        self.come_due(now)
        envelope, again, name = run.envelope, run.again, name_of(run.envelope)
        is_retry = at is not None and ending is Ending.ERROR and choice is not Choice.DROP
        self.counts["done"] += ending is Ending.SUCCESS
        self.counts["failed"] += ending in (Ending.ERROR, Ending.PANIC)
        self.counts["panicked"] += ending is Ending.PANIC
        self.counts["dropped"] += ending is Ending.ERROR and at is None
        if ending is Ending.STOP_TYPE and envelope.type:
            self.blacklist.add(envelope.type)
            self.drop_waiting(envelope.type)
        if at is not None and self.state == "terminated":
            at = None
        if at is not None and (run.is_given_up or envelope.type in self.blacklist):
            self.counts["dropped"] += 1
            at = None
        if again is not None and again.type in self.blacklist:
            self.counts["dropped"] += 1
            again = None
        if at is None:
            self.failures[name], self.beats[name] = 0, None
        else:
            self.counts["retried"] += is_retry
            self.failures[name] = 0 if ending is Ending.SUCCESS else self.failures[name] + 1
            self.beats[name] = self.beats[name] if beat is None else beat
        if again is not None and run.again_at <= now:
            self.ready.append(again)
        elif again is not None or at is not None:
            soonest = min(inf if at is None else at, inf if again is None else run.again_at)
            if self.state == "stopping":
                self.delayed.append((soonest, again or envelope))
            else:
                self.wait(again or envelope, soonest, now)
        self.drop_leftovers()

    def drop_waiting(self, type: str) -> None:
        left = len(self.ready) + len(self.delayed)
        self.ready = [each for each in self.ready if each.type != type]
        self.delayed = [(at, each) for at, each in self.delayed if each.type != type]
        self.counts["dropped"] += left - len(self.ready) - len(self.delayed)

    def drop_leftovers(self) -> None:
        if self.state == "stopping" and not self.keeps:
            self.counts["dropped"] += len(self.delayed)
            self.delayed = []
            if not self.is_dispatching():
                self.counts["dropped"] += len(self.ready)
                self.ready = []

    def stop(self, *, drains: bool, keeps: bool, now: float) -> None:
        self.come_due(now)
        if self.state == "running":
            self.state, self.drains, self.keeps = "stopping", drains, keeps
        elif self.state == "stopping":
            self.drains, self.keeps = self.drains and drains, self.keeps and keeps
        self.drop_leftovers()

    def cancel(self, envelope: Envelope[Any]) -> bool:
        name = name_of(envelope)
        for run in self.running:
            if name_of(run.envelope) == name:
                run.is_given_up, run.again = True, None
                return True
        left = len(self.ready) + len(self.delayed)
        self.ready = [each for each in self.ready if name_of(each) != name]
        self.delayed = [(at, each) for at, each in self.delayed if name_of(each) != name]
        dropped = left - len(self.ready) - len(self.delayed)
        self.counts["dropped"] += dropped
        return dropped > 0

    def terminate(self) -> list[Envelope[Any]]:
        unrun = [*self.ready, *(envelope for _, envelope in self.delayed)]
        unrun += [run.again for run in self.running if run.again is not None]
        for run in self.running:
            run.again = None
        self.state, self.ready, self.delayed = "terminated", [], []
        return unrun


INDEX = st.integers(0, 8)
DELAY = st.sampled_from([0.0, 0.0, 1.0, 2.0, 5.0])


class WorkQueueMachine(RuleBasedStateMachine):
    """Makes the calls of a driver, in any order."""

    @initialize(capacity=st.sampled_from([0, 0, 1, 2, 4]), is_started=st.booleans())
    def make(self, capacity: int, is_started: bool) -> None:
        self.now = 10.0
        self.envelopes = envelopes()
        self.queue = WorkQueue(capacity=capacity, clock=NO_CLOCK)
        self.model = Model(capacity)
        self.pairs: list[tuple[Run, Running]] = []
        if is_started:
            self.start()

    # Sending

    def entry(self, envelope: Envelope[Any], delay: float) -> tuple[Entry, float, float | None]:
        """As a driver makes it; and when a newcomer runs first, and what its schedule remembers."""
        due = self.now + delay if delay else None
        first_at, beat = self.now + delay, None
        if envelope.id == "ticker":
            beat = first_at
        elif envelope.id == "cron":
            first_at += CRON_WAIT
            beat = first_at
        periodic = envelope.interval > 0
        return Entry(envelope, first_at if periodic else due, due, beat), first_at, beat

    @rule(indices=st.lists(INDEX, min_size=1, max_size=4), delay=DELAY)
    def send(self, indices: list[int], delay: float) -> None:
        sent = [self.envelopes[index] for index in indices]
        made = [self.entry(envelope, delay) for envelope in sent]
        refusal = self.model.refusal(sent)
        if refusal is None:
            self.queue.add([entry for entry, _, _ in made], self.now)
            for entry, first_at, beat in made:
                self.model.send(entry.envelope, delay, first_at, beat, self.now)
        else:
            with pytest.raises(type(refusal)) as caught:
                self.queue.add([entry for entry, _, _ in made], self.now)
            assert vars(caught.value) == vars(refusal)

    @rule(index=st.integers(0, 1))
    def send_shortly(self, index: int) -> None:
        envelope = self.envelopes[index]
        refusal = self.model.refusal([envelope])
        if refusal is None:
            self.queue.add_one(envelope, self.now)
            self.model.send(envelope, 0, self.now, None, self.now)
        else:
            with pytest.raises(type(refusal)):
                self.queue.add_one(envelope, self.now)

    # Running

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0]))
    def advance(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def look(self) -> None:
        """As `stats` does, which tells what has come due from what has not."""
        self.queue.promote(self.now)
        self.model.come_due(self.now)
        assert self.queue.ready == len(self.model.ready)
        assert self.queue.delayed == len(self.model.delayed)
        assert self.queue.next_due == min((at for at, _ in self.model.delayed), default=inf)
        assert self.queue.has_work == (self.model.is_dispatching() and bool(self.model.ready))

    @rule()
    def take(self) -> None:
        self.compare_taken(self.queue.take(self.now), self.model.take(self.now))

    def compare_taken(self, run: Run | None, expected: Running | None) -> None:
        if run is None or expected is None:
            assert (run, expected) == (None, None)
            return
        assert run.envelope is expected.envelope
        assert run.attempt == self.model.failures[name_of(run.envelope)] + 1
        self.pairs.append((run, expected))

    @precondition(lambda self: self.pairs)
    @rule(
        which=INDEX,
        ending=st.sampled_from([*Ending, Ending.SUCCESS, Ending.ERROR, Ending.ERROR]),
        choice=st.sampled_from(Choice),
        backs_off=st.booleans(),
        seconds=st.sampled_from([1.0, 2.0, 4.0]),
    )
    def settle(self, which: int, ending: Ending, choice: Choice, backs_off: bool, seconds: float) -> None:
        run, expected = self.pairs.pop(which % len(self.pairs))
        decided = choice if ending is Ending.ERROR else None
        periodic = run.envelope.interval > 0
        at, beat = None, None
        if ending is Ending.ERROR and choice is not Choice.DROP:
            at = self.now + (seconds if choice is Choice.RETRY_AFTER else 0)
        elif periodic and ending in (Ending.SUCCESS, Ending.ERROR):
            at = self.now + seconds
            beat = None if backs_off and ending is Ending.ERROR else at
        mode = (Mode.BACKOFF if backs_off else Mode.INTERVAL) if periodic else Mode.ONCE
        self.queue.settle(run, VERDICTS[ending, mode, decided], at, beat, self.now)
        if mode is Mode.BACKOFF and decided is Choice.DROP:
            decided = Choice.RETRY_AFTER  # a periodic back-off counts as a retry
        self.model.settle(expected, ending, decided, at, beat, self.now)

    @precondition(lambda self: any(not run.envelope.interval for run, _ in self.pairs))
    @rule(which=INDEX)
    def succeed_and_take(self, which: int) -> None:
        """The short way of a worker that has just run a one-off."""
        short = [pair for pair in self.pairs if not pair[0].envelope.interval]
        run, expected = short[which % len(short)]
        self.pairs.remove((run, expected))
        self.model.settle(expected, Ending.SUCCESS, None, None, None, self.now)
        self.compare_taken(self.queue.take(self.now, run), self.model.take(self.now))

    # Giving up

    @rule(index=INDEX)
    def cancel(self, index: int) -> None:
        envelope = self.envelopes[index]
        was_there, run = self.queue.cancel(envelope)
        running = {name_of(run.envelope): run for run, _ in self.pairs}
        assert run is running.get(name_of(envelope))
        assert was_there == self.model.cancel(envelope)

    @rule(type=st.sampled_from(["mail", "sms"]))
    def allow(self, type: str) -> None:
        assert self.queue.allow(type) == (type in self.model.blacklist)
        self.model.blacklist.discard(type)

    # The life of the queue

    @rule()
    def start(self) -> None:
        is_allowed = self.model.state in ("init", "running", "stopped")
        assert self.queue.apply(Event.START) == is_allowed
        if is_allowed:
            self.model.state = "running"

    @rule(drains=st.booleans(), keeps=st.booleans())
    def stop(self, drains: bool, keeps: bool) -> None:
        self.queue.stop(Event.STOP, drains=drains, keeps=keeps, now=self.now)
        self.model.stop(drains=drains, keeps=keeps, now=self.now)

    @precondition(lambda self: self.model.state == "stopping" and not self.pairs)
    @rule()
    def end(self) -> None:
        """Run what is left to run, as the workers do, and have them end."""
        while (run := self.queue.take(self.now)) is not None:
            self.compare_taken(run, self.model.take(self.now))
            self.settle(0, Ending.SUCCESS, Choice.DROP, False, 1.0)
        assert self.model.take(self.now) is None
        assert self.queue.apply(Event.ENDED)
        self.model.state = "stopped"

    @rule()
    def pause(self) -> None:
        self.queue.pause()
        self.model.is_paused = True
        self.model.drop_leftovers()

    @rule()
    def resume(self) -> None:
        self.queue.resume()
        self.model.is_paused = False

    @precondition(lambda self: self.now > 20)  # Why: there is little to see after it
    @rule()
    def terminate(self) -> None:
        unrun = sorted(self.queue.terminate(), key=repr)
        assert unrun == sorted(self.model.terminate(), key=repr)

    def teardown(self) -> None:
        if not hasattr(self, "queue"):
            return
        self.terminate()
        while self.pairs:
            self.settle(0, Ending.ERROR, Choice.RETRY_NOW, False, 1.0)
        self.compare_places()
        assert self.queue.occupied == 0
        assert not self.queue._memories

    # What always holds

    @invariant()
    def compare_places(self) -> None:
        queue, model = self.queue, self.model
        assert queue.state is QueueState(model.state)
        assert queue.occupied == len(model.names())
        assert queue.running == len(model.running)
        assert queue.ready + queue.delayed == len(model.ready) + len(model.delayed)
        assert queue.blacklist == model.blacklist
        assert {name: getattr(queue, name) for name in COUNTERS} == model.counts

    @invariant()
    def the_places_add_up_and_stay_within_the_capacity(self) -> None:
        queue = self.queue
        assert queue.occupied == queue.ready + queue.running + queue.delayed
        assert not queue.capacity or queue.occupied <= queue.capacity

    @invariant()
    def nothing_is_in_two_places(self) -> None:
        queue = self.queue
        runs = queue.runs()
        assert {id(run) for run in runs} == {id(run) for run, _ in self.pairs}
        places = [*queue.ready_envelopes(), *queue._agenda, *(run.envelope for run in runs)]
        names = [name_of(envelope) for envelope in places]
        assert len(names) == len(set(names))
        assert set(names) == queue._places.keys()

    @invariant()
    def nothing_is_remembered_of_strangers(self) -> None:
        queue, model = self.queue, self.model
        assert queue._memories.keys() <= queue._places.keys()
        for envelope in self.envelopes:
            if name_of(envelope) in queue._places:
                assert queue.beat(envelope) == model.beats[name_of(envelope)]


TestWorkQueue = WorkQueueMachine.TestCase
TestWorkQueue.settings = settings(
    max_examples=200,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
