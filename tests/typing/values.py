"""Rates, schedules, limiters, clocks and the simulation as a user writes them."""

from __future__ import annotations

import random
from collections.abc import Hashable
from datetime import UTC, datetime, timedelta
from typing import assert_type
from zoneinfo import ZoneInfo

from rate_envelope_queue import (
    Clock,
    Cron,
    Every,
    ExponentialBackoff,
    FastSlow,
    Limiter,
    MaxOf,
    Rate,
    RateEnvelopeQueue,
    SystemClock,
    TokenBucket,
    WithMaxWait,
)
from rate_envelope_queue.simulation import Arrival, Simulation, Waits, simulate
from rate_envelope_queue.testing import AsyncManualClock, ManualClock


def rates() -> None:
    rate = Rate(5, per=timedelta(minutes=1), burst=10)
    assert_type(rate, Rate)
    assert_type(rate.limit, float)
    assert_type(rate.per, float)
    assert_type(rate.burst, int)
    assert_type(rate.interval, float)


def schedules() -> None:
    every = Every(timedelta(hours=1), jitter=5, fixed_rate=True)
    assert_type(every.seconds, float)
    assert_type(every.preview(3), list[datetime])
    assert_type(every.next_after(datetime.now(UTC)), datetime)
    cron = Cron("0 9 * * mon-fri", tz=ZoneInfo("Europe/Berlin"))
    assert_type(cron.expr, str)
    assert_type(cron.preview(3, start=datetime.now(UTC)), list[datetime])
    assert_type(Cron("0 9 * * *", tz="UTC").next_after(datetime.now(UTC)), datetime)


class Patient:
    """A limiter of one's own."""

    def when(self, item: Hashable) -> float:
        return 60.0

    def forget(self, item: Hashable) -> None: ...

    def retries(self, item: Hashable) -> int:
        return 0


def limiters() -> list[Limiter]:
    bucket = TokenBucket(5, burst=10)
    assert_type(bucket.when("item"), float)
    assert_type(bucket.retries(("a", 1)), int)
    RateEnvelopeQueue("q", workers=1, on_periodic_error="backoff", limiter=Patient())
    return [
        Patient(),
        MaxOf(ExponentialBackoff(1, 30), FastSlow(1, 60, 3), bucket),
        WithMaxWait(ExponentialBackoff(timedelta(seconds=1), timedelta(minutes=5)), 10),
    ]


def clocks_for_threads() -> Clock:
    clock = ManualClock(start=datetime(2026, 3, 2, tzinfo=UTC))
    assert_type(clock.advance("3 days"), None)
    clock.advance(2.5)
    clock.advance(timedelta(minutes=1))
    assert_type(clock.now(), float)
    assert_type(clock.wall(), datetime)
    RateEnvelopeQueue("q", workers=1, clock=clock)
    RateEnvelopeQueue("q", workers=1, clock=SystemClock())
    return clock


async def clocks_for_asyncio() -> Clock:
    clock = AsyncManualClock()
    assert_type(await clock.advance("90 s"), None)
    await clock.sleep(timedelta(seconds=1))
    return clock


def at_random(arrival: Arrival, rng: random.Random) -> float:
    return rng.expovariate(1) * (2 if arrival.type == "report" else 1)


def by_type(arrival: Arrival) -> timedelta:
    return timedelta(seconds=arrival.priority)


def simulations() -> None:
    options = {
        "workers": 4,
        "capacity": 100,
        "rate": "5/s",
        "rates": {"mail": Rate(1)},
        "concurrency": {"mail": 2},
    }
    result = simulate(options, [0, 1.5, timedelta(minutes=1), Arrival(3.0, "mail", priority=1)], 2.5)
    assert_type(result, Simulation)
    assert_type(result.waits, Waits)
    assert_type(result.waits.p99, float)
    assert_type(result.waits_by_type, dict[str, Waits])
    assert_type(result.per_type["mail"].rejected, int)
    assert_type(result.utilisation, float)
    simulate({"workers": 1}, [1.0, 2.0], at_random, seed=3)
    simulate({"workers": 1}, range(10), by_type)
    simulate({"workers": 1}, [Arrival(0.0)], lambda arrival: 2.0 * arrival.priority)
    simulate({"workers": 1}, [Arrival(0.0)], timedelta(seconds=2))
