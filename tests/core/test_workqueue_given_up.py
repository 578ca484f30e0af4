"""What is given up: by cancel, or because its type was stopped."""

from __future__ import annotations

import pytest

from rate_envelope_queue.core.verdict import Verdict
from rate_envelope_queue.errors import (
    CapacityExceededError,
    EnvelopeBlacklistedError,
    QueueNotRunningError,
    QueueTerminatedError,
)

from .conftest import DONE, DROP, FAILED_TICK, RETRY_AFTER, RETRY_NOW, STOP_TYPE, TICK, Bench, env

# Cancelling


def test_cancelling_a_stranger_finds_nothing(bench: Bench) -> None:
    bench.send(env("a"))
    assert bench.queue.cancel(env("stranger")) == (False, None)
    assert bench.counters == {"added": 1}


@pytest.mark.parametrize("delay", [0, 5])
def test_a_waiting_one_that_is_cancelled_never_runs(bench: Bench, delay: float) -> None:
    a = env("a")
    bench.send(a, delay=delay)
    assert bench.queue.cancel(a) == (True, None)
    assert bench.queue.cancel(a) == (False, None)
    assert not bench.has_work()
    bench.now += 9
    assert bench.drain() == []
    assert bench.queue.removed == [a]
    assert bench.counters == {"added": 1, "dropped": 1}


@pytest.mark.parametrize(
    ("verdict", "after"), [(DROP, None), (RETRY_NOW, 0), (RETRY_AFTER, 5), (TICK, 5), (FAILED_TICK, 5)]
)
def test_a_running_one_that_is_cancelled_is_finished_after_its_run(
    bench: Bench, verdict: Verdict, after: float | None
) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    assert bench.queue.cancel(a) == (True, run)
    assert bench.places == (0, 1, 0, 1)
    bench.settle(run, verdict, after)
    assert bench.places == (0, 0, 0, 0)
    assert bench.queue.dropped == 1, "given up once"
    assert bench.queue.retried == 0


def test_cancelling_a_running_one_forgets_that_it_was_sent_again(bench: Bench) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.send(a)
    bench.queue.cancel(a)
    bench.settle(run, DROP)
    assert bench.places == (0, 0, 0, 0)


@pytest.mark.parametrize(("verdict", "after"), [(DROP, None), (RETRY_AFTER, 5), (FAILED_TICK, 5)])
def test_sent_after_a_cancel_it_counts(bench: Bench, verdict: Verdict, after: float | None) -> None:
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.queue.cancel(a)
    bench.send(a)
    bench.settle(run, verdict, after)
    assert bench.drain() == ["a"]
    assert bench.queue.added == 2
    bench.now += 9
    assert bench.drain() == [], "what was cancelled does not come back"


def test_only_the_run_under_way_is_given_up_by_a_cancel(bench: Bench) -> None:
    """The run after it may be rescheduled."""
    a = env("a")
    bench.send(a)
    run = bench.take()
    bench.queue.cancel(a)
    bench.send(a)
    bench.settle(run, DROP)
    bench.run_one(RETRY_AFTER, 5)
    assert bench.places == (0, 0, 1, 1)


# The blacklist


def test_a_stopped_type_is_refused_and_what_waits_of_it_is_dropped(bench: Bench) -> None:
    ready, delayed, other = env("ready", type="mail"), env("delayed", type="mail"), env("other", type="sms")
    bench.send(env("stopper", type="mail"), ready, other)
    bench.send(delayed, delay=5)
    bench.run_one(STOP_TYPE)
    assert bench.queue.blacklist == {"mail"}
    assert bench.places == (1, 0, 0, 1)
    assert bench.queue.removed == [ready, delayed]
    assert bench.counters == {"added": 4, "dropped": 2}
    with pytest.raises(EnvelopeBlacklistedError) as caught:
        bench.send(env("new", type="mail"))
    assert caught.value.type == "mail"
    with pytest.raises(EnvelopeBlacklistedError):
        bench.send_shortly(env("new", type="mail"))
    with pytest.raises(EnvelopeBlacklistedError):
        bench.send_shortly(env("new", type="mail"), delay=5)
    assert bench.drain() == ["other"]


def test_one_of_a_stopped_type_refuses_the_whole_send(bench: Bench) -> None:
    bench.send(env(type="mail"))
    bench.run_one(STOP_TYPE)
    with pytest.raises(EnvelopeBlacklistedError):
        bench.send(env("a"), env("b", type="mail"))
    assert bench.places == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("verdict", "after", "dropped"), [(DONE, None, 0), (RETRY_AFTER, 5, 1), (RETRY_NOW, 0, 1), (TICK, 5, 1)]
)
def test_a_running_one_of_a_stopped_type_finishes_and_does_not_come_back(
    bench: Bench, verdict: Verdict, after: float | None, dropped: int
) -> None:
    bench.send(env("a", type="mail"), env("b", type="mail"))
    a, b = bench.take(), bench.take()
    bench.settle(a, STOP_TYPE)
    assert bench.places == (0, 1, 0, 1)
    bench.settle(b, verdict, after)
    assert bench.places == (0, 0, 0, 0)
    assert bench.queue.dropped == dropped
    assert bench.queue.retried == 0


def test_an_envelope_without_a_type_stops_only_itself(bench: Bench) -> None:
    bench.send(env("a"), env("b"))
    bench.run_one(STOP_TYPE)
    assert bench.queue.blacklist == set()
    assert bench.drain() == ["b"]


def test_an_allowed_type_can_be_sent_again(bench: Bench) -> None:
    bench.send(env(type="mail"))
    bench.run_one(STOP_TYPE)
    assert bench.queue.allow("mail")
    assert not bench.queue.allow("mail")
    bench.send_shortly(env("a", type="mail"))
    bench.send(env("b", type="mail"))
    assert bench.drain() == ["a", "b"]


def test_the_blacklist_survives_a_restart(bench: Bench) -> None:
    bench.send(env(type="mail"))
    bench.run_one(STOP_TYPE)
    bench.stop()
    bench.restart()
    with pytest.raises(EnvelopeBlacklistedError):
        bench.send(env(type="mail"))


def test_what_waits_for_the_end_of_a_run_is_dropped_by_its_own_type(bench: Bench) -> None:
    """Two types share a key; the one that is stopped waits for the run of the other."""
    bench.send(env("running", type="sms", key="k"), env("stopper", type="mail"))
    run = bench.take()
    bench.send(env("waiting", type="mail", key="k"))
    bench.run_one(STOP_TYPE)
    bench.settle(run)
    assert bench.drain() == []
    assert bench.queue.dropped == 1


def test_what_waits_for_the_end_of_a_run_that_stops_another_type_runs(bench: Bench) -> None:
    """Sent again during its run it does run again; only waiting ones of the stopped type are dropped."""
    bench.send(env("stopper", type="mail", key="k"))
    run = bench.take()
    bench.send(env("waiting", type="sms", key="k"))
    bench.settle(run, STOP_TYPE)
    assert bench.drain() == ["waiting"]


def test_the_state_is_checked_before_the_blacklist_and_that_before_the_capacity() -> None:
    bench = Bench(capacity=1)
    mail = env(type="mail")
    bench.send(mail)
    bench.run_one(STOP_TYPE)
    bench.send(env("full"))
    with pytest.raises(EnvelopeBlacklistedError):
        bench.send(mail, env())
    with pytest.raises(CapacityExceededError):
        bench.send(env())
    bench.stop(drains=False)
    with pytest.raises(QueueNotRunningError):
        bench.send(mail, env())
    bench.queue.terminate()
    with pytest.raises(QueueTerminatedError):
        bench.send(mail, env())
