"""What the tests of the core stand on: a bench for the work queue, and a stage for a run. No threads, no waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from rate_envelope_queue.core.entry import Entry
from rate_envelope_queue.core.lifecycle import Event, QueueState
from rate_envelope_queue.core.run import HookBudget, Run, steps
from rate_envelope_queue.core.verdict import VERDICTS, Ending, Mode, Verdict
from rate_envelope_queue.core.workqueue import WorkQueue
from rate_envelope_queue.decision import Choice
from rate_envelope_queue.envelope import PLAIN, Envelope
from rate_envelope_queue.stamps import compose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rate_envelope_queue.clock import Clock
    from rate_envelope_queue.context import Context
    from rate_envelope_queue.core.run import Call, Outcome
    from rate_envelope_queue.envelope import Stamp
    from rate_envelope_queue.schedule import Beat

NO_CLOCK = cast("Clock", object())
"""Breaks whoever asks it for the time: the core never does."""

DONE = VERDICTS[Ending.SUCCESS, Mode.ONCE, None]
TICK = VERDICTS[Ending.SUCCESS, Mode.INTERVAL, None]
DROP = VERDICTS[Ending.ERROR, Mode.ONCE, Choice.DROP]
RETRY_NOW = VERDICTS[Ending.ERROR, Mode.ONCE, Choice.RETRY_NOW]
RETRY_AFTER = VERDICTS[Ending.ERROR, Mode.ONCE, Choice.RETRY_AFTER]
FAILED_TICK = VERDICTS[Ending.ERROR, Mode.INTERVAL, Choice.DROP]
BACKED_OFF = VERDICTS[Ending.ERROR, Mode.BACKOFF, Choice.DROP]
PANIC = VERDICTS[Ending.PANIC, Mode.ONCE, None]
STOP = VERDICTS[Ending.STOP_ENVELOPE, Mode.ONCE, None]
STOP_TYPE = VERDICTS[Ending.STOP_TYPE, Mode.ONCE, None]
RATE_LIMITED = VERDICTS[Ending.RATE_LIMITED, Mode.ONCE, None]


def work(ctx: object, envelope: object) -> None:
    """What the envelopes invoke; nobody does here."""


def env(name: object = None, **options: Any) -> Envelope[Any]:
    """An envelope with this name as its id."""
    return Envelope(work, id=name, **options)


class Bench:
    """A work queue, and a `now` that the test moves."""

    def __init__(self, capacity: int = 0, *, state: QueueState = QueueState.RUNNING, **limits: Any) -> None:
        self.queue = WorkQueue(capacity=capacity, clock=NO_CLOCK, **limits)
        self.now = 100.0
        if state is not QueueState.INIT:
            self.start()

    def start(self) -> None:
        assert self.queue.apply(Event.START)

    def send(self, *envelopes: Envelope[Any], delay: float = 0) -> None:
        due = self.now + delay if delay else None
        self.queue.add([Entry(envelope, due, due) for envelope in envelopes], self.now)

    def send_shortly(self, envelope: Envelope[Any], delay: float = 0) -> None:
        """By the short way for one ordinary envelope."""
        if delay:
            self.queue.delay_one(envelope, self.now, self.now + delay)
        else:
            self.queue.add_one(envelope, self.now)

    def take(self) -> Run:
        run = self.queue.take(self.now)
        assert run is not None, "there is nothing to take"
        return run

    def take_all(self) -> list[Run]:
        """All that may start now."""
        runs = []
        while (run := self.queue.take(self.now)) is not None:
            runs.append(run)
        return runs

    def settle(
        self, run: Run, verdict: Verdict = DONE, after: float | None = None, beat: Beat = None
    ) -> None:
        due = None if after is None else self.now + after
        self.queue.settle(run, verdict, due, beat, self.now)

    def run_one(self, verdict: Verdict = DONE, after: float | None = None) -> Envelope[Any]:
        run = self.take()
        self.settle(run, verdict, after)
        return run.envelope

    def drain(self) -> list[object]:
        """Run all that may be run; returns their names in order."""
        ran = []
        while (run := self.queue.take(self.now)) is not None:
            ran.append(run.envelope.id)
            self.settle(run)
        return ran

    def stop(self, *, drains: bool = True, keeps: bool = True) -> None:
        self.queue.stop(Event.STOP, drains=drains, keeps=keeps, now=self.now)

    def end(self) -> None:
        """All workers have ended."""
        assert self.queue.apply(Event.ENDED)

    def restart(self) -> None:
        self.end()
        self.start()

    def has_work(self) -> bool:
        return self.queue.has_work

    @property
    def places(self) -> tuple[int, int, int, int]:
        """Ready, running, delayed, occupied."""
        queue = self.queue
        return queue.backlog.ready, queue.backlog.running, queue.backlog.delayed, queue.backlog.occupied

    @property
    def counters(self) -> dict[str, int]:
        """Those that are not zero."""
        names = ("added", "done", "failed", "retried", "dropped", "panicked")
        return {name: count for name in names if (count := getattr(self.queue, name))}


BUDGET = HookBudget(fraction=0.5, floor=0.8)


class HandClock:
    """A clock that stands still until somebody moves it."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at


class Panic(BaseException):
    """No Exception."""


class Stage:
    """Makes hooks and invokes that write down that they were called, and drives a run through them."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.called: list[str] = []
        self.contexts: dict[str, Context] = {}
        self.arguments: dict[str, tuple[object, ...]] = {}
        self.was_done: dict[str, bool] = {}

    def part(
        self,
        name: str,
        *,
        raises: BaseException | None = None,
        takes: float = 0,
        returns: object = None,
        does: Callable[[Any], object] = lambda ctx: None,
    ) -> Callable[..., Any]:
        """A function that does so and no more."""

        def call(ctx: Context, *args: object) -> object:
            self.called.append(name)
            self.contexts[name] = ctx
            self.arguments[name] = args
            self.was_done[name] = ctx.done
            self.clock.at += takes
            does(ctx)
            if raises is not None:
                raise raises
            return returns

        return call

    def envelope(self, **options: Any) -> Envelope[Any]:
        """An envelope with all four hooks, unless other ones are given."""
        names = ("invoke", "before_hook", "after_hook", "success_hook", "failure_hook")
        made: dict[str, Any] = {name: self.part(name) for name in names} | options
        return Envelope(made.pop("invoke"), **made)

    def run(self, envelope: Envelope[Any], failures: int = 0) -> Run:
        """A run of the envelope that begins now."""
        queue = WorkQueue(capacity=0, clock=cast("Clock", self.clock))
        queue.apply(Event.START)
        queue.add([Entry(envelope)], self.clock.at)
        run = queue.take(self.clock.at)
        assert run is not None
        run.attempt = failures + 1
        return run

    def drive(self, run: Run, calls: Iterator[Call]) -> Outcome:
        """Make the calls as a driver does."""
        for function, args in calls:
            try:
                run.answer = function(*args)
            except BaseException as error:
                run.raised = error
        return run.outcome

    def play(
        self, envelope: Envelope[Any], *, run: Run | None = None, stamps: tuple[Stamp, ...] = ()
    ) -> Outcome:
        """A whole run."""
        handling = envelope._handling or PLAIN
        invoke = compose(stamps + handling.stamps, envelope._invoke)
        run = run or self.run(envelope)
        return self.drive(run, steps(run, handling, invoke, None, BUDGET, self.clock.now))

    def report(
        self, envelope: Envelope[Any], error: BaseException | None, *, run: Run | None = None
    ) -> Outcome:
        """What is left after a bare call of the invoke."""
        run, handling = run or self.run(envelope), envelope._handling or PLAIN
        return self.drive(run, steps(run, handling, None, error, BUDGET, self.clock.now))


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def stage() -> Stage:
    return Stage()
