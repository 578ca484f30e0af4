"""Simulation: held against theory, against a naive model, and against a real queue."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rate_envelope_queue import BadFieldsError, Context, Envelope, Rate, RateEnvelopeQueue
from rate_envelope_queue._checks import Seconds
from rate_envelope_queue.core.gates import _LATENESS
from rate_envelope_queue.core.run import Run
from rate_envelope_queue.core.workqueue import WorkQueue
from rate_envelope_queue.simulation import Arrival, Share, Simulation, Waits, simulate
from rate_envelope_queue.testing import ManualClock

FOREVER = 10**9


@contextmanager
def watched() -> Iterator[dict[int, float]]:
    """When each arrival starts, by its place in the sorted trace."""
    starts: dict[int, float] = {}
    take = WorkQueue.take

    def noting(core: WorkQueue, now: float, finished: Run | None = None) -> Run | None:
        run = take(core, now, finished)
        if run is not None:
            starts[run.envelope.payload] = now
        return run

    with mock.patch.object(WorkQueue, "take", noting):
        yield starts


def poisson(rng: random.Random, rate: float, n: int) -> list[float]:
    """Instants with exponential gaps."""
    at, instants = 0.0, []
    for _ in range(n):
        at += rng.expovariate(rate)
        instants.append(at)
    return instants


# Theory


def test_one_worker_that_is_too_slow_falls_behind_by_the_same_each_time() -> None:
    """D/D/1: one a second, a second and a half each."""
    result = simulate({"workers": 1}, range(100), 1.5)
    assert result == Simulation(
        arrived=100,
        served=100,
        rejected=0,
        waits=Waits(p50=24.5, p95=47.0, p99=49.0, max=49.5, mean=24.75),
        utilisation=1.0,
        makespan=150.0,
        longest_line=33,
        per_type={"": Share(100, 100, 0, Waits(24.5, 47.0, 49.0, 49.5, 24.75))},
    )


def test_one_worker_that_is_fast_enough_lets_nobody_wait() -> None:
    result = simulate({"workers": 1}, range(100), 0.75)
    assert (result.waits, result.longest_line) == (Waits(), 0)
    assert (result.makespan, result.utilisation) == (99.75, 75 / 99.75)


def test_random_arrivals_and_times_wait_as_theory_says() -> None:
    """M/M/1 at half load: the mean wait is rho / (mu - lambda)."""
    arrivals = poisson(random.Random(7), 0.5, 60_000)
    result = simulate({"workers": 1}, arrivals, lambda _, rng: rng.expovariate(1), seed=7)
    assert result.waits.mean == pytest.approx(0.5 / (1 - 0.5), rel=0.05)
    assert result.utilisation == pytest.approx(0.5, rel=0.02)
    assert result.waits.p95 == pytest.approx(math.log(0.5 / 0.05) / 0.5, rel=0.05)


def test_several_workers_wait_as_theory_says() -> None:
    """M/M/3 at load 2: Erlang's C is 4/9, and the mean wait C / (c * mu - lambda)."""
    arrivals = poisson(random.Random(3), 2, 60_000)
    result = simulate({"workers": 3}, arrivals, lambda _, rng: rng.expovariate(1), seed=3)
    assert result.waits.mean == pytest.approx((4 / 9) / (3 - 2), rel=0.05)
    assert result.utilisation == pytest.approx(2 / 3, rel=0.02)


def test_a_full_system_rejects_as_theory_says() -> None:
    """M/M/2/2: Erlang's B for load 1 and two servers is 1/5."""
    arrivals = poisson(random.Random(5), 1, 60_000)
    result = simulate({"workers": 2, "capacity": 2}, arrivals, lambda _, rng: rng.expovariate(1), seed=5)
    assert result.rejected / result.arrived == pytest.approx(1 / 5, rel=0.03)
    assert result.waits.max == 0


# The naive model: whole seconds, one after the other


def naive(
    options: dict[str, Any], trace: list[Arrival], services: list[int]
) -> tuple[dict[int, int], list[int]]:
    """When each arrival starts, and which are rejected, found by looking at everything each second."""
    limits = {type: Bucket(options.get("rates", {}).get(type)) for type in TYPES}
    whole = Bucket(options.get("rate"))
    starts: dict[int, int] = {}
    rejected, waiting, running = [], list[int](), dict[int, int]()
    coming, now = 0, -1
    while coming < len(trace) or waiting or running:
        now += 1
        is_settled = False
        while not is_settled:
            is_settled = True
            running = {i: end for i, end in running.items() if end > now}
            while coming < len(trace) and trace[coming].at == now:
                if options.get("capacity") and len(waiting) + len(running) >= options["capacity"]:
                    rejected.append(coming)
                else:
                    waiting.append(coming)
                coming += 1
            for i in sorted(waiting, key=lambda i: (-trace[i].priority, i)):
                type = trace[i].type
                same = sum(trace[other].type == type for other in running)
                if (
                    len(running) < options["workers"]
                    and same < options.get("concurrency", {}).get(type, FOREVER)
                    and limits[type].has_token(now)
                    and whole.has_token(now)
                ):
                    limits[type].spend()
                    whole.spend()
                    waiting.remove(i)
                    starts[i], running[i] = now, now + services[i]
                    is_settled = services[i] > 0 and is_settled
    return starts, rejected


class Bucket:
    """A token bucket in whole seconds: one start costs the interval, and it holds as much for each of the burst."""

    def __init__(self, rate: Rate | None) -> None:
        self.interval = 0 if rate is None else int(rate.interval)
        self.full = self.level = self.interval * (1 if rate is None else rate.burst)
        self.seen = 0

    def has_token(self, now: int) -> bool:
        self.level = min(self.full, self.level + now - self.seen)
        self.seen = now
        return self.level >= self.interval

    def spend(self) -> None:
        self.level -= self.interval


TYPES = ("", "a", "b", "c")
RATES = st.builds(lambda interval, burst: Rate(1, interval, burst), st.integers(1, 4), st.integers(1, 3))
ARRIVALS = st.builds(
    Arrival, st.integers(0, 30).map(float), st.sampled_from(TYPES), st.sampled_from((0, 0, 0, 1, -1))
)
SERVICES = st.lists(st.integers(0, 6), min_size=30, max_size=30)


def compare(options: dict[str, Any], arrivals: list[Arrival], services: list[int]) -> None:
    trace = sorted(arrivals, key=lambda arrival: arrival.at)
    times = iter(services)
    with watched() as starts:
        result = simulate(options, arrivals, lambda _: next(times))
    expected, rejected = naive(options, trace, services)
    assert starts == expected
    assert (result.arrived, result.served, result.rejected) == (len(trace), len(starts), len(rejected))
    waits = [expected[i] - trace[i].at for i in expected]
    assert result.waits == Waits.of(waits)
    for type, share in result.per_type.items():
        assert share.waits == Waits.of(expected[i] - trace[i].at for i in expected if trace[i].type == type)
        assert share.rejected == sum(trace[i].type == type for i in rejected)
    ended_at = max(
        [expected[i] + services[i] for i in expected] + [arrival.at for arrival in trace], default=0
    )
    assert result.makespan == (ended_at - trace[0].at if trace else 0)
    busy = sum(services[i] for i in expected)
    assert result.utilisation * options["workers"] * result.makespan == pytest.approx(busy)


@settings(deadline=None)
@given(
    workers=st.integers(1, 4),
    capacity=st.integers(0, 6),
    arrivals=st.lists(ARRIVALS, max_size=30),
    services=SERVICES,
)
def test_workers_capacity_and_priorities_agree_with_the_naive_model(
    workers: int, capacity: int, arrivals: list[Arrival], services: list[int]
) -> None:
    compare({"workers": workers, "capacity": capacity}, arrivals, services)


@settings(deadline=None)
@given(
    workers=st.integers(1, 4),
    capacity=st.integers(0, 8),
    rate=st.none() | RATES,
    rates=st.dictionaries(st.sampled_from(TYPES[1:]), RATES),
    concurrency=st.dictionaries(st.sampled_from(TYPES[1:]), st.integers(1, 2)),
    arrivals=st.lists(ARRIVALS, max_size=30),
    services=SERVICES,
)
def test_rates_and_concurrency_agree_with_the_naive_model(
    workers: int,
    capacity: int,
    rate: Rate | None,
    rates: dict[str, Rate],
    concurrency: dict[str, int],
    arrivals: list[Arrival],
    services: list[int],
) -> None:
    options = {
        "workers": workers,
        "capacity": capacity,
        "rate": rate,
        "rates": rates,
        "concurrency": concurrency,
    }
    compare(options, arrivals, services)


# A real queue


def test_a_real_queue_starts_its_envelopes_when_the_simulation_says() -> None:
    """The same trace, on threads and a manual clock."""
    rng = random.Random(11)
    options: dict[str, Any] = {
        "workers": 2,
        "rate": Rate(2, per=1, burst=2),
        "rates": {"mail": "1/s"},
        "concurrency": {"report": 1},
    }
    trace = [Arrival(at, rng.choice(["mail", "report", ""])) for at in poisson(rng, 1.2, 40)]
    services = [rng.uniform(0.1, 2) for _ in trace]
    clock, really = ManualClock(), dict[int, float]()

    def serve(ctx: Context, envelope: Envelope[int]) -> None:
        really[envelope.payload] = clock.now()
        ctx.wait(services[envelope.payload])

    with RateEnvelopeQueue("real", clock=clock, **options) as queue:
        for index, arrival in enumerate(trace):
            clock.advance(arrival.at - clock.now())
            queue.send(Envelope(serve, type=arrival.type, payload=index))
        clock.advance("5 min")

    times = iter(services)
    with watched() as simulated:
        simulate(options, trace, lambda _: next(times))
    assert really == pytest.approx(simulated)


# Rates, capacity, priorities, concurrency, one by one


@settings(deadline=None)
@given(
    limit=st.floats(0.1, 50),
    per=st.floats(0.1, 60),
    burst=st.integers(1, 5),
    instants=st.lists(st.floats(0, 100), min_size=1, max_size=40),
)
def test_a_rate_is_never_exceeded(limit: float, per: float, burst: int, instants: list[float]) -> None:
    """In any stretch of time no more start than the burst and what the rate lets in meanwhile."""
    rate = Rate(limit, per, burst)
    with watched() as starts:
        simulate({"workers": 3, "rate": rate}, instants, 0.1)
    at = sorted(starts.values())
    for first in range(len(at)):
        for last in range(first + burst, len(at)):
            allowed = (last - first + 1 - burst) * rate.interval
            assert at[last] - at[first] >= allowed - _LATENESS - 1e-6


def test_a_rate_paces_evenly_and_the_burst_goes_at_once() -> None:
    with watched() as starts:
        simulate({"workers": 9, "rate": Rate(2, per=1, burst=3)}, [0] * 6, 1)
    assert list(starts.values()) == [0, 0, 0, 0.5, 1.0, 1.5]


def test_a_throttled_type_does_not_hold_up_another() -> None:
    arrivals = [Arrival(0, "slow"), Arrival(0, "slow"), Arrival(1, "fast")]
    result = simulate({"workers": 1, "rates": {"slow": "1/min"}}, arrivals, 1)
    assert {type: waits.max for type, waits in result.waits_by_type.items()} == {"fast": 0, "slow": 60}


def test_throttled_types_start_in_order_of_arrival_when_their_gates_open_together() -> None:
    """One worker is free when six gates open at once; all six have waited equally long."""
    types = ["b", "f", "a", "e", "d", "c"]
    arrivals = [Arrival(at, type) for at in (0, 0.5) for type in types] + [Arrival(0.75, "busy")] * 5
    with watched() as starts:
        simulate(
            {"workers": 6, "rates": dict.fromkeys(types, "1/s")},
            arrivals,
            lambda arrival: 60 if arrival.type == "busy" else 0.125,
        )
    assert [starts[index] for index in range(6, 12)] == [1, 1.125, 1.25, 1.375, 1.5, 1.625]


def test_throttled_types_start_in_order_of_arrival_when_one_has_waited_before() -> None:
    """A 'b' and an 'a' come together, the 'b' first; that another 'a' has waited before changes nothing."""
    arrivals = [
        *[Arrival(0, "a"), Arrival(0, "b"), Arrival(0.5, "a")],
        *[Arrival(0.75, "b"), Arrival(0.75, "a"), Arrival(0.875, "busy")],
    ]
    services = {0: 0.125, 0.5: 1.5, 0.75: 0.125, 0.875: 60}
    with watched() as starts:
        simulate(
            {"workers": 2, "rates": {"a": "1/s", "b": "1/s"}},
            arrivals,
            lambda arrival: services[arrival.at],
        )
    assert (starts[2], starts[3], starts[4]) == (1, 2.5, 2.625)


def test_who_finds_the_queue_full_is_rejected() -> None:
    """Two run and one waits; the fourth and fifth find no room, the sixth comes just when one ends."""
    result = simulate({"workers": 2, "capacity": 3}, [0, 0, 1, 2, 3, 10], 10)
    assert (result.arrived, result.served, result.rejected) == (6, 4, 2)
    assert result.waits.max == 9
    assert result.longest_line == 1


def test_priorities_go_first_and_equal_ones_in_order() -> None:
    priorities = [0, 0, 5, -1, 5, 0]
    with watched() as starts:
        simulate({"workers": 1}, [Arrival(0, priority=priority) for priority in priorities], 1)
    assert list(starts) == [2, 4, 0, 1, 5, 3]


def test_concurrency_leaves_workers_to_other_types() -> None:
    arrivals = [Arrival(0, "big"), Arrival(0, "big"), Arrival(0, "small")]
    result = simulate({"workers": 3, "concurrency": {"big": 1}}, arrivals, 10)
    assert {type: waits.max for type, waits in result.waits_by_type.items()} == {"big": 10, "small": 0}


# The arguments


def test_service_times_are_the_same_for_each_arrival_whatever_the_options() -> None:
    """So that two what-ifs differ by their options and nothing else."""
    drawn: list[list[float]] = []

    def at_random(arrival: Arrival, rng: random.Random) -> float:
        drawn[-1].append(rng.random())
        return drawn[-1][-1]

    for options in ({"workers": 1, "capacity": 1}, {"workers": 9}):
        drawn.append([])
        simulate(options, [0] * 20, at_random, seed=4)
    assert drawn[0] == drawn[1]


def test_the_seed_decides() -> None:
    def once(seed: int) -> Simulation:
        return simulate({"workers": 2}, range(50), lambda _, rng: rng.uniform(0, 4), seed=seed)

    assert once(1) == once(1)
    assert once(1) != once(2)
    assert simulate({"workers": 2}, range(50), lambda _, rng: rng.uniform(0, 4)) == once(0)


@pytest.mark.parametrize(
    "service_time",
    [
        2,
        2.0,
        timedelta(seconds=2),
        lambda arrival: 2,
        lambda arrival: timedelta(seconds=2),
        lambda arrival, times=2: times,
        lambda arrival, rng: 2 + 0 * rng.random(),
        lambda *arguments: 2.0,
    ],
)
def test_a_service_time_may_be_a_number_or_a_function(service_time: Any) -> None:
    assert simulate({"workers": 1}, [0, 0], service_time).makespan == 4


def seen_by_service_time(arrivals: Iterable[Seconds | Arrival]) -> list[Arrival]:
    seen: list[Arrival] = []

    def noting(arrival: Arrival) -> int:
        seen.append(arrival)
        return 1

    simulate({"workers": 1}, arrivals, noting)
    return seen


def test_arrivals_may_come_in_any_order_and_shape() -> None:
    arrivals: list[Seconds | Arrival] = [3, Arrival(1.0), timedelta(seconds=2), 0.0]
    assert seen_by_service_time(iter(arrivals)) == [Arrival(0), Arrival(1), Arrival(2), Arrival(3)]


def test_equal_instants_keep_the_order_of_the_trace() -> None:
    arrivals = [Arrival(1, "b"), Arrival(1, "a"), Arrival(0, "c"), Arrival(1, "d")]
    assert [arrival.type for arrival in seen_by_service_time(arrivals)] == ["c", "b", "a", "d"]


def test_time_is_counted_from_the_first_arrival() -> None:
    result = simulate({"workers": 2}, [1_700_000_000, 1_700_000_001], 3)
    assert (result.makespan, result.utilisation) == (4, 6 / 8)


def test_nothing_comes_of_nothing() -> None:
    result = simulate({"workers": 1}, [], 1)
    assert result == Simulation(0, 0, 0, Waits(), 0.0, 0.0, 0, {})
    assert simulate({"workers": 1}, [5], 0) == Simulation(
        1, 1, 0, Waits(), 0.0, 0.0, 0, {"": Share(1, 1, 0, Waits())}
    )


@pytest.mark.parametrize(
    ("options", "arrivals", "service_time", "named"),
    [
        ({}, [], 1, "workers"),
        ({"workers": 0}, [], 1, "workers"),
        ({"workers": 1, "capacity": -1}, [], 1, "capacity"),
        ({"workers": 1, "rate": "fast"}, [], 1, "rate"),
        ({"workers": 1, "rates": {"a": 0}}, [], 1, r"rates\['a'\]"),
        ({"workers": 1, "concurrency": {"a": 0}}, [], 1, r"concurrency\['a'\]"),
        ({"workers": 1, "worker": 1, "limiter": None}, [], 1, "'worker', 'limiter'"),
        ([("workers", 1)], [], 1, "queue_options"),
        ({"workers": 1}, 7, 1, "arrivals"),
        ({"workers": 1}, [0, -1], 1, r"arrivals\[1\]"),
        ({"workers": 1}, [-0.5], 1, r"arrivals\[0\]"),
        ({"workers": 1}, [math.nan], 1, r"arrivals\[0\]"),
        ({"workers": 1}, [math.inf], 1, r"arrivals\[0\]"),
        ({"workers": 1}, ["now"], 1, r"arrivals\[0\]"),
        ({"workers": 1}, [(1, "mail")], 1, r"arrivals\[0\]"),
        ({"workers": 1}, [Arrival(-1)], 1, r"arrivals\[0\]\.at"),
        ({"workers": 1}, [Arrival(math.nan)], 1, r"arrivals\[0\]\.at"),
        ({"workers": 1}, [Arrival(0, None)], 1, r"arrivals\[0\]\.type"),  # type: ignore[arg-type]
        ({"workers": 1}, [Arrival(0, "", 0.5)], 1, r"arrivals\[0\]\.priority"),  # type: ignore[arg-type]
        ({"workers": 1}, [0], -1, "service_time"),
        ({"workers": 1}, [0], "long", "service_time"),
        ({"workers": 1}, [0], lambda arrival: -0.5, "service_time of Arrival"),
        ({"workers": 1}, [0], lambda arrival: math.nan, "service_time of Arrival"),
        ({"workers": 1}, [0], lambda arrival: None, "service_time of Arrival"),
    ],
)
def test_what_is_wrong_is_refused_by_name(options: Any, arrivals: Any, service_time: Any, named: str) -> None:
    with pytest.raises(BadFieldsError, match=named):
        simulate(options, arrivals, service_time)


# The result


def test_percentiles_are_waits_that_did_occur() -> None:
    assert Waits.of(range(1, 101)) == Waits(50, 95, 99, 100, 50.5)
    assert Waits.of([3, 1]) == Waits(1, 3, 3, 3, 2)
    assert Waits.of([]) == Waits(0, 0, 0, 0, 0)


def test_the_result_is_a_value() -> None:
    result = simulate({"workers": 1}, [0], 1)
    with pytest.raises(FrozenInstanceError):
        result.arrived = 2  # type: ignore[misc]


def test_the_text_is_a_table() -> None:
    arrivals = [*(Arrival(0, "mail") for _ in range(1500)), Arrival(2, "report"), Arrival(3)]
    result = simulate({"workers": 1, "capacity": 1001}, arrivals, 1)
    assert str(result).splitlines() == [
        "type    arrived  served  rejected  wait p50      p95      p99        max     mean",
        "(none)        1       1         0   999.000  999.000  999.000    999.000  999.000",
        "mail      1,500   1,001       499   500.000  950.000  990.000  1,000.000  500.000",
        "report        1       1         0   999.000  999.000  999.000    999.000  999.000",
        "all       1,502   1,003       499   501.000  952.000  992.000  1,000.000  500.995",
        "waits in seconds; utilisation 100.0%, longest line 1,000, makespan 1,003.000 s",
    ]


def test_the_text_of_one_type_is_one_row() -> None:
    assert len(str(simulate({"workers": 1}, [Arrival(0, "mail")], 1)).splitlines()) == 3


# Speed


def test_a_day_of_a_hundred_thousand_takes_a_moment() -> None:
    """About half a second; three leave room for a slow machine."""
    rng = random.Random(1)
    arrivals = poisson(rng, 100_000 / 86_400, 100_000)
    began = time.process_time()
    result = simulate({"workers": 4, "capacity": 1000}, arrivals, lambda _, rng: rng.expovariate(1 / 3))
    assert time.process_time() - began < 3
    assert result.served == 100_000
