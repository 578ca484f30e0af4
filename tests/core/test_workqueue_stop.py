"""Stopping, pausing and terminating: what runs, what is kept, what is dropped."""

from __future__ import annotations

import pytest

from rate_envelope_queue.core.lifecycle import Event, QueueState
from rate_envelope_queue.core.verdict import Verdict
from rate_envelope_queue.errors import QueueTerminatedError

from .conftest import BACKED_OFF, DONE, DROP, RETRY_AFTER, RETRY_NOW, STOP, TICK, Bench, env

# Stopping


def filled() -> Bench:
    """One of each: running, ready and delayed."""
    bench = Bench()
    bench.send(env("running"), env("ready"))
    bench.send(env("delayed"), delay=5)
    return bench


@pytest.mark.parametrize(
    ("drains", "keeps", "drained", "left", "dropped", "later"),
    [
        (True, True, ["ready"], (0, 0, 1, 1), 0, ["delayed"]),
        (False, True, [], (1, 0, 1, 2), 0, ["ready", "delayed"]),
        (True, False, ["ready"], (0, 0, 0, 0), 1, []),
        (False, False, [], (0, 0, 0, 0), 2, []),
    ],
    ids=["drain", "stop", "drain, drop", "stop, drop"],
)
def test_a_stop_runs_keeps_or_drops_exactly_what_its_mode_says(
    drains: bool,
    keeps: bool,
    drained: list[str],
    left: tuple[int, int, int, int],
    dropped: int,
    later: list[str],
) -> None:
    bench = filled()
    run = bench.take()
    bench.stop(drains=drains, keeps=keeps)
    assert bench.has_work() == drains
    assert bench.drain() == drained
    bench.settle(run)
    assert bench.places == left
    assert bench.queue.dropped == dropped
    assert len(bench.queue.removed) == dropped
    bench.end()
    bench.now += 5
    assert bench.drain() == []
    bench.start()
    assert bench.drain() == later
    assert bench.places == (0, 0, 0, 0)


def test_what_is_due_when_the_stop_comes_is_ready(bench: Bench) -> None:
    bench.send(env("due"), delay=5)
    bench.send(env("later"), delay=6)
    bench.now += 5
    bench.stop(drains=True)
    assert bench.drain() == ["due"]
    assert bench.places == (0, 0, 1, 1)


def test_what_comes_due_while_stopping_waits_for_the_next_start(bench: Bench) -> None:
    bench.send(env("running"))
    run = bench.take()
    bench.send(env("delayed"), delay=5)
    bench.stop(drains=True)
    bench.now += 9
    assert bench.queue.take(bench.now) is None
    bench.settle(run)
    assert bench.places == (0, 0, 1, 1)
    bench.restart()
    assert bench.drain() == ["delayed"]


@pytest.mark.parametrize("drains", [True, False])
@pytest.mark.parametrize(("verdict", "after"), [(RETRY_NOW, 0), (RETRY_AFTER, 5), (TICK, 5), (BACKED_OFF, 5)])
def test_what_is_decided_while_stopping_is_kept_as_delayed(
    bench: Bench, drains: bool, verdict: Verdict, after: float
) -> None:
    bench.send(env("a"))
    run = bench.take()
    bench.stop(drains=drains)
    bench.settle(run, verdict, after)
    assert bench.places == (0, 0, 1, 1)
    assert not bench.has_work(), "the stop does not wait for it"
    bench.now += after
    assert bench.queue.take(bench.now) is None
    bench.restart()
    again = bench.take()
    assert again.envelope.id == "a"
    assert again.attempt == (2 if verdict.failed else 1)


@pytest.mark.parametrize(("verdict", "after"), [(RETRY_NOW, 0), (RETRY_AFTER, 5), (TICK, 5)])
def test_what_is_decided_while_stopping_is_dropped_if_nothing_is_to_be_kept(
    bench: Bench, verdict: Verdict, after: float
) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.stop(drains=True, keeps=False)
    bench.settle(run, verdict, after)
    assert bench.places == (0, 0, 0, 0)
    assert bench.queue.dropped == 1
    assert bench.queue.removed == [a]


def test_a_retry_decided_while_stopping_is_kept_though_it_was_sent_again_with_a_delay(bench: Bench) -> None:
    """Neither the retry nor the delayed send is something that the drain has to run."""
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a, delay=60)
    bench.stop(drains=True)
    bench.settle(run, RETRY_NOW, 0)
    assert bench.places == (0, 0, 1, 1)
    assert not bench.has_work()
    bench.restart()
    assert bench.drain() == ["a"]


def test_sent_again_with_a_delay_during_its_run_it_outlives_the_stop(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a, delay=5)
    bench.stop(drains=True)
    bench.settle(run)
    assert bench.places == (0, 0, 1, 1)
    bench.restart()
    bench.now += 5
    assert bench.drain() == ["a"]


def test_sent_again_during_its_run_it_is_kept_where_the_stop_does_not_drain(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a)
    bench.stop(drains=False)
    bench.settle(run)
    assert bench.places == (1, 0, 0, 1)
    assert not bench.has_work()
    bench.restart()
    assert bench.drain() == ["a"]


@pytest.mark.parametrize(("drains", "delay"), [(False, 0), (False, 5), (True, 5)])
def test_sent_again_during_its_run_it_is_dropped_if_nothing_is_to_be_kept(
    bench: Bench, drains: bool, delay: float
) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a, delay=delay)
    bench.stop(drains=drains, keeps=False)
    bench.settle(run)
    assert bench.places == (0, 0, 0, 0)
    assert bench.counters == {"added": 2, "done": 1, "dropped": 1}


def test_the_ready_tail_keeps_its_order_over_a_restart(bench: Bench) -> None:
    bench.send(env("a"), env("b"), env("urgent", priority=1))
    bench.stop(drains=False)
    bench.restart()
    bench.send(env("c"))
    assert bench.drain() == ["urgent", "a", "b", "c"]


def test_what_came_due_while_stopped_runs_before_what_is_sent_after_the_start(bench: Bench) -> None:
    bench.send(env("delayed"), delay=5)
    bench.stop()
    bench.end()
    bench.now += 9
    bench.start()
    bench.send(env("new"))
    assert bench.drain() == ["delayed", "new"]


def test_a_second_stop_can_only_be_stricter() -> None:
    bench = filled()
    bench.take()
    bench.stop(drains=True, keeps=True)
    bench.stop(drains=False, keeps=True)
    assert not bench.has_work()
    assert bench.places == (1, 1, 1, 3)
    bench.stop(drains=True, keeps=True)
    assert not bench.has_work()
    bench.stop(drains=True, keeps=False)
    assert bench.places == (0, 1, 0, 1)
    assert bench.queue.dropped == 2


def test_dropping_ends_with_the_stop(bench: Bench) -> None:
    bench.stop(keeps=False)
    bench.restart()
    bench.send(env("a"), delay=5)
    bench.send(env("b"))
    bench.stop(drains=False, keeps=True)
    assert bench.places == (1, 0, 1, 2)


def test_a_stop_of_a_stopped_queue_drops_nothing(bench: Bench) -> None:
    bench.send(env("a"), delay=5)
    bench.stop()
    bench.end()
    bench.stop(keeps=False)
    assert bench.places == (0, 0, 1, 1)


def test_a_cancelled_parent_stops_without_draining_and_keeps() -> None:
    bench = filled()
    run = bench.take()
    bench.queue.stop(Event.PARENT_CANCELLED, drains=False, keeps=True, now=bench.now)
    assert bench.queue.backlog.runs() == [run]
    assert bench.queue.take(bench.now) is None
    bench.settle(run, DROP)
    assert bench.places == (1, 0, 1, 2)


# Pausing


def test_a_paused_queue_starts_nothing_but_takes_envelopes(bench: Bench) -> None:
    bench.send(env("a"))
    bench.queue.pause()
    bench.send(env("b"))
    assert bench.queue.take(bench.now) is None
    assert not bench.has_work()
    assert bench.places == (2, 0, 0, 2)
    bench.queue.resume()
    assert bench.has_work()
    assert bench.drain() == ["a", "b"]


def test_what_comes_due_during_a_pause_becomes_ready(bench: Bench) -> None:
    bench.queue.pause()
    bench.send(env("a"), delay=5)
    bench.now += 5
    bench.queue.promote(bench.now)
    assert bench.places == (1, 0, 0, 1)


@pytest.mark.parametrize("paused_first", [True, False])
def test_stopping_a_paused_queue_keeps_what_is_ready(bench: Bench, paused_first: bool) -> None:
    bench.send(env("a"))
    if paused_first:
        bench.queue.pause()
    bench.stop(drains=True)
    if not paused_first:
        bench.queue.pause()
    assert not bench.has_work(), "the stop does not hang"
    assert bench.places == (1, 0, 0, 1)


@pytest.mark.parametrize("paused_first", [True, False])
def test_stopping_a_paused_queue_drops_what_is_ready_if_nothing_is_to_be_kept(
    bench: Bench, paused_first: bool
) -> None:
    bench.send(env("a"))
    if paused_first:
        bench.queue.pause()
    bench.stop(drains=True, keeps=False)
    if not paused_first:
        bench.queue.pause()
    assert bench.places == (0, 0, 0, 0)
    assert bench.queue.dropped == 1


def test_a_pause_survives_a_restart(bench: Bench) -> None:
    bench.send(env("a"))
    bench.queue.pause()
    bench.stop()
    bench.restart()
    assert bench.queue.take(bench.now) is None
    bench.queue.resume()
    assert bench.drain() == ["a"]


# Terminating


@pytest.mark.parametrize("before", ["running", "stopping", "stopped"])
def test_terminate_returns_what_will_never_run(before: str) -> None:
    bench = filled()
    run = bench.take()
    again = run.envelope
    bench.send(again)
    if before != "running":
        bench.stop(drains=False)
    if before == "stopped":
        bench.settle(run)
        bench.end()
    unrun = bench.queue.terminate()
    assert sorted(str(envelope.id) for envelope in unrun) == ["delayed", "ready", "running"]
    assert bench.queue.state is QueueState.TERMINATED
    assert bench.places == ((0, 0, 0, 0) if before == "stopped" else (0, 1, 0, 1))
    assert bench.queue.take(bench.now + 99) is None


def test_terminate_before_the_start_returns_what_was_sent() -> None:
    bench = Bench(state=QueueState.INIT)
    a, b = env("a"), env("b")
    bench.send(a)
    bench.send(b, delay=5)
    assert bench.queue.terminate() == [a, b]


def test_terminate_does_not_return_what_runs_or_was_cancelled(bench: Bench) -> None:
    running, cancelled = env("running"), env("cancelled")
    bench.send(running, cancelled)
    bench.take()
    bench.queue.cancel(cancelled)
    assert bench.queue.terminate() == []
    assert bench.queue.terminate() == []


@pytest.mark.parametrize(
    ("verdict", "after"), [(DONE, None), (RETRY_NOW, 0), (RETRY_AFTER, 5), (TICK, 5), (STOP, None)]
)
def test_what_ends_after_terminate_does_not_come_back(
    bench: Bench, verdict: Verdict, after: float | None
) -> None:
    bench.send(env("a"))
    run = bench.take()
    bench.queue.terminate()
    assert bench.queue.backlog.runs() == [run]
    bench.settle(run, verdict, after)
    assert bench.places == (0, 0, 0, 0)
    assert bench.queue.retried == 0
    assert bench.queue.dropped == 0


def test_a_terminated_queue_never_starts(bench: Bench) -> None:
    bench.queue.terminate()
    assert not bench.queue.apply(Event.START)
    with pytest.raises(QueueTerminatedError):
        bench.send(env())
    with pytest.raises(QueueTerminatedError):
        bench.send_shortly(env())
