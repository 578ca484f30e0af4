"""Who occupies a place: capacity, keys, and what was sent again during its run."""

from __future__ import annotations

import pytest

from rate_envelope_queue.core.verdict import Verdict
from rate_envelope_queue.errors import CapacityExceededError

from .conftest import (
    BACKED_OFF,
    DONE,
    DROP,
    FAILED_TICK,
    PANIC,
    RETRY_AFTER,
    RETRY_NOW,
    STOP,
    STOP_TYPE,
    TICK,
    Bench,
    env,
)

# Capacity


def test_a_send_that_does_not_fit_admits_none_and_says_how_much_it_needed() -> None:
    bench = Bench(capacity=3)
    bench.send(env("a"), env("b"))
    with pytest.raises(CapacityExceededError) as caught:
        bench.send(env("c"), env("d"))
    assert (caught.value.capacity, caught.value.occupied, caught.value.needed) == (3, 2, 2)
    assert bench.places == (2, 0, 0, 2)
    assert bench.counters == {"added": 2}
    bench.send(env("e"))
    assert bench.drain() == ["a", "b", "e"]


def test_zero_is_no_limit(bench: Bench) -> None:
    bench.send(*(env(number) for number in range(5000)))
    assert bench.queue.backlog.occupied == 5000


def test_needed_counts_only_new_places() -> None:
    bench = Bench(capacity=2)
    a, b, c = env("a"), env("b"), env("c")
    bench.send(a)
    with pytest.raises(CapacityExceededError) as caught:
        bench.send(a, b, b, c)
    assert caught.value.needed == 2
    bench.send(a, b, b)
    assert bench.queue.backlog.occupied == 2


@pytest.mark.parametrize("place", ["ready", "running", "delayed", "retried"])
def test_wherever_an_envelope_is_it_occupies_one_place_and_sending_it_again_costs_none(place: str) -> None:
    bench = Bench(capacity=1)
    a = env("a")
    bench.send(a, delay=5 if place == "delayed" else 0)
    if place == "running":
        bench.take()
    elif place == "retried":
        bench.run_one(RETRY_AFTER, 5)
    assert bench.queue.backlog.occupied == 1
    bench.send(a)
    bench.send(a, delay=9)
    assert bench.queue.backlog.occupied == 1
    with pytest.raises(CapacityExceededError):
        bench.send(env("b"))
    with pytest.raises(CapacityExceededError):
        bench.send_shortly(env("b"))
    with pytest.raises(CapacityExceededError):
        bench.send_shortly(env("b"), delay=5)


@pytest.mark.parametrize(
    ("verdict", "after"), [(RETRY_NOW, 0), (RETRY_AFTER, 5), (TICK, 5), (FAILED_TICK, 5), (BACKED_OFF, 5)]
)
def test_a_reschedule_never_fails_for_capacity(verdict: Verdict, after: float) -> None:
    bench = Bench(capacity=2)
    bench.send(env("a"), env("b"))
    bench.run_one(verdict, after)
    assert bench.queue.backlog.occupied == 2
    with pytest.raises(CapacityExceededError):
        bench.send(env("c"))
    bench.now += after
    assert bench.drain() == ["b", "a"]


@pytest.mark.parametrize("verdict", [DONE, DROP, PANIC, STOP, STOP_TYPE])
def test_what_is_finished_gives_its_place_back(verdict: Verdict) -> None:
    bench = Bench(capacity=1)
    bench.send(env("a", type="mail"))
    bench.run_one(verdict)
    assert bench.places == (0, 0, 0, 0)
    bench.send(env("b"))


def test_cancelling_gives_the_place_back() -> None:
    bench = Bench(capacity=2)
    a, b = env("a"), env("b")
    bench.send(a)
    bench.send(b, delay=5)
    assert bench.queue.cancel(a) == (True, None)
    assert bench.queue.cancel(b) == (True, None)
    assert bench.places == (0, 0, 0, 0)
    bench.send(env("c"), env("d"))
    assert bench.drain() == ["c", "d"]


# Keys


def test_while_one_waits_the_first_object_stays(bench: Bench) -> None:
    bench.send(env("first", key="k"))
    bench.send(env("second", key="k"))
    assert bench.queue.backlog.occupied == 1
    assert bench.drain() == ["first"]


def test_of_two_with_one_key_in_one_call_the_first_stays() -> None:
    bench = Bench(capacity=1)
    bench.send(env("first", key="k"), env("second", key="k"))
    assert bench.drain() == ["first"]


def test_a_delayed_one_that_is_sent_again_under_its_key_stays_the_first_object(bench: Bench) -> None:
    bench.send(env("first", key="k"), delay=5)
    bench.send(env("second", key="k"), delay=2)
    bench.send(env("third", key="k"))
    assert bench.drain() == ["first"]
    bench.now += 9
    assert bench.drain() == []


def test_sent_under_its_key_during_a_run_the_newest_runs_next(bench: Bench) -> None:
    bench.send(env("first", key="k"))
    run = bench.take()
    bench.send(env("second", key="k"))
    bench.send(env("third", key="k"))
    assert bench.queue.take(bench.now) is None, "one key never runs twice at the same time"
    bench.settle(run)
    assert bench.drain() == ["third"]
    assert bench.counters == {"added": 2, "done": 2}


def test_the_newest_under_a_key_runs_instead_of_the_retry_of_the_first(bench: Bench) -> None:
    bench.send(env("first", key="k"))
    run = bench.take()
    bench.send(env("second", key="k"), delay=9)
    bench.settle(run, RETRY_AFTER, 5)
    assert bench.places == (0, 0, 1, 1)
    bench.now += 5
    assert bench.drain() == ["second"], "one run, at the earlier of the two times"
    bench.now += 9
    assert bench.drain() == []


def test_the_newest_under_a_key_waits_by_its_own_priority(bench: Bench) -> None:
    bench.send(env("first", key="k"), env("other"))
    run = bench.take()
    bench.send(env("urgent", key="k", priority=1))
    bench.settle(run)
    assert bench.drain() == ["urgent", "other"]


def test_equal_envelopes_without_a_key_are_different_work(bench: Bench) -> None:
    bench.send(env("same"), env("same"))
    assert bench.drain() == ["same", "same"]


def test_whoever_has_the_key_can_cancel_it(bench: Bench) -> None:
    bench.send(env("first", key="k"))
    assert bench.queue.cancel(env("twin", key="k")) == (True, None)
    assert bench.places == (0, 0, 0, 0)
    bench.send(env("first", key="k"), delay=5)
    assert bench.queue.cancel(env("twin", key="k")) == (True, None)
    assert bench.places == (0, 0, 0, 0)


# Sent again during its run


@pytest.mark.parametrize("verdict", [DONE, DROP, PANIC, STOP])
def test_sent_again_during_its_run_it_runs_again_whatever_came_of_the_run(
    bench: Bench, verdict: Verdict
) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a)
    bench.settle(run, verdict)
    assert bench.places == (1, 0, 0, 1)
    assert bench.drain() == ["a"]


def test_sent_again_with_a_delay_during_its_run_it_is_delayed_after_it(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a, delay=5)
    bench.now += 1
    bench.settle(run)
    assert bench.places == (0, 0, 1, 1)
    assert bench.queue.next_due == bench.now + 4


def test_of_two_delays_during_a_run_the_earlier_wins(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a, delay=5)
    bench.send(a, delay=2)
    bench.send(a, delay=7)
    bench.settle(run)
    assert bench.queue.next_due == bench.now + 2


def test_sent_without_a_delay_during_its_run_a_periodic_one_runs_now_instead_of_at_its_tick(
    bench: Bench,
) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a)
    bench.settle(run, TICK, 60)
    assert bench.places == (1, 0, 0, 1)


def test_its_tick_comes_before_a_longer_delay_that_was_sent_during_the_run(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a, delay=60)
    bench.settle(run, TICK, 5)
    assert bench.queue.next_due == bench.now + 5


def test_stopped_by_its_type_what_was_sent_again_is_dropped(bench: Bench) -> None:
    a = env("a", type="mail")
    bench.send(a)
    run = bench.take()
    bench.send(a)
    bench.settle(run, STOP_TYPE)
    assert bench.places == (0, 0, 0, 0)
    assert bench.queue.removed == [a]
    assert bench.counters == {"added": 2, "dropped": 1}
