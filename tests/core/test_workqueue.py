"""The work queue by hand: what client-go's work queue promises, order, and what was sent before the start."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import pytest

from rate_envelope_queue.core.lifecycle import QueueState
from rate_envelope_queue.errors import CapacityExceededError, QueueNotRunningError

from .conftest import RETRY_NOW, Bench, env

# What client-go's work queue promises


def test_sent_while_waiting_it_runs_once(bench: Bench) -> None:
    a = env("a")
    for _ in range(5):
        bench.send(a)
    assert bench.places == (1, 0, 0, 1)
    assert bench.drain() == ["a"]
    assert bench.counters == {"added": 1, "done": 1}


def test_many_sends_in_one_call_are_one(bench: Bench) -> None:
    a = env("a")
    bench.send(a, a, a)
    assert bench.drain() == ["a"]


def test_sent_while_running_it_runs_once_more_after_this_run(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    for _ in range(5):
        bench.send(a)
    assert bench.queue.take(bench.now) is None, "never twice at the same time"
    assert bench.places == (0, 1, 0, 1)
    bench.settle(run)
    assert bench.drain() == ["a"]
    assert bench.counters == {"added": 2, "done": 2}


def test_sent_while_running_it_goes_to_the_end_of_the_line(bench: Bench) -> None:
    a, b, c = env("a"), env("b"), env("c")
    bench.send(a, b)
    run = bench.take()
    bench.send(a)
    bench.send(c)
    bench.settle(run)
    assert bench.drain() == ["b", "c", "a"]


def test_sent_again_after_its_run_it_runs_again(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    assert bench.drain() == ["a"]
    bench.send(a)
    assert bench.drain() == ["a"]
    assert bench.counters == {"added": 2, "done": 2}


def test_the_same_envelope_never_runs_twice_at_once(bench: Bench) -> None:
    a, b = env("a"), env("b")
    bench.send(a)
    bench.take()
    bench.send(a, b)
    assert bench.take().envelope is b
    assert bench.queue.take(bench.now) is None


@pytest.mark.parametrize("delays", [(5, 2), (2, 5), (2, 2)])
def test_the_earlier_of_two_delays_wins(bench: Bench, delays: tuple[float, float]) -> None:
    a = env("a")
    for delay in delays:
        bench.send(a, delay=delay)
    assert bench.places == (0, 0, 1, 1)
    assert bench.queue.next_due == bench.now + 2
    bench.now += 1.9
    assert bench.drain() == []
    bench.now += 0.1
    assert bench.drain() == ["a"]
    bench.now += 10
    assert bench.drain() == [], "it ran once, not once for each delay"


def test_the_delay_counts_from_each_send(bench: Bench) -> None:
    a = env("a")
    bench.send(a, delay=5)
    bench.now += 4
    bench.send(a, delay=3)
    assert bench.queue.next_due == bench.now + 1


def test_sent_without_a_delay_a_delayed_one_runs_now_and_once(bench: Bench) -> None:
    a = env("a")
    bench.send(a, delay=5)
    bench.send(a)
    assert bench.drain() == ["a"]
    bench.now += 10
    assert bench.drain() == []
    assert bench.counters == {"added": 1, "done": 1}


def test_sent_with_a_delay_a_ready_one_stays_ready(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    bench.send(a, delay=5)
    assert bench.drain() == ["a"]
    bench.now += 10
    assert bench.drain() == []


def test_a_delayed_one_becomes_ready_at_its_instant(bench: Bench) -> None:
    bench.send(env("a"), delay=5)
    bench.now += 5
    bench.queue.promote(bench.now)
    assert bench.places == (1, 0, 0, 1)
    assert bench.queue.next_due == float("inf")


def test_items_come_due_in_order_of_time(bench: Bench) -> None:
    for delay in (3, 1, 2):
        bench.send(env(delay), delay=delay)
    bench.now += 3
    assert bench.drain() == [1, 2, 3]


def test_items_of_one_instant_come_due_in_order_of_arrival(bench: Bench) -> None:
    for name in "abc":
        bench.send(env(name), delay=1)
    bench.now += 1
    assert bench.drain() == ["a", "b", "c"]


def test_what_came_due_before_a_send_runs_before_it(bench: Bench) -> None:
    """Equal ones run in order of arrival, though no worker was free to look when the first came due."""
    bench.send(env("delayed"), delay=1)
    bench.now += 5
    bench.send(env("sent later"))
    assert bench.drain() == ["delayed", "sent later"]


def test_what_came_due_before_an_envelope_was_sent_by_the_short_way_runs_before_it(bench: Bench) -> None:
    bench.send(env("delayed"), delay=1)
    bench.now += 5
    bench.send_shortly(env("sent later"))
    assert bench.drain() == ["delayed", "sent later"]


def test_what_came_due_before_a_retry_was_decided_runs_before_it(bench: Bench) -> None:
    bench.send(env("failing"))
    run = bench.take()
    bench.send(env("delayed"), delay=1)
    bench.now += 5
    bench.settle(run, RETRY_NOW, 0)
    assert bench.drain() == ["delayed", "failing"]


def test_a_drain_runs_what_was_sent_again_during_its_run(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a)
    bench.stop(drains=True)
    assert not bench.has_work()
    bench.settle(run)
    assert bench.has_work(), "the drain goes on"
    assert bench.drain() == ["a"]
    assert bench.places == (0, 0, 0, 0)


def test_a_stopping_queue_takes_nothing_new_but_runs_what_it_has(bench: Bench) -> None:
    bench.send(env("a"), env("b"))
    bench.stop(drains=True)
    with pytest.raises(QueueNotRunningError):
        bench.send(env("c"))
    assert bench.drain() == ["a", "b"]


class Load:
    """A payload that can be watched."""


def test_an_envelope_that_has_run_can_be_collected(collect: Callable[[], None], bench: Bench) -> None:
    load = Load()
    watch = weakref.ref(load)
    bench.send(env(payload=load), env("behind it"))
    del load
    bench.run_one()
    collect()
    assert watch() is None


@pytest.mark.parametrize(
    "ending", ["cancelled", "dropped at a stop", "terminated", "settled by the next take"]
)
def test_an_envelope_that_was_given_up_can_be_collected(
    collect: Callable[[], None], bench: Bench, ending: str
) -> None:
    load = Load()
    watch = weakref.ref(load)
    envelope = env(payload=load)
    bench.send(envelope, delay=0 if ending == "settled by the next take" else 5)
    if ending == "cancelled":
        bench.queue.cancel(envelope)
    elif ending == "dropped at a stop":
        bench.stop(keeps=False)
    elif ending == "terminated":
        bench.queue.terminate()
    else:
        assert bench.queue.take(bench.now, bench.take()) is None
    bench.queue.removed.clear()
    del load, envelope
    collect()
    assert watch() is None


def test_a_cancelled_one_can_be_collected_when_the_line_has_passed_it(
    collect: Callable[[], None], bench: Bench
) -> None:
    load = Load()
    watch = weakref.ref(load)
    envelope = env(payload=load)
    bench.send(envelope, env("b"))
    bench.queue.cancel(envelope)
    bench.queue.removed.clear()
    del load, envelope
    assert bench.drain() == ["b"]
    collect()
    assert watch() is None


# Order


def test_higher_priorities_run_first_and_equal_ones_in_order_of_arrival(bench: Bench) -> None:
    for name, priority in [("a", 0), ("b", 5), ("c", -1), ("d", 5), ("e", 0)]:
        bench.send(env(name, priority=priority))
    assert bench.drain() == ["b", "d", "a", "e", "c"]


def test_the_short_way_and_the_long_way_share_one_line(bench: Bench) -> None:
    bench.send_shortly(env("a"))
    bench.send(env("b"), env("urgent", priority=1))
    bench.send_shortly(env("c"))
    assert bench.drain() == ["urgent", "a", "b", "c"]


def test_a_cancelled_one_that_is_sent_again_goes_to_the_end_of_the_line(bench: Bench) -> None:
    a, b = env("a"), env("b")
    bench.send(a, b)
    bench.queue.cancel(a)
    bench.send(a)
    assert bench.places == (2, 0, 0, 2)
    assert bench.drain() == ["b", "a"]


def test_a_cancelled_one_that_is_sent_again_by_the_short_way_goes_to_the_end_of_the_line(
    bench: Bench,
) -> None:
    a, b = env("a"), env("b")
    bench.send(a, b)
    bench.queue.cancel(a)
    bench.send_shortly(a)
    assert bench.drain() == ["b", "a"]


def test_a_cancelled_one_that_is_sent_again_with_a_delay_waits_for_it(bench: Bench) -> None:
    a, b = env("a"), env("b")
    bench.send(a, b)
    bench.queue.cancel(a)
    bench.send(a, delay=5)
    assert bench.places == (1, 0, 1, 2)
    bench.now += 5
    assert bench.drain() == ["b", "a"]


@pytest.mark.parametrize("way", ["delayed", "short"])
def test_a_cancelled_one_that_is_sent_again_is_in_the_queue_once_and_can_be_cancelled_again(
    bench: Bench, way: str
) -> None:
    """Its first place in the line, which nobody has passed yet, is no place any more."""
    a, b = env("a"), env("b")
    bench.send(a, b)
    bench.queue.cancel(a)
    if way == "delayed":
        bench.send(a, delay=5)
        bench.now += 5
        bench.queue.promote(bench.now)
    else:
        bench.send_shortly(a)
    assert bench.places == (2, 0, 0, 2)
    assert bench.queue.backlog.ready_envelopes() == [b, a]
    bench.queue.cancel(a)
    assert bench.places == (1, 0, 0, 1)
    assert bench.drain() == ["b"]


def test_cancelling_many_in_a_long_line_keeps_the_rest_in_order(bench: Bench) -> None:
    envelopes = [env(number) for number in range(1000)]
    bench.send(*envelopes)
    for number, envelope in enumerate(envelopes):
        if number % 10:
            bench.queue.cancel(envelope)
    assert bench.places == (100, 0, 0, 100)
    assert len(bench.queue.backlog.ready_queue) <= 2 * 100 + 64, "what was cancelled does not fill the line"
    assert bench.drain() == list(range(0, 1000, 10))


def test_by_the_short_way_a_delayed_one_waits_among_the_others(bench: Bench) -> None:
    bench.send(env("b"), delay=2)
    bench.send_shortly(env("a"), delay=1)
    bench.send_shortly(env("c"), delay=2)
    assert bench.places == (0, 0, 3, 3)
    bench.now += 2
    assert bench.drain() == ["a", "b", "c"]
    assert bench.counters == {"added": 3, "done": 3}


def test_by_the_short_way_a_delayed_one_that_is_in_already_keeps_the_earlier_time(bench: Bench) -> None:
    a = env("a")
    bench.send_shortly(a, delay=5)
    bench.send_shortly(a, delay=2)
    bench.send_shortly(a, delay=7)
    assert bench.queue.next_due == bench.now + 2
    assert bench.queue.added == 1


# Before the start


def test_what_was_sent_before_the_start_is_ready_and_runs_in_order() -> None:
    bench = Bench(state=QueueState.INIT)
    bench.send(env("a"), env("b"))
    bench.send_shortly(env("c"))
    assert bench.places == (3, 0, 0, 3)
    assert bench.queue.take(bench.now) is None
    assert not bench.has_work()
    bench.start()
    assert bench.drain() == ["a", "b", "c"]


def test_what_was_sent_before_the_start_counts_toward_capacity() -> None:
    bench = Bench(capacity=2, state=QueueState.INIT)
    bench.send(env("a"), env("b"))
    with pytest.raises(CapacityExceededError):
        bench.send(env("c"))


def test_a_delay_before_the_start_counts_from_the_send() -> None:
    bench = Bench(state=QueueState.INIT)
    bench.send(env("a"), delay=5)
    bench.now += 4
    bench.start()
    assert bench.drain() == []
    bench.now += 1
    assert bench.drain() == ["a"]


def test_nothing_becomes_ready_in_a_queue_that_does_not_run() -> None:
    bench = Bench(state=QueueState.INIT)
    bench.send(env("a"), delay=5)
    bench.now += 5
    bench.queue.promote(bench.now)
    assert bench.places == (0, 0, 1, 1)


def test_a_stop_before_the_start_changes_nothing() -> None:
    bench = Bench(state=QueueState.INIT)
    bench.send(env("a"), env("b"))
    bench.stop(keeps=False)
    assert bench.queue.state is QueueState.INIT
    bench.start()
    assert bench.drain() == ["a", "b"]


# Settling on the way to the next


def test_a_success_can_be_settled_by_the_next_take(bench: Bench) -> None:
    bench.send(env("a"), env("b"))
    a = bench.take()
    b = bench.queue.take(bench.now, a)
    assert b is not None
    assert b.envelope.id == "b"
    assert bench.counters == {"added": 2, "done": 1}
    assert bench.places == (0, 1, 0, 1)
    assert bench.queue.take(bench.now, b) is None
    assert bench.places == (0, 0, 0, 0)


def test_settled_by_the_next_take_it_runs_again_if_it_was_sent_again(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a)
    again = bench.queue.take(bench.now, run)
    assert again is not None
    assert again is not run
    assert again.envelope is a
    assert bench.counters == {"added": 2, "done": 1}


@pytest.mark.parametrize("key", [None, "k"])
def test_settled_by_the_next_take_its_failures_are_forgotten(bench: Bench, key: str | None) -> None:
    a = env("a", key=key)
    bench.send(a)
    bench.run_one(RETRY_NOW, 0)
    assert bench.queue.take(bench.now, bench.take()) is None
    assert bench.places == (0, 0, 0, 0)
    bench.send(a)
    assert bench.take().attempt == 1


# What a run is made of


def test_the_deadline_counts_from_the_moment_it_is_taken(bench: Bench) -> None:
    bench.send(env("a", deadline=3), env("b"))
    bench.now += 50
    a, b = bench.take(), bench.take()
    assert (a.began_at, a._until) == (bench.now, bench.now + 3)
    assert b._until == float("inf")


def test_a_run_begins_as_a_first_attempt_that_nobody_has_cancelled(bench: Bench) -> None:
    bench.send(env("a"))
    run = bench.take()
    assert (run.attempt, run.done, run.again, run.is_last) == (1, False, None, False)
    assert bench.queue.backlog.runs() == [run]
