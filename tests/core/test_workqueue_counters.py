"""What the work queue counts, remembers and measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rate_envelope_queue.core.entry import Entry
from rate_envelope_queue.core.lifecycle import Event
from rate_envelope_queue.core.verdict import Verdict
from rate_envelope_queue.core.workqueue import WorkQueue

from .conftest import (
    BACKED_OFF,
    DONE,
    DROP,
    FAILED_TICK,
    NO_CLOCK,
    PANIC,
    RETRY_AFTER,
    RETRY_NOW,
    STOP,
    STOP_TYPE,
    TICK,
    Bench,
    env,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# Counters and attempts


@pytest.mark.parametrize(
    ("verdict", "after", "counted"),
    [
        (DONE, None, {"done": 1}),
        (TICK, 5, {"done": 1}),
        (DROP, None, {"failed": 1, "dropped": 1}),
        (RETRY_NOW, 0, {"failed": 1, "retried": 1}),
        (RETRY_AFTER, 5, {"failed": 1, "retried": 1}),
        (FAILED_TICK, 5, {"failed": 1}),
        (BACKED_OFF, 5, {"failed": 1, "retried": 1}),
        (PANIC, None, {"failed": 1, "panicked": 1}),
        (STOP, None, {}),
        (STOP_TYPE, None, {}),
    ],
)
def test_each_run_is_counted_as_what_it_was(
    bench: Bench, verdict: Verdict, after: float | None, counted: dict[str, int]
) -> None:
    bench.send(env("a", type="mail"))
    bench.run_one(verdict, after)
    assert bench.counters == {"added": 1} | counted


def test_ticks_and_retries_are_no_admissions(bench: Bench) -> None:
    bench.send(env("a"))
    for _ in range(3):
        bench.run_one(TICK, 1)
        bench.now += 1
        bench.run_one(RETRY_NOW, 0)
    assert bench.queue.added == 1


def attempts(bench: Bench, *verdicts: Callable[[], tuple[Any, float | None]]) -> list[int]:
    """The attempt of each run of one envelope, the verdicts being what came of them."""
    seen = []
    for verdict in verdicts:
        run = bench.take()
        seen.append(run.attempt)
        settled, after = verdict()
        bench.settle(run, settled, after)
        bench.now += after or 0
    return seen


def ticks() -> tuple[Any, float | None]:
    return TICK, 5


def fails() -> tuple[Any, float | None]:
    return FAILED_TICK, 5


def retries() -> tuple[Any, float | None]:
    return RETRY_NOW, 0


def retries_later() -> tuple[Any, float | None]:
    return RETRY_AFTER, 3


def backs_off() -> tuple[Any, float | None]:
    return BACKED_OFF, 2


def test_the_attempt_counts_up_over_failures_and_is_one_after_a_success(bench: Bench) -> None:
    bench.send(env("a"))
    assert attempts(bench, ticks, fails, retries, retries_later, backs_off, ticks, ticks, fails, ticks) == [
        *(1, 1, 2, 3, 4, 5),
        *(1, 1, 2),
    ]


@pytest.mark.parametrize("verdict", [DONE, DROP, STOP, PANIC])
@pytest.mark.parametrize("sent_again", ["during the run", "after it"])
def test_the_attempt_is_one_again_when_the_envelope_was_finished(
    bench: Bench, verdict: Verdict, sent_again: str
) -> None:
    a = env("a")
    bench.send(a)
    bench.run_one(RETRY_NOW, 0)
    run = bench.take()
    assert run.attempt == 2
    if sent_again == "during the run":
        bench.send(a)
    bench.settle(run, verdict)
    if sent_again == "after it":
        bench.send(a)
    assert bench.take().attempt == 1


def test_the_attempt_counts_on_when_a_retried_one_is_sent_again(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    bench.run_one(RETRY_AFTER, 5)
    bench.send(a)
    run = bench.take()
    assert run.attempt == 2
    bench.send(a)
    bench.settle(run, RETRY_AFTER, 5)
    assert bench.take().attempt == 3


@pytest.mark.parametrize("delay", [0, 5])
def test_the_attempt_is_one_again_after_a_cancel(bench: Bench, delay: float) -> None:
    a = env("a")
    bench.send(a)
    bench.run_one(RETRY_AFTER if delay else RETRY_NOW, delay)
    bench.queue.cancel(a)
    bench.send(a)
    assert bench.take().attempt == 1


@pytest.mark.parametrize("leaves", ["done", "on the way", "dropped", "cancelled", "at a stop", "terminated"])
def test_nothing_is_remembered_of_what_has_left(bench: Bench, leaves: str) -> None:
    a = env("a")
    bench.queue.add([Entry(a, None, None, 12.5)], bench.now)
    bench.run_one(RETRY_AFTER, 5)
    if leaves == "cancelled":
        bench.queue.cancel(a)
    elif leaves == "at a stop":
        bench.stop(keeps=False)
    elif leaves == "terminated":
        bench.queue.terminate()
    else:
        bench.now += 5
        run = bench.take()
        if leaves == "on the way":
            bench.queue.take(bench.now, run)
        else:
            bench.settle(run, DONE if leaves == "done" else DROP)
    assert bench.queue.backlog.occupied == 0
    assert not bench.queue.records


def test_adds_counts_each_time_an_envelope_becomes_ready(bench: Bench) -> None:
    """Sent, by a tick or for a retry; not when it is collapsed, and not before it has come due."""
    a = env("a")
    bench.send(a)
    bench.send(a)
    assert bench.queue.adds == 1
    bench.send_shortly(env("b"))
    assert bench.queue.adds == 2
    bench.send_shortly(env("c"), delay=5)
    bench.send(env("d"), delay=5)
    assert bench.queue.adds == 2
    bench.run_one(RETRY_NOW, 0)
    assert bench.queue.adds == 3
    bench.run_one(TICK, 5)
    assert bench.queue.adds == 3
    bench.now += 5
    bench.queue.promote(bench.now)
    assert bench.queue.adds == 6
    run = bench.take()
    bench.send(run.envelope)
    assert bench.queue.adds == 6
    bench.settle(run)
    assert bench.queue.adds == 7


# Schedules: the queue keeps what they remember


def test_the_first_run_of_a_schedule_is_when_the_schedule_says(bench: Bench) -> None:
    a = env("a")
    bench.queue.add([Entry(a, bench.now + 7, None, 12.5)], bench.now)
    assert bench.places == (0, 0, 1, 1)
    assert bench.queue.next_due == bench.now + 7
    assert bench.queue.records.beat(a) == 12.5


def test_a_waiting_schedule_that_is_sent_again_runs_now_and_keeps_its_beat(bench: Bench) -> None:
    a = env("a")
    bench.queue.add([Entry(a, bench.now + 7, None, 12.5)], bench.now)
    bench.queue.add([Entry(a, bench.now + 7, None, 99.0)], bench.now)
    run = bench.take()
    assert bench.queue.records.beat(a) == 12.5
    bench.settle(run, TICK, 7, beat=13.5)
    assert bench.queue.records.beat(a) == 13.5


def test_a_retry_keeps_the_beat(bench: Bench) -> None:
    a = env("a")
    bench.queue.add([Entry(a, bench.now, None, 12.5)], bench.now)
    bench.run_one(RETRY_AFTER, 5)
    assert bench.queue.records.beat(a) == 12.5


def test_the_beat_of_what_is_finished_is_forgotten(bench: Bench) -> None:
    a = env("a")
    bench.queue.add([Entry(a, bench.now, None, 12.5)], bench.now)
    bench.run_one(STOP)
    assert bench.queue.records.beat(a) is None


# Measuring


def test_every_run_is_measured_in_its_wait_and_its_work() -> None:
    queue = WorkQueue(capacity=0, clock=NO_CLOCK)
    queue.apply(Event.START)
    count = 5000
    queue.add([Entry(env(number)) for number in range(count)], 0.0)
    run = None
    for _ in range(count):
        run = queue.take(2.0, run)
    assert queue.take(2.5, run) is None
    assert queue._waits is not None
    assert queue._works is not None
    waits, works = queue._waits.snapshot(), queue._works.snapshot()
    assert (waits.count, waits.sum) == (count, 2.0 * count)
    assert (works.count, works.sum) == (count, 0.5)


def test_measuring_keeps_no_list_that_grows_with_the_runs() -> None:
    queue = WorkQueue(capacity=0, clock=NO_CLOCK)
    queue.apply(Event.START)
    queue.add([Entry(env())], 0.0)
    largest = 0
    for _ in range(10_000):
        run = queue.take(1.0)
        assert run is not None
        queue.settle(run, RETRY_NOW, 1.0, None, 1.0)
        assert queue._waits is not None
        assert queue._works is not None
        largest = max(largest, len(queue._waits.batch), len(queue._works.batch))
    assert largest <= 2048


def test_a_queue_that_measures_nothing_works_the_same() -> None:
    queue = WorkQueue(capacity=0, clock=NO_CLOCK, metrics=False)
    queue.apply(Event.START)
    queue.add([Entry(env("a")), Entry(env("b"))], 0.0)
    run = queue.take(1.0)
    assert run is not None
    run = queue.take(2.0, run)
    assert run is not None
    queue.settle(run, DONE, None, None, 3.0)
    assert queue.done == 2
