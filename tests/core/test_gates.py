"""Rates, concurrency and cooling in the work queue: who may start when, and who waits aside meanwhile."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from rate_envelope_queue.core.verdict import VERDICTS, Ending, Mode
from rate_envelope_queue.rates import Rate

from .conftest import (
    DONE,
    DROP,
    PANIC,
    RATE_LIMITED,
    RETRY_AFTER,
    RETRY_NOW,
    STOP,
    STOP_TYPE,
    TICK,
    Bench,
    env,
)

if TYPE_CHECKING:
    from rate_envelope_queue.core.run import Run
    from rate_envelope_queue.core.verdict import Verdict

ONE_OF_EACH: dict[str, Any] = {"concurrency": {"mail": 1, "sms": 1}}


def names(runs: list[Run]) -> list[object]:
    return [run.envelope.id for run in runs]


def starts(bench: Bench, count: int, *, late: float = 0) -> list[float]:
    """When the next so many start, if a worker looks whenever the queue says so, or a little late."""
    began: list[float] = []
    while len(began) < count:
        began += [bench.now for _ in bench.take_all()]
        if len(began) < count:
            assert bench.now < bench.queue.next_due < inf
            bench.now = bench.queue.next_due + late
    return began


# Rates


def test_a_rate_paces_the_starts_evenly() -> None:
    bench = Bench(rate=Rate(4))
    bench.send(*(env(number) for number in range(5)))
    assert starts(bench, 5) == [100, 100.25, 100.5, 100.75, 101]


def test_a_burst_starts_at_once_after_a_rest() -> None:
    bench = Bench(rate=Rate(1, per=4, burst=3))
    bench.send(*(env(number) for number in range(6)))
    assert starts(bench, 6) == [100, 100, 100, 104, 108, 112]


def test_a_rest_saves_no_more_than_the_burst() -> None:
    bench = Bench(rate=Rate(1, burst=2))
    bench.now += 1000
    bench.send(*(env(number) for number in range(4)))
    assert starts(bench, 4) == [1100, 1100, 1101, 1102]


def test_a_rate_counts_starts_and_not_ends() -> None:
    bench = Bench(rate=Rate(1))
    bench.send(env("a"), env("b"))
    assert bench.run_one().id == "a"
    assert bench.queue.take(bench.now) is None
    bench.now += 1
    assert bench.run_one().id == "b"


def test_retries_are_starts_too() -> None:
    bench = Bench(rate=Rate(1))
    bench.send(env("a"))
    bench.run_one(RETRY_NOW, 0)
    assert bench.queue.take(bench.now) is None
    assert bench.queue.next_due == bench.now + 1


def test_the_rate_of_the_queue_counts_all_types_together() -> None:
    bench = Bench(rate=Rate(1))
    bench.send(env("a", type="mail"), env("b", type="sms"), env("c"))
    assert starts(bench, 3) == [100, 101, 102]


def test_both_rates_hold_for_a_type_that_has_its_own() -> None:
    bench = Bench(rate=Rate(1), rates={"mail": Rate(1, per=3)})
    bench.send(env("m1", type="mail"), env("m2", type="mail"), env("a"), env("b"), env("c"))
    began: dict[object, float] = {}
    while len(began) < 5:
        for run in bench.take_all():
            began[run.envelope.id] = bench.now
        bench.now = bench.queue.next_due
    assert began == {"m1": 100, "a": 101, "b": 102, "m2": 103, "c": 104}


def test_an_alarm_that_is_a_little_late_each_time_does_not_slow_the_pace() -> None:
    bench = Bench(rate=Rate(10))
    bench.send(*(env(number) for number in range(101)))
    assert starts(bench, 101, late=0.001)[-1] == pytest.approx(110, abs=0.01)


def test_a_worker_that_comes_much_too_late_does_not_catch_up_with_a_burst() -> None:
    bench = Bench(rate=Rate(1))
    bench.send(*(env(number) for number in range(10)))
    assert len(bench.take_all()) == 1
    bench.now += 5
    assert len(bench.take_all()) == 1


# Concurrency


def test_no_more_of_a_type_run_at_once_than_may() -> None:
    bench = Bench(concurrency={"mail": 2})
    bench.send(*(env(number, type="mail") for number in range(5)))
    runs = bench.take_all()
    assert names(runs) == [0, 1]
    bench.settle(runs[1])
    assert names(bench.take_all()) == [2]


@pytest.mark.parametrize(
    ("verdict", "after"),
    [
        *((DONE, None), (DROP, None), (PANIC, None), (STOP, None)),
        *((TICK, 9), (RETRY_AFTER, 9)),
    ],
)
def test_however_a_run_ends_the_next_of_its_type_may_start(verdict: Verdict, after: float | None) -> None:
    bench = Bench(**ONE_OF_EACH)
    bench.send(env("a", type="mail"), env("b", type="mail"))
    bench.settle(bench.take(), verdict, after)
    assert names(bench.take_all()) == ["b"]


def test_a_run_that_is_settled_by_the_next_take_makes_way_for_it() -> None:
    bench = Bench(**ONE_OF_EACH)
    bench.send(env("a", type="mail"), env("b", type="mail"))
    run = bench.queue.take(bench.now, bench.take())
    assert run is not None
    assert run.envelope.id == "b"
    assert bench.queue.take(bench.now) is None


def test_under_one_key_it_is_the_type_that_runs_which_makes_way() -> None:
    bench = Bench(**ONE_OF_EACH)
    bench.send(env("first", type="mail", key="k"), env("mail", type="mail"))
    run = bench.take()
    bench.send(env("newest", type="sms", key="k"))
    bench.settle(run)
    assert sorted(map(str, names(bench.take_all()))) == ["mail", "newest"]


# Waiting aside


@pytest.mark.parametrize("limits", [{"rates": {"mail": Rate(1)}}, {"concurrency": {"mail": 1}}])
def test_a_throttled_type_never_holds_up_another(limits: dict[str, Any]) -> None:
    bench = Bench(**limits)
    bench.send(*(env(f"m{number}", type="mail", priority=9) for number in range(3)))
    bench.send(env("a"), env("b", type="sms"))
    assert names(bench.take_all()) == ["m0", "a", "b"]


def test_a_throttled_type_keeps_its_own_order() -> None:
    bench = Bench(concurrency={"mail": 1})
    for name, priority in [("a", 0), ("b", 0), ("c", 5), ("d", 0)]:
        bench.send(env(name, type="mail", priority=priority))
    ran = []
    while runs := bench.take_all():
        ran += names(runs)
        bench.settle(runs[0])
    assert ran == ["c", "a", "b", "d"]


def test_one_that_waited_aside_goes_before_what_came_later() -> None:
    bench = Bench(concurrency={"mail": 1})
    bench.send(env("m1", type="mail"), env("m2", type="mail"))
    runs = bench.take_all()
    bench.now += 1
    bench.send(env("later"))
    bench.settle(runs[0])
    assert names(bench.take_all()) == ["m2", "later"]


def test_one_that_waited_aside_goes_after_what_is_more_urgent() -> None:
    bench = Bench(concurrency={"mail": 1})
    bench.send(env("m1", type="mail"), env("m2", type="mail"))
    runs = bench.take_all()
    bench.now += 1
    bench.send(env("urgent", priority=1))
    bench.settle(runs[0])
    assert names(bench.take_all()) == ["urgent", "m2"]


def test_of_several_that_waited_aside_the_first_to_arrive_goes_first() -> None:
    bench = Bench(**ONE_OF_EACH)
    bench.send(env("m0", type="mail"), env("s0", type="sms"))
    runs = bench.take_all()
    for name in ("s1", "m1", "s2", "m2"):
        bench.now += 1
        bench.send(env(name, type="sms" if name[0] == "s" else "mail"))
    assert bench.take_all() == []
    for run in runs:
        bench.settle(run)
    assert names(bench.take_all()) == ["s1", "m1"]


def test_of_several_sent_in_one_call_that_waited_aside_the_first_goes_first() -> None:
    """They are ready since the same instant, and still arrived one after the other."""
    bench = Bench(**ONE_OF_EACH)
    bench.send(env("m0", type="mail"), env("s0", type="sms"))
    m0, s0 = bench.take_all()
    bench.send(env("m1", type="mail"), env("s1", type="sms"), env("m2", type="mail"))
    assert bench.take_all() == []
    bench.settle(m0)
    m1 = bench.take()
    bench.settle(m1)
    bench.settle(s0)
    assert names(bench.take_all()) == ["s1", "m2"]


def test_a_throttled_envelope_counts_as_ready() -> None:
    bench = Bench(capacity=3, concurrency={"mail": 1})
    bench.send(*(env(number, type="mail") for number in range(3)))
    bench.take_all()
    assert bench.places == (2, 1, 0, 3)
    assert bench.has_work()
    assert bench.queue.backlog.throttled > 0


def test_sent_again_while_it_waits_aside_it_runs_once() -> None:
    bench = Bench(concurrency={"mail": 1})
    a, b = env("a", type="mail"), env("b", type="mail")
    bench.send(a, b)
    runs = bench.take_all()
    bench.send(b)
    assert bench.places == (1, 1, 0, 2)
    bench.settle(runs[0])
    assert bench.drain() == ["b"]


def test_one_that_waits_aside_can_be_cancelled() -> None:
    bench = Bench(concurrency={"mail": 1})
    a, b, c = (env(name, type="mail") for name in "abc")
    bench.send(a, b, c)
    runs = bench.take_all()
    assert bench.queue.cancel(b) == (True, None)
    assert bench.places == (1, 1, 0, 2)
    bench.settle(runs[0])
    assert bench.drain() == ["c"]


def test_cancelled_aside_and_sent_again_it_goes_to_the_end() -> None:
    bench = Bench(concurrency={"mail": 1})
    a, b, c = (env(name, type="mail") for name in "abc")
    bench.send(a, b, c)
    runs = bench.take_all()
    bench.queue.cancel(b)
    bench.send(b)
    bench.settle(runs[0])
    assert bench.drain() == ["c", "b"]


def test_a_stopped_type_is_dropped_where_it_waits_aside() -> None:
    bench = Bench(concurrency={"mail": 1})
    bench.send(*(env(number, type="mail") for number in range(3)))
    runs = bench.take_all()
    bench.settle(runs[0], STOP_TYPE)
    assert bench.places == (0, 0, 0, 0)
    assert bench.queue.dropped == 2


@pytest.mark.parametrize("drains", [True, False])
def test_what_waits_aside_at_a_stop_is_drained_or_kept_in_order(drains: bool) -> None:
    bench = Bench(concurrency={"mail": 1})
    bench.send(*(env(number, type="mail") for number in range(4)))
    runs = bench.take_all()
    bench.stop(drains=drains)
    assert bench.has_work() == drains, "a drain waits for those who wait aside"
    bench.settle(runs[0])
    assert bench.drain() == ([1, 2, 3] if drains else [])
    assert bench.queue.backlog.occupied == (0 if drains else 3)
    bench.restart()
    assert bench.drain() == ([] if drains else [1, 2, 3])


def test_a_stop_that_keeps_nothing_drops_what_waits_aside() -> None:
    bench = Bench(concurrency={"mail": 1})
    bench.send(*(env(number, type="mail") for number in range(3)))
    bench.take_all()
    bench.stop(drains=False, keeps=False)
    assert bench.places == (0, 1, 0, 1)
    assert bench.queue.dropped == 2


def test_terminate_returns_what_waits_aside() -> None:
    bench = Bench(concurrency={"mail": 1})
    bench.send(*(env(number, type="mail") for number in range(3)))
    bench.take_all()
    assert [envelope.id for envelope in bench.queue.terminate()] == [1, 2]
    assert bench.places == (0, 1, 0, 1)


# When to look again


def test_the_queue_knows_when_a_rate_lets_the_next_one_start() -> None:
    bench = Bench(rates={"mail": Rate(1, per=4)})
    bench.send(env("a", type="mail"), env("b", type="mail"))
    bench.take_all()
    assert bench.queue.next_due == bench.now + 4
    assert not bench.queue.can_take(bench.now)
    assert bench.queue.can_take(bench.now + 4)


def test_while_it_depends_on_a_run_nothing_comes_by_itself() -> None:
    bench = Bench(concurrency={"mail": 1})
    bench.send(env("a", type="mail"), env("b", type="mail"))
    runs = bench.take_all()
    assert bench.queue.next_due == inf
    assert not bench.queue.can_take(bench.now)
    bench.settle(runs[0])
    assert bench.queue.can_take(bench.now)


def test_a_paused_queue_waits_for_no_rate() -> None:
    bench = Bench(rate=Rate(1))
    bench.send(env("a"), env("b"))
    bench.take_all()
    bench.queue.pause()
    assert bench.queue.next_due == inf
    assert not bench.queue.can_take(bench.now + 9)


def test_a_drain_knows_when_the_next_one_may_start() -> None:
    bench = Bench(rate=Rate(1))
    bench.send(env("a"), env("b"))
    bench.take_all()
    bench.stop(drains=True)
    assert bench.queue.next_due == bench.now + 1


# Cooling


def test_a_rate_limited_type_waits_and_the_others_go_on() -> None:
    bench = Bench()
    bench.send(env("m1", type="mail"), env("m2", type="mail"), env("a"), env("s", type="sms"))
    bench.settle(bench.take(), RATE_LIMITED, 10)
    assert names(bench.take_all()) == ["a", "s"]
    bench.now += 9.5
    bench.send(env("m3", type="mail"))
    assert bench.take_all() == []
    assert bench.queue.next_due == bench.now + 0.5
    bench.now += 0.5
    assert sorted(map(str, names(bench.take_all()))) == ["m1", "m2", "m3"]


def test_without_a_type_the_whole_queue_waits() -> None:
    bench = Bench()
    bench.send(env("a"), env("b"), env("m", type="mail"))
    bench.settle(bench.take(), RATE_LIMITED, 10)
    assert bench.take_all() == []
    assert bench.queue.next_due == bench.now + 10
    bench.now += 10
    assert len(bench.take_all()) == 3


@pytest.mark.parametrize("waits", [(5, 10), (10, 5)])
def test_of_two_that_were_rate_limited_the_longer_wait_counts_for_the_type(
    waits: tuple[float, float],
) -> None:
    bench = Bench()
    bench.send(env("m1", type="mail"), env("m2", type="mail"), env("m3", type="mail"))
    first, second, third = bench.take_all()
    bench.settle(first, RATE_LIMITED, waits[0])
    bench.settle(second, RATE_LIMITED, waits[1])
    bench.settle(third, DONE)
    bench.now += 9.5
    assert bench.take_all() == []
    bench.now += 0.5
    assert len(bench.take_all()) == 2


def test_rate_limited_it_neither_failed_nor_was_retried() -> None:
    bench = Bench()
    bench.send(env("a", type="mail"))
    bench.run_one(RATE_LIMITED, 10)
    assert bench.counters == {"added": 1}
    assert bench.places == (0, 0, 1, 1)


@pytest.mark.parametrize("mode", Mode)
def test_rate_limited_it_keeps_the_attempt_at_which_it_was(mode: Mode) -> None:
    """The attempt is 1 again after a success, and counts up over failures; this is neither."""
    bench = Bench()
    bench.send(env("a", type="mail"))
    bench.run_one(RETRY_NOW, 0)
    bench.run_one(RETRY_NOW, 0)
    run = bench.take()
    assert run.attempt == 3
    bench.settle(run, VERDICTS[Ending.RATE_LIMITED, mode, None], 10)
    bench.now += 10
    assert bench.take().attempt == 3


def test_a_cancelled_one_that_is_rate_limited_does_not_come_back() -> None:
    bench = Bench()
    a = env("a", type="mail")
    bench.send(a)
    run = bench.take()
    bench.queue.cancel(a)
    bench.settle(run, RATE_LIMITED, 10)
    assert bench.places == (0, 0, 0, 0)
    assert bench.queue.dropped == 1
