"""A work queue on the bench: no threads, no clock, and the calls of a driver in few words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from rate_envelope_queue.core.lifecycle import Event, QueueState
from rate_envelope_queue.core.verdict import VERDICTS, Ending, Mode, Verdict
from rate_envelope_queue.core.workqueue import Entry, WorkQueue
from rate_envelope_queue.decision import Choice
from rate_envelope_queue.envelope import Envelope

if TYPE_CHECKING:
    from rate_envelope_queue.clock import Clock
    from rate_envelope_queue.core.run import Run
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


def work(ctx: object, envelope: object) -> None:
    """What the envelopes invoke; nobody does here."""


def env(name: object = None, **options: Any) -> Envelope[Any]:
    """An envelope with this name as its id."""
    return Envelope(work, id=name, **options)


class Bench:
    """A work queue, and a `now` that the test moves."""

    def __init__(self, capacity: int = 0, *, state: QueueState = QueueState.RUNNING) -> None:
        self.queue = WorkQueue(capacity=capacity, clock=NO_CLOCK)
        self.now = 100.0
        if state is not QueueState.INIT:
            self.start()

    def start(self) -> None:
        assert self.queue.apply(Event.START)

    def send(self, *envelopes: Envelope[Any], delay: float = 0) -> None:
        due = self.now + delay if delay else None
        self.queue.add([Entry(envelope, due, due) for envelope in envelopes], self.now)

    def send_shortly(self, envelope: Envelope[Any]) -> None:
        """By the short way for one ordinary envelope."""
        self.queue.add_one(envelope, self.now)

    def take(self) -> Run:
        run = self.queue.take(self.now)
        assert run is not None, "there is nothing to take"
        return run

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
        return queue.ready, queue.running, queue.delayed, queue.occupied

    @property
    def counters(self) -> dict[str, int]:
        """Those that are not zero."""
        names = ("added", "done", "failed", "retried", "dropped", "panicked")
        return {name: count for name in names if (count := getattr(self.queue, name))}


@pytest.fixture
def bench() -> Bench:
    return Bench()
