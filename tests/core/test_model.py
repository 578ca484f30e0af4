"""The work queue against the naive one: the same calls to both, in any order, and no difference.

The machine is a driver without threads. It compares what both say after each call, and sees to it that nothing
in the real queue is in two places.
"""

from __future__ import annotations

from dataclasses import fields
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rate_envelope_queue.core.entry import Entry
from rate_envelope_queue.core.lifecycle import Event, QueueState
from rate_envelope_queue.core.verdict import VERDICTS, Ending, Mode
from rate_envelope_queue.core.workqueue import WorkQueue
from rate_envelope_queue.decision import Choice
from rate_envelope_queue.rates import Rate
from rate_envelope_queue.schedule import Every

from .conftest import NO_CLOCK, env
from .naive import COUNTERS, Limits, NaiveQueue, name_of

if TYPE_CHECKING:
    from rate_envelope_queue.core.run import Run
    from rate_envelope_queue.envelope import Envelope

    from .naive import Running

INTERVAL = 4.0
CRON_WAIT = 3.0
"""The envelope "cron" runs first so long after it was sent."""


def envelopes() -> list[Envelope[Any]]:
    """Few, so that they meet often: plain, typed, urgent, idle, periodic, and three under one key."""
    return [
        env("plain"),
        env("mail", type="mail"),
        env("urgent mail", type="mail", priority=5),
        env("idle sms", type="sms", priority=-1),
        env("ticker", type="sms", schedule=Every(INTERVAL, fixed_rate=True)),
        env("cron", interval=INTERVAL),
        env("key 1", type="mail", key="k"),
        env("key 2", type="sms", key="k"),
        env("key 3", key="k", priority=5, schedule=Every(INTERVAL, fixed_rate=True)),
    ]


def has_beat(envelope: Envelope[Any]) -> bool:
    """Does it tick at a fixed rate?"""
    return isinstance(envelope.schedule, Every) and envelope.schedule.fixed_rate


class Came(NamedTuple):
    """What came of a run: how it ended, what was decided, and how long its next one is to wait."""

    ending: Ending
    choice: Choice = Choice.DROP
    backs_off: bool = False
    seconds: float = 1.0


INDEX = st.integers(0, 8)
TAKES = st.integers(0, 2)
DELAY = st.sampled_from([0.0, 0.0, 1.0, 2.0, 5.0])
CAME = st.builds(
    Came,
    ending=st.sampled_from([Ending.ERROR, Ending.ERROR, *Ending]),
    choice=st.sampled_from([Choice.RETRY_NOW, Choice.RETRY_AFTER, Choice.DROP]),
    backs_off=st.booleans(),
    seconds=st.sampled_from([1.0, 2.0, 4.0]),
)


class WorkQueueMachine(RuleBasedStateMachine):
    """Makes the calls of a driver. Most rules take from the queue at their end, or else little would ever run."""

    limits: st.SearchStrategy[Limits] = st.just(Limits())

    @initialize(
        capacity=st.sampled_from([0, 0, 0, 2, 4]),
        is_started=st.sampled_from([True, True, False]),
        data=st.data(),
    )
    def make(self, capacity: int, is_started: bool, data: st.DataObject) -> None:
        limits = data.draw(self.limits)
        self.now = 10.0
        self.envelopes = envelopes()
        self.queue = WorkQueue(capacity=capacity, clock=NO_CLOCK, **options_of(limits))
        self.model = NaiveQueue(capacity, limits)
        self.pairs: list[tuple[Run, Running]] = []
        if is_started:
            self.start()

    # Sending

    def entry(self, envelope: Envelope[Any], delay: float) -> tuple[Entry, float, float | None]:
        """As a driver makes it; and when a newcomer runs first, and what its schedule remembers."""
        due = self.now + delay if delay else None
        first_at, beat = self.now + delay, None
        if has_beat(envelope):
            beat = first_at
        elif envelope.id == "cron":
            first_at += CRON_WAIT
            beat = first_at
        is_periodic = envelope.interval > 0
        return Entry(envelope, first_at if is_periodic else due, due, beat), first_at, beat

    @rule(indices=st.lists(INDEX, min_size=1, max_size=4), delay=DELAY, takes=TAKES)
    def send(self, indices: list[int], delay: float, takes: int) -> None:
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
        self.take(takes)

    @rule(index=st.integers(0, 1), delay=DELAY, takes=TAKES)
    def send_one_by_the_short_way(self, index: int, delay: float, takes: int) -> None:
        envelope = self.envelopes[index]
        refusal = self.model.refusal([envelope])
        if refusal is None:
            self.send_shortly(envelope, delay)
            self.model.send(envelope, delay, self.now + delay, None, self.now)
        else:
            with pytest.raises(type(refusal)):
                self.send_shortly(envelope, delay)
        self.take(takes)

    def send_shortly(self, envelope: Envelope[Any], delay: float) -> None:
        if delay:
            self.queue.delay_one(envelope, self.now, self.now + delay)
        else:
            self.queue.add_one(envelope, self.now)

    # Running

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0]), looks=st.booleans(), takes=TAKES)
    def advance(self, seconds: float, looks: bool, takes: int) -> None:
        self.now += seconds
        if looks:
            self.look()
        self.take(takes)

    def look(self) -> None:
        """As `stats` does, which tells what has come due from what has not."""
        self.queue.promote(self.now)
        self.model.come_due(self.now)
        assert self.queue.backlog.ready == len(self.model.ready)
        assert self.queue.backlog.delayed == len(self.model.delayed)
        assert self.queue.has_work == (self.model.is_dispatching() and bool(self.model.ready))

    def take(self, times: int = 1) -> None:
        for _ in range(times):
            self.compare_taken(self.queue.take(self.now), self.model.take(self.now))

    def compare_taken(self, run: Run | None, expected: Running | None) -> None:
        if run is None or expected is None:
            assert (run, expected) == (None, None)
            self.compare_patience()
            return
        assert run.envelope is expected.envelope
        assert run.attempt == self.model.failures[name_of(run.envelope)] + 1
        self.pairs.append((run, expected))

    def compare_patience(self) -> None:
        """When nothing can be taken, the queue knows when something can."""
        model = self.model
        assert not self.queue.can_take(self.now), "a worker would look again and again"
        due = [at for at, _ in model.delayed] if model.state == "running" else []
        held = [model.opens_at(each, self.now) for each in model.ready] if model.is_dispatching() else []
        assert self.queue.next_due <= min(due + held, default=inf), "a worker would sleep too long"

    @precondition(lambda self: self.pairs)
    @rule(which=INDEX, came=CAME, takes=TAKES)
    def end(self, which: int, came: Came, takes: int) -> None:
        self.settle(which, came)
        self.take(takes)

    def settle(self, which: int, came: Came) -> None:
        run, expected = self.pairs.pop(which % len(self.pairs))
        ending, choice, backs_off, seconds = came
        decided = choice if ending is Ending.ERROR else None
        is_periodic = run.envelope.interval > 0
        at, beat = None, None
        if ending is Ending.ERROR and choice is not Choice.DROP:
            at = self.now + (seconds if choice is Choice.RETRY_AFTER else 0)
        elif ending is Ending.RATE_LIMITED:
            at = self.now + seconds
        elif is_periodic and ending in (Ending.SUCCESS, Ending.ERROR):
            at = self.now + seconds
            beat = None if backs_off and ending is Ending.ERROR else at
        mode = (Mode.BACKOFF if backs_off else Mode.INTERVAL) if is_periodic else Mode.ONCE
        self.queue.settle(run, VERDICTS[ending, mode, decided], at, beat, self.now)
        if mode is Mode.BACKOFF and decided is Choice.DROP:
            decided = Choice.RETRY_AFTER  # a periodic back-off counts as a retry
        self.model.settle(expected, ending, decided, at, beat, self.now)

    @precondition(lambda self: self.pairs)
    @rule(which=INDEX)
    def succeed_and_take(self, which: int) -> None:
        """The short way of a worker whose run has simply succeeded."""
        run, expected = self.pairs.pop(which % len(self.pairs))
        at = self.now + INTERVAL if run.envelope.interval else None
        beat = None
        if has_beat(run.envelope):
            at = beat = run.beat if isinstance(run.beat, float) else self.now
            while at <= self.now or at == beat:
                at += INTERVAL
        self.model.settle(expected, Ending.SUCCESS, None, at, beat, self.now)
        self.compare_taken(self.queue.take(self.now, run), self.model.take(self.now))

    # Giving up

    @rule(index=INDEX)
    def cancel(self, index: int) -> None:
        envelope = self.envelopes[index]
        was_there, run = self.queue.cancel(envelope)
        running = {name_of(run.envelope): run for run, _ in self.pairs}
        assert run is running.get(name_of(envelope))
        assert was_there == self.model.cancel(envelope)

    @precondition(lambda self: self.model.blacklist)
    @rule(type=st.sampled_from(["mail", "sms"]))
    def allow(self, type: str) -> None:
        assert self.queue.allow(type) == (type in self.model.blacklist)
        self.model.blacklist.discard(type)

    # The life of the queue

    def start(self) -> None:
        assert self.queue.apply(Event.START)
        self.model.state = "running"

    @rule(how=st.sampled_from(["resume", "pause", "drain", "drain and drop", "stop", "stop and drop"]))
    def hold_up(self, how: str) -> None:
        if how == "resume":
            self.queue.resume()
            self.model.is_paused = False
        elif how == "pause":
            self.queue.pause()
            self.model.is_paused = True
            self.model.drop_leftovers()
        else:
            drains, keeps = "drain" in how, "drop" not in how
            self.queue.stop(Event.STOP, drains=drains, keeps=keeps, now=self.now)
            self.model.stop(drains=drains, keeps=keeps, now=self.now)

    @precondition(lambda self: self.model.state in ("init", "stopping", "stopped"))
    @rule(is_restarted=st.sampled_from([True, True, False]))
    def go_on(self, is_restarted: bool) -> None:
        """Run what is left to run, as the workers do, have them end, and start again."""
        if self.model.state == "stopping":
            while self.pairs or self.queue.has_work:
                if self.pairs:
                    self.settle(0, Came(Ending.SUCCESS))
                self.take()
                self.now += 0.5
            assert self.queue.apply(Event.ENDED)
            self.model.state = "stopped"
        if is_restarted:
            self.start()
            self.queue.resume()
            self.model.is_paused = False

    @precondition(lambda self: self.now > 25)  # Why: there is little to see after it
    @rule()
    def terminate(self) -> None:
        unrun = sorted(self.queue.terminate(), key=repr)
        assert unrun == sorted(self.model.terminate(), key=repr)

    def teardown(self) -> None:
        if not hasattr(self, "queue"):
            return
        self.terminate()
        while self.pairs:
            self.settle(0, Came(Ending.ERROR, Choice.RETRY_NOW))
        self.compare_places()
        assert self.queue.backlog.occupied == 0
        assert not self.queue.records

    # What always holds

    @invariant()
    def compare_places(self) -> None:
        queue, model = self.queue, self.model
        assert queue.state is QueueState(model.state)
        assert queue.backlog.occupied == len(model.names())
        assert queue.backlog.running == len(model.running)
        assert queue.backlog.ready + queue.backlog.delayed == len(model.ready) + len(model.delayed)
        assert queue.blacklist == model.blacklist
        assert {name: getattr(queue, name) for name in COUNTERS} == model.counts

    @invariant()
    def the_places_add_up_and_stay_within_the_capacity(self) -> None:
        queue = self.queue
        assert queue.backlog.occupied == queue.backlog.ready + queue.backlog.running + queue.backlog.delayed
        assert not queue.capacity or queue.backlog.occupied <= queue.capacity

    @invariant()
    def nothing_is_in_two_places(self) -> None:
        queue = self.queue
        runs = queue.backlog.runs()
        assert {id(run) for run in runs} == {id(run) for run, _ in self.pairs}
        places = [
            *queue.backlog.ready_envelopes(),
            *queue.backlog.delay_queue,
            *(run.envelope for run in runs),
        ]
        names = [name_of(envelope) for envelope in places]
        assert len(names) == len(set(names))
        assert set(names) == queue.backlog.places.keys()

    @invariant()
    def nothing_is_remembered_of_strangers(self) -> None:
        queue, model = self.queue, self.model
        assert queue.records.keys() <= queue.backlog.places.keys()
        for envelope in self.envelopes:
            if name_of(envelope) in queue.backlog.places:
                assert queue.records.beat(name_of(envelope)) == model.beats[name_of(envelope)]


class ThrottledMachine(WorkQueueMachine):
    """The same with rates, and bounds on how many of a type run at once."""

    limits = st.builds(
        Limits,
        rate=st.sampled_from([None, None, Rate(2), Rate(1, per=4, burst=3)]),
        rates=st.sampled_from(
            [{}, {"mail": Rate(1, per=2)}, {"mail": Rate(1), "sms": Rate(1, per=4, burst=2)}]
        ),
        concurrency=st.sampled_from([{}, {"mail": 1}, {"mail": 2, "sms": 1}]),
    )


def options_of(limits: Limits) -> dict[str, Any]:
    """The limits as options of a work queue."""
    return {field.name: getattr(limits, field.name) for field in fields(limits)}


# Why so long: a difference that was found takes a while to be made short.
TestWorkQueue = pytest.mark.timeout(600)(WorkQueueMachine.TestCase)
TestThrottled = pytest.mark.timeout(600)(ThrottledMachine.TestCase)
TestWorkQueue.settings = TestThrottled.settings = settings(
    max_examples=150,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
