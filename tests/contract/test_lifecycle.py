"""Start, stop and terminate: the states, the four stop combinations, and that nothing is lost."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rate_envelope_queue import (
    Cancelled,
    Context,
    Envelope,
    QueueNotRunningError,
    QueueState,
    QueueTerminatedError,
    SystemClock,
    retry_now,
)

from ..support.gates import Gate
from ..support.waiting import LIMIT, eventually
from .conftest import Driver


def test_what_was_sent_before_the_start_runs_in_order(driver: Driver) -> None:
    ran: list[object] = []
    queue = driver.queue(start=False)
    envelopes = [driver.envelope(lambda ctx, envelope: ran.append(envelope.id), id=i) for i in range(5)]
    queue.send(*envelopes[:2])
    queue.send(*envelopes[2:])
    assert queue.state is QueueState.INIT
    assert (queue.stats().ready, queue.occupied) == (5, 5)
    queue.start()
    assert queue.join(LIMIT)
    assert ran == [0, 1, 2, 3, 4]


def test_start_is_idempotent(driver: Driver) -> None:
    queue = driver.queue(workers=2)
    queue.start()
    queue.send(driver.envelope())
    assert queue.join(LIMIT)
    assert (queue.state, queue.stats().done) == (QueueState.RUNNING, 1)


def test_stop_before_the_start_does_nothing(driver: Driver) -> None:
    queue = driver.queue(start=False)
    queue.send(driver.envelope())
    assert queue.stop() is True
    assert (queue.state, queue.occupied) == (QueueState.INIT, 1)


def test_stop_again_does_nothing(driver: Driver) -> None:
    queue = driver.queue()
    queue.send(driver.envelope(), delay=5)
    assert queue.stop() is True
    assert queue.stop(keep_waiting=False) is True
    assert (queue.state, queue.occupied) == (QueueState.STOPPED, 1)


def test_a_stopped_queue_refuses_envelopes_until_it_is_started_again(driver: Driver) -> None:
    queue = driver.queue()
    queue.stop()
    with pytest.raises(QueueNotRunningError, match="stopped"):
        queue.send(driver.envelope())
    queue.start()
    queue.send(driver.envelope())
    assert queue.join(LIMIT)
    assert queue.stats().done == 1


def test_a_terminated_queue_refuses_envelopes_and_never_starts_again(driver: Driver) -> None:
    queue = driver.queue()
    queue.terminate()
    with pytest.raises(QueueTerminatedError):
        queue.send(driver.envelope())
    with pytest.raises(QueueTerminatedError):
        queue.start()
    assert queue.stop() is True
    assert queue.state is QueueState.TERMINATED


@pytest.mark.parametrize("waiting", [True, False])
@pytest.mark.parametrize("mode", ["drain", "stop"])
@pytest.mark.parametrize("keep", [True, False])
def test_stop_accounts_for_every_envelope(driver: Driver, mode: str, waiting: bool, keep: bool) -> None:
    """One runs, two are ready, one is delayed: drain runs three, stop runs one; the rest is kept or dropped."""
    gate, ran = Gate(), []
    queue = driver.queue(stop_mode=mode, waiting=waiting)
    running = driver.envelope(gate.pass_through)
    ready = [driver.envelope(lambda ctx, envelope: ran.append(envelope.id), id=i) for i in (1, 2)]
    delayed = driver.envelope(lambda ctx, envelope: ran.append(envelope.id), id=3)
    queue.send(running, *ready)
    queue.send(delayed, delay=60)
    gate.wait_reached()
    assert queue.occupied == 4
    assert queue.stop(timeout=0, keep_waiting=keep) is False
    assert queue.state is QueueState.STOPPING
    with pytest.raises(QueueNotRunningError, match="stopping"):
        queue.send(driver.envelope())
    gate.open()
    _wait_stopped(queue)
    left = {"drain": 1, "stop": 3}[mode] if keep else 0
    dropped = 0 if keep else {"drain": 1, "stop": 3}[mode]
    stats = queue.stats()
    assert (stats.occupied, stats.done, stats.dropped) == (left, {"drain": 3, "stop": 1}[mode], dropped)
    assert stats.added == stats.done + stats.dropped + stats.occupied
    assert ran == ([1, 2] if mode == "drain" else [])
    queue.start()
    driver.advance(60)
    assert queue.join(LIMIT)
    assert sorted(ran) == ([1, 2, 3] if keep else ran)
    assert queue.occupied == 0


def _wait_stopped(queue: Any) -> None:
    """Why again and again: a queue that does not wait tells nobody when it has stopped."""
    eventually(lambda: queue.stop(timeout=LIMIT) or queue.state is QueueState.STOPPED, "it did not stop")


def test_a_periodic_envelope_goes_on_after_a_restart(driver: Driver) -> None:
    queue = driver.queue()
    queue.send(driver.envelope(interval=10))
    driver.advance(25)
    assert queue.stats().done == 3
    assert queue.stop()
    assert (queue.stats().delayed, queue.occupied) == (1, 1)
    queue.start()
    driver.advance(10)
    assert queue.stats().done == 4


def test_a_retry_decided_while_stopping_is_kept_for_the_next_start(driver: Driver, gate: Gate) -> None:
    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        gate.pass_through()
        if ctx.attempt == 1:
            raise ValueError("once more")

    queue = driver.queue(waiting=False)
    queue.send(driver.envelope(fail, failure_hook=lambda ctx, envelope, error: retry_now()))
    gate.wait_reached()
    queue.stop()
    gate.open()
    _wait_stopped(queue)
    stats = queue.stats()
    assert (stats.failed, stats.retried, stats.occupied) == (1, 1, 1)
    queue.start()
    gate.wait_reached()
    gate.open()


def test_stop_gives_up_waiting_after_its_timeout(driver: Driver, gate: Gate) -> None:
    queue = driver.queue()
    queue.send(driver.envelope(gate.pass_through))
    gate.wait_reached()
    assert queue.stop(timeout=0.01) is False
    assert queue.state is QueueState.STOPPING
    gate.open()
    assert queue.stop(timeout=LIMIT) is True
    assert queue.state is QueueState.STOPPED


def test_a_second_stop_waits_for_the_first(driver: Driver, gate: Gate) -> None:
    queue = driver.queue()
    queue.send(driver.envelope(gate.pass_through))
    gate.wait_reached()
    answers: list[bool] = []
    stops = [threading.Thread(target=lambda: answers.append(queue.stop(LIMIT))) for _ in range(3)]
    for stop in stops:
        stop.start()
    gate.open()
    for stop in stops:
        stop.join()
    assert answers == [True, True, True]


def test_a_start_while_stopping_waits_and_then_starts(driver: Driver, gate: Gate) -> None:
    queue = driver.queue(waiting=False)
    queue.send(driver.envelope(gate.pass_through))
    gate.wait_reached()
    queue.stop()
    starting = threading.Thread(target=queue.start)
    starting.start()
    assert queue.state is QueueState.STOPPING
    gate.open()
    starting.join()
    assert queue.state is QueueState.RUNNING
    queue.send(driver.envelope())
    assert queue.join(LIMIT)


def test_terminate_returns_what_will_never_run(driver: Driver, gate: Gate) -> None:
    queue = driver.queue()
    running, ready, delayed = driver.envelope(gate.pass_through), driver.envelope(), driver.envelope()
    queue.send(running, ready)
    queue.send(delayed, delay=60)
    gate.wait_reached()
    queue.send(running)  # sent again during its run: it will not run again either
    assert queue.terminate() == [ready, delayed, running]
    gate.open()
    assert queue.join(LIMIT)
    assert queue.occupied == 0
    assert queue.terminate() == []


def test_terminate_cancels_what_runs_and_does_not_wait(driver: Driver) -> None:
    seen: list[bool] = []
    began, ended = threading.Event(), threading.Event()

    def work(ctx: Context, envelope: Envelope[Any]) -> None:
        began.set()
        seen.append(ctx.wait(LIMIT))
        ended.set()

    queue = driver.queue(clock=SystemClock())
    queue.send(driver.envelope(work))
    assert began.wait(LIMIT)
    queue.terminate()
    assert ended.wait(LIMIT)
    assert seen == [True]


@pytest.mark.parametrize("state", ["init", "running", "stopping", "stopped", "terminated"])
def test_terminate_works_from_every_state(driver: Driver, gate: Gate, state: str) -> None:
    queue = driver.queue(start=False, waiting=state != "stopping")
    if state != "init":
        queue.start()
    if state == "stopping":
        queue.send(driver.envelope(gate.pass_through))
        gate.wait_reached()
    if state in ("stopping", "stopped"):
        queue.stop()
    if state == "terminated":
        queue.terminate()
    assert queue.state.value == state
    queue.terminate()
    gate.open()
    assert queue.state is QueueState.TERMINATED


def test_cancelling_the_parent_cancels_what_runs_and_stops_the_queue(driver: Driver) -> None:
    parent, seen = Context(), []
    began, ended = threading.Event(), threading.Event()

    def work(ctx: Context, envelope: Envelope[Any]) -> None:
        began.set()
        seen.append(ctx.wait(LIMIT))
        ended.set()

    queue = driver.queue(parent=parent, clock=SystemClock())
    queue.send(driver.envelope(work), driver.envelope())
    assert began.wait(LIMIT)
    parent.cancel()
    assert ended.wait(LIMIT)
    _wait_stopped(queue)
    assert seen == [True]
    assert queue.stats().ready == 1
    with pytest.raises(QueueNotRunningError):
        queue.send(driver.envelope())
    with pytest.raises(Cancelled, match="parent"):
        queue.start()


@pytest.mark.parametrize("when", ["before it is made", "before it is started"])
def test_a_queue_with_a_cancelled_parent_takes_nothing(driver: Driver, when: str) -> None:
    parent = Context()
    if when == "before it is made":
        parent.cancel()
    queue = driver.queue(parent=parent, start=False)
    parent.cancel()
    with pytest.raises(QueueNotRunningError):
        queue.send(driver.envelope())
    with pytest.raises(Cancelled):
        queue.start()


def test_pause_starts_nothing_and_resume_goes_on(driver: Driver) -> None:
    queue = driver.queue()
    queue.pause()
    queue.send(driver.envelope(), driver.envelope())
    assert queue.join(0.01) is False
    assert (queue.stats().ready, queue.stats().done) == (2, 0)
    queue.resume()
    assert queue.join(LIMIT)
    assert queue.stats().done == 2


def test_stopping_a_paused_queue_keeps_what_is_ready(driver: Driver) -> None:
    queue = driver.queue()
    queue.pause()
    queue.send(driver.envelope())
    assert queue.stop(LIMIT) is True
    assert queue.stats().ready == 1
    queue.start()
    assert queue.join(0.01) is False, "a pause survives a restart"
    queue.resume()
    assert queue.join(LIMIT)


def test_join_is_false_when_its_time_is_over(driver: Driver, gate: Gate) -> None:
    queue = driver.queue(start=False)
    queue.send(driver.envelope())
    assert queue.join(0.01) is False, "it waits before a start, too"
    queue.start()
    assert queue.join(LIMIT) is True


def test_join_does_not_wait_for_what_is_delayed(driver: Driver) -> None:
    queue = driver.queue()
    queue.send(driver.envelope(), delay=60)
    assert queue.join(LIMIT) is True
