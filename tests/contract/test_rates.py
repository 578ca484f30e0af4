"""Rates, concurrency and cooling: never exceeded, never idle without need, and never in another type's way."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rate_envelope_queue import (
    BadFieldsError,
    Context,
    Envelope,
    QueueState,
    Rate,
    RateLimited,
    Reason,
    StopType,
    SystemClock,
)
from rate_envelope_queue.core.gates import Gate as PacingGate

from ..support.gates import Gate
from ..support.waiting import LIMIT
from .conftest import Driver


def noting(driver: Driver, starts: list[Any], **options: Any) -> Envelope[Any]:
    return driver.envelope(
        lambda ctx, envelope: starts.append((envelope.type, driver.clock.now())), **options
    )


def test_a_rate_paces_the_whole_queue_evenly(driver: Driver) -> None:
    starts: list[Any] = []
    queue = driver.queue(workers=3, rate="2/s")
    queue.send(*[noting(driver, starts) for _ in range(5)])
    driver.advance(10)
    assert [at for _, at in starts] == [0, 0.5, 1, 1.5, 2]


def test_a_burst_goes_at_once_after_a_rest(driver: Driver) -> None:
    starts: list[Any] = []
    queue = driver.queue(workers=1, rate=Rate(2, per=1, burst=3))
    queue.send(*[noting(driver, starts) for _ in range(5)])
    driver.advance(10)
    assert [at for _, at in starts] == [0, 0, 0, 0.5, 1]
    starts.clear()
    queue.send(*[noting(driver, starts) for _ in range(4)])
    driver.advance(10)
    assert [at for _, at in starts] == [10, 10, 10, 10.5]


def test_a_throttled_type_keeps_its_order_and_never_delays_another(driver: Driver) -> None:
    starts: list[Any] = []
    queue = driver.queue(workers=1, rates={"slow": Rate(1, per=10)}, start=False)
    for i in range(4):
        queue.send(noting(driver, starts, type="slow", id=i), noting(driver, starts, type="fast"))
    queue.start()
    driver.advance(35)
    assert starts == [("slow", 0), *[("fast", 0)] * 4, ("slow", 10), ("slow", 20), ("slow", 30)]


def test_a_throttled_envelope_counts_as_ready(driver: Driver) -> None:
    queue = driver.queue(rates={"slow": "1/h"})
    queue.send(*[driver.envelope(type="slow") for _ in range(3)])
    driver.advance(1)
    stats = queue.stats()
    assert (stats.done, stats.ready, stats.delayed, stats.occupied) == (1, 2, 0, 2)
    assert queue.join(0.01) is False


def test_a_drain_waits_for_what_is_throttled(driver: Driver) -> None:
    queue = driver.queue(rate=Rate(100), clock=SystemClock())
    queue.send(*[driver.envelope() for _ in range(5)])
    assert queue.stop(LIMIT) is True
    assert queue.stats().done == 5


def test_in_any_window_no_more_start_than_the_rate_and_the_burst_allow(driver: Driver) -> None:
    starts: list[Any] = []
    queue = driver.queue(workers=4, rates={"t": Rate(3, per=2, burst=4)})
    for pause in (0.1, 0.4, 3, 0.2, 7):
        queue.send(*[noting(driver, starts, type="t") for _ in range(6)])
        driver.advance(pause)
    driver.advance(60)
    times = [at for _, at in starts]
    assert len(times) == 30
    for i, first in enumerate(times):
        for j in range(i, len(times)):
            assert j - i + 1 <= 4 + 1.5 * (times[j] - first) + 1e-6


def test_in_real_time_the_rate_is_not_exceeded_and_work_flows(driver: Driver) -> None:
    """On the machine's own clock. How near to the rate it comes on a quiet machine, `make bench` measures."""
    starts: list[float] = []
    queue = driver.queue(workers=4, rate=Rate(100, burst=1), clock=SystemClock())
    began_at = time.monotonic()  # not the first start: a busy machine may be late with that one alone
    queue.send(*[driver.envelope(lambda ctx, envelope: starts.append(time.monotonic())) for _ in range(30)])
    assert queue.join(LIMIT)
    assert max(starts) - began_at >= 29 / 100 * 0.98


@pytest.mark.parametrize("late", [0, 0.001, 0.0049])
def test_alarms_that_ring_late_do_not_slow_the_pace(late: float) -> None:
    gate = PacingGate(Rate(100))
    starts = []
    for _ in range(500):
        starts.append(max(gate.opens_at, 0.0) + late)
        gate.enter(starts[-1], since=0.0)
    assert starts[-1] - starts[0] <= 499 / 100 / 0.98 + late


@given(lateness=st.lists(st.floats(0, 0.02), min_size=2, max_size=60), burst=st.integers(1, 5))
def test_however_late_alarms_ring_the_rate_is_exceeded_by_no_more_than_their_lateness(
    lateness: list[float], burst: int
) -> None:
    gate = PacingGate(Rate(100, burst=burst))
    starts: list[float] = []
    for late in lateness:
        starts.append(max(gate.opens_at, starts[-1] if starts else 0.0) + late)
        gate.enter(starts[-1], since=0.0)
    for i, first in enumerate(starts):
        for j in range(i, len(starts)):
            assert j - i + 1 <= burst + 100 * (starts[j] - first + 0.005) + 1e-6


def test_concurrency_bounds_how_many_of_a_type_run_at_once(driver: Driver, gate: Gate) -> None:
    queue = driver.queue(workers=4, concurrency={"email": 2})
    queue.send(*[driver.envelope(gate.pass_through, type="email") for _ in range(5)])
    gate.wait_reached()
    gate.wait_reached()
    others = [driver.envelope(type="other") for _ in range(3)]
    queue.send(*others)
    while queue.stats().done < 3:
        threading.Event().wait(0.001)
    assert queue.stats().running == 2
    assert queue.stats().ready == 3
    gate.open(5)
    assert queue.join(LIMIT)
    assert queue.stats().done == 8


@pytest.mark.parametrize("ending", ["returns", "raises", "panics", "stops", "is cancelled", "is too late"])
def test_a_permit_comes_back_however_a_run_ends(driver: Driver, ending: str) -> None:
    from rate_envelope_queue import StopEnvelope

    raised = {"raises": ValueError(), "panics": SystemExit(), "stops": StopEnvelope()}

    def work(ctx: Context, envelope: Envelope[Any]) -> None:
        if ending == "is too late":
            driver.clock._instant += 5
        if ending == "is cancelled":
            ctx.cancel()
        if ending in raised:
            raise raised[ending]

    queue = driver.queue(workers=2, concurrency={"t": 1})
    for _ in range(3):
        queue.send(driver.envelope(work, type="t", deadline=1))
        assert queue.join(LIMIT)
    queue.send(driver.envelope(type="t"))
    assert queue.join(LIMIT)


def test_a_drain_waits_for_a_type_that_cools_but_not_for_who_cooled_it(driver: Driver) -> None:
    def limited(ctx: Any, envelope: Any) -> None:
        raise RateLimited(30)

    queue = driver.queue()
    queue.send(driver.envelope(limited, type="api"), driver.envelope(type="api"))
    assert queue.join(0.01) is False
    assert queue.stop(0) is False
    driver.advance(29)
    assert queue.state is QueueState.STOPPING
    driver.advance(1)
    assert queue.stop(LIMIT) is True
    stats = queue.stats()
    assert (stats.done, stats.delayed, stats.occupied) == (1, 1, 1)


def test_permits_survive_a_stop_and_a_start(driver: Driver, gate: Gate) -> None:
    queue = driver.queue(workers=2, concurrency={"t": 1}, stop_mode="stop", waiting=False)
    queue.send(*[driver.envelope(gate.pass_through, type="t") for _ in range(3)])
    gate.wait_reached()
    queue.stop()
    gate.open()
    while queue.stats().running:
        threading.Event().wait(0.001)
    queue.start()
    gate.open(2)
    assert queue.join(LIMIT)
    assert queue.stats().done == 3


def test_priority_rules_among_types_and_within_a_throttled_one(driver: Driver) -> None:
    ran: list[object] = []
    queue = driver.queue(rates={"slow": "1/s"}, start=False)
    work = lambda ctx, envelope: ran.append(envelope.id)  # noqa: E731
    queue.send(driver.envelope(work, type="slow", id="first"))
    queue.send(driver.envelope(work, type="slow", id="low"))
    queue.send(driver.envelope(work, type="slow", id="high", priority=5))
    queue.send(driver.envelope(work, type="fast", id="fast", priority=-5))
    queue.start()
    driver.advance(5)
    assert ran == ["high", "fast", "first", "low"]


def test_cancelled_while_throttled_is_out_and_costs_no_token(driver: Driver) -> None:
    starts: list[Any] = []
    queue = driver.queue(rates={"t": "1/s"})
    one, two, three = (noting(driver, starts, type="t") for _ in range(3))
    queue.send(one, two, three)
    driver.advance(0.5)
    assert queue.cancel(two)
    assert queue.stats().ready == 1
    driver.advance(5)
    assert [at for _, at in starts] == [0, 1]
    assert queue.occupied == 0


def test_stop_type_drops_what_is_throttled(driver: Driver) -> None:
    def stop(ctx: Context, envelope: Envelope[Any]) -> None:
        raise StopType

    queue = driver.queue(rates={"t": "1/s"}, start=False)
    queue.send(driver.envelope(stop, type="t"), *[driver.envelope(type="t") for _ in range(3)])
    queue.start()
    driver.advance(5)
    assert (queue.occupied, queue.stats().dropped) == (0, 3)


def test_rate_limited_cools_the_type_and_runs_it_again_without_a_failure(driver: Driver) -> None:
    starts: list[Any] = []

    def limited(ctx: Context, envelope: Envelope[Any]) -> None:
        starts.append((envelope.type, driver.clock.now(), ctx.attempt))
        if len(starts) == 1:
            raise RateLimited(retry_after=10)

    queue = driver.queue()
    hook_calls: list[int] = []
    hook = lambda ctx, envelope, error: hook_calls.append(1)  # noqa: E731
    queue.send(driver.envelope(limited, type="api", failure_hook=hook))
    queue.send(driver.envelope(limited, type="api"), driver.envelope(limited, type="other"))
    driver.advance(30)
    assert starts[:2] == [("api", 0, 1), ("other", 0, 1)]
    assert sorted(starts[2:]) == [("api", 10, 1), ("api", 10, 1)]
    stats = queue.stats()
    assert (stats.done, stats.failed, stats.occupied) == (3, 0, 0)
    assert not hook_calls


def test_rate_limited_without_a_type_cools_the_whole_queue(driver: Driver) -> None:
    starts: list[Any] = []

    def limited(ctx: Context, envelope: Envelope[Any]) -> None:
        starts.append(driver.clock.now())
        if len(starts) == 1:
            raise RateLimited(timedelta(seconds=10))

    queue = driver.queue()
    queue.send(driver.envelope(limited), driver.envelope(limited, type="other"))
    driver.advance(30)
    assert starts == [0, 10, 10]


@pytest.mark.parametrize("wrong", [0, -1, float("inf"), float("nan"), "5", None])
def test_rate_limited_wants_a_number_of_seconds(wrong: Any) -> None:
    with pytest.raises(BadFieldsError, match="retry_after"):
        RateLimited(wrong)


def test_explain_says_why_an_envelope_does_not_run(driver: Driver, gate: Gate) -> None:
    limits: dict[str, Any] = {"rates": {"slow": "1/min"}, "concurrency": {"one": 1}}
    queue: Any = driver.queue(workers=2, start=False, **limits)
    reason = lambda envelope: queue.explain(envelope).reason  # noqa: E731
    waiting, delayed = driver.envelope(), driver.envelope()
    assert reason(waiting) is Reason.NOT_IN_QUEUE
    queue.send(waiting)
    queue.send(delayed, delay=60)
    assert reason(waiting) is Reason.NOT_STARTED
    explained = queue.explain(delayed)
    assert (explained.reason, explained.until) == (Reason.DELAYED, driver.clock.wall() + timedelta(minutes=1))
    queue.pause()
    queue.start()
    assert reason(waiting) is Reason.PAUSED
    second = driver.envelope()
    queue.send(second)
    queue.resume()
    assert queue.join(LIMIT)
    slow, throttled = driver.envelope(type="slow"), driver.envelope(type="slow")
    holder, held = driver.envelope(gate.pass_through, type="one"), driver.envelope(type="one")
    queue.send(slow, throttled)
    assert queue.join(0.01) is False
    explained = queue.explain(throttled)
    assert (explained.reason, explained.until) == (
        Reason.THROTTLED,
        driver.clock.wall() + timedelta(minutes=1),
    )
    queue.send(holder, held)
    gate.wait_reached()
    explained = queue.explain(held)
    assert (explained.reason, explained.held_by) == (Reason.CONCURRENCY, (holder,))
    assert reason(holder) is Reason.RUNNING
    blocker = driver.envelope(gate.pass_through)
    queue.send(blocker)
    gate.wait_reached()
    queue.send(waiting, second)
    assert queue.explain(second).position is not None
    assert queue.explain(second).position > queue.explain(waiting).position
    assert "position" in str(queue.explain(second))
    gate.open(2)


def test_explain_names_what_holds_longest_of_two_gates(driver: Driver, gate: Gate) -> None:
    limits: dict[str, Any] = {"rates": {"slow": "1/min"}, "concurrency": {"one": 1}}
    queue: Any = driver.queue(workers=2, rate="1/s", **limits)
    throttled = driver.envelope(type="slow")
    queue.send(driver.envelope(type="slow"), throttled)
    assert queue.join(0.01) is False
    assert queue.explain(throttled).until == driver.clock.wall() + timedelta(minutes=1)
    driver.advance(1)
    held = driver.envelope(type="one")
    queue.send(driver.envelope(gate.pass_through, type="one"), held)
    gate.wait_reached()
    assert queue.explain(held).reason is Reason.CONCURRENCY
    gate.open()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"rate": "5/y"}, "rate"),
        ({"rate": 5}, "rate"),
        ({"rate": "0/s"}, "rate"),
        ({"rates": {"t": "fast"}}, r"rates\['t'\]"),
        ({"rates": "5/s"}, "rates"),
        ({"rates": {"": "5/s"}}, "rates"),
        ({"rates": {5: "5/s"}}, "rates"),
        ({"concurrency": {"t": 0}}, r"concurrency\['t'\]"),
        ({"concurrency": {"t": 1.5}}, r"concurrency\['t'\]"),
        ({"concurrency": 5}, "concurrency"),
    ],
)
def test_a_wrong_limit_is_refused_by_name(driver: Driver, options: dict[str, Any], field: str) -> None:
    with pytest.raises(BadFieldsError, match=field):
        driver.queue(start=False, **options)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("5/s", Rate(5)),
        ("100/min", Rate(100, per=60)),
        ("2.5/h", Rate(2.5, per=3600)),
        (" 1 / d ", Rate(1, per=timedelta(days=1))),
    ],
)
def test_a_rate_may_be_a_text(text: str, rate: Rate) -> None:
    assert Rate.of("rate", text) == rate


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": float("inf")}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"limit": 5, "per": 0}, "per"),
        ({"limit": 5, "per": float("nan")}, "per"),
        ({"limit": 5, "burst": 0}, "burst"),
        ({"limit": 5, "burst": 1.5}, "burst"),
    ],
)
def test_a_wrong_rate_is_refused_by_name(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(BadFieldsError, match=field):
        Rate(**wrong)


def test_thousands_at_a_high_rate_all_start(driver: Driver) -> None:
    """A gate that opens between a look and the next must not lose a worker."""
    queue = driver.queue(workers=2, rate=Rate(20_000, burst=1), clock=SystemClock())
    queue.send(*[driver.envelope() for _ in range(600)])
    assert queue.join(LIMIT)
    assert queue.stats().done == 600


def test_advance_goes_on_though_all_workers_wait_for_the_clock_and_a_gate_is_open(driver: Driver) -> None:
    queue = driver.queue(workers=1, rate="10/s")
    queue.send(driver.envelope(lambda ctx, envelope: ctx.wait(10)), driver.envelope())
    driver.advance(20)
    assert queue.stats().done == 2


def test_attempts_go_on_over_a_rate_limited_run(driver: Driver) -> None:
    from rate_envelope_queue import retry_after

    attempts: list[int] = []
    raises = iter([ValueError(), ValueError(), RateLimited(3), ValueError()])

    def work(ctx: Context, envelope: Envelope[Any]) -> None:
        attempts.append(ctx.attempt)
        for error in raises:
            raise error

    queue = driver.queue()
    queue.send(driver.envelope(work, failure_hook=lambda ctx, envelope, error: retry_after(1)))
    driver.advance(30)
    assert attempts == [1, 2, 3, 3, 4]


def test_throttled_types_start_in_order_of_arrival(driver: Driver) -> None:
    starts: list[Any] = []
    kinds = [f"t{i}" for i in range(8)]
    queue = driver.queue(workers=1, rates=dict.fromkeys(kinds, "1/s"))
    queue.send(*[noting(driver, starts, type=kind) for kind in kinds for _ in range(2)])
    driver.advance(5)
    assert [kind for kind, at in starts if at == 1] == kinds
