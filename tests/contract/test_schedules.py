"""Schedules in the queue: fixed rate, jitter, cron, and clocks that are set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from rate_envelope_queue import Context, Cron, Envelope, Every

from ..support.waiting import LIMIT
from .conftest import Driver


def noting(driver: Driver, ran: list[Any], **options: Any) -> Envelope[Any]:
    return driver.envelope(lambda ctx, envelope: ran.append(driver.clock.now()), **options)


def test_a_fixed_rate_keeps_the_beat_though_runs_take_time(driver: Driver) -> None:
    ran: list[float] = []

    def work(ctx: Context, envelope: Envelope[Any]) -> None:
        ran.append(driver.clock.now())
        ctx.wait(3)

    queue = driver.queue()
    queue.send(driver.envelope(work, schedule=Every(10, fixed_rate=True)))
    driver.advance(35)
    assert ran == [0, 10, 20, 30]


def test_a_fixed_rate_skips_the_ticks_that_it_missed(driver: Driver) -> None:
    ran: list[float] = []

    def work(ctx: Context, envelope: Envelope[Any]) -> None:
        ran.append(driver.clock.now())
        if len(ran) == 2:
            ctx.wait(25)

    queue = driver.queue()
    queue.send(driver.envelope(work, schedule=Every(10, fixed_rate=True)))
    driver.advance(55)
    assert ran == [0, 10, 40, 50]


def test_jitter_adds_up_to_so_many_seconds(driver: Driver) -> None:
    ran: list[float] = []
    queue = driver.queue()
    queue.send(noting(driver, ran, schedule=Every(10, jitter=5)))
    driver.advance(300)
    gaps = [later - earlier for earlier, later in pairwise(ran)]
    assert all(10 <= gap <= 15 for gap in gaps)
    assert len(set(gaps)) > 1


def test_a_schedule_made_from_every_is_asked_for_each_tick(driver: Driver) -> None:
    class Doubling(Every):
        def next_due(self, now: float, *_: Any) -> tuple[float, None]:
            return 2 * now or 1.0, None

    ran: list[float] = []
    queue = driver.queue()
    queue.send(noting(driver, ran, schedule=Doubling(10)))
    driver.advance(10)
    assert ran == [0, 1, 2, 4, 8]


def test_cron_runs_at_its_next_match_and_then_at_each(driver: Driver) -> None:
    ran: list[float] = []
    queue = driver.queue()  # the clock starts at midnight UTC
    queue.send(noting(driver, ran, schedule=Cron("30 * * * *")))
    assert (queue.stats().delayed, queue.stats().ready) == (1, 0)
    driver.advance("4 hours")
    assert ran == [1800 + 3600 * i for i in range(4)]


def test_cron_sent_with_a_delay_runs_at_the_first_match_after_it(driver: Driver) -> None:
    ran: list[float] = []
    queue = driver.queue()
    queue.send(noting(driver, ran, schedule=Cron("0 * * * *")), delay=3600 + 60)
    driver.advance("3 hours")
    assert ran == [7200, 10800]


def test_a_waiting_cron_sent_again_runs_now_once_and_its_schedule_goes_on(driver: Driver) -> None:
    ran: list[float] = []
    queue = driver.queue()
    envelope = noting(driver, ran, schedule=Cron("0 * * * *"))
    queue.send(envelope)
    driver.advance(600)
    queue.send(envelope)
    assert queue.join(LIMIT)
    driver.advance("2 hours")
    assert ran == [600, 3600, 7200]
    assert queue.occupied == 1


def test_cron_may_have_any_deadline(driver: Driver) -> None:
    assert driver.envelope(schedule=Cron("* * * * *"), deadline=86400).deadline == 86400


def test_a_daily_cron_in_berlin_over_the_change_of_clocks(driver: Driver) -> None:
    walls: list[datetime] = []
    driver.clock._epoch = datetime(2026, 3, 27, 12, tzinfo=UTC)
    queue = driver.queue()
    schedule = Cron("30 2 * * *", tz="Europe/Berlin")  # skipped on 29 March
    queue.send(driver.envelope(lambda ctx, envelope: walls.append(driver.clock.wall()), schedule=schedule))
    driver.advance("4 days")
    assert [wall.date().day for wall in walls] == [28, 29, 30, 31]


def test_a_wall_clock_that_is_set_moves_cron_and_nothing_else(driver: Driver) -> None:
    by_cron: list[float] = []
    by_interval: list[float] = []
    queue: Any = driver.queue()
    queue.send(noting(driver, by_cron, schedule=Cron("0 * * * *")))
    queue.send(noting(driver, by_interval, interval=1000))
    driver.advance(600)  # 00:10
    driver.clock._epoch += timedelta(
        days=1, minutes=30
    )  # a day and half an hour ahead: 00:40 of the next day
    queue._poll()
    driver.advance(1800)
    assert by_cron == [1800], "one o'clock is twenty minutes away now"
    assert by_interval == [0, 1000, 2000]
    driver.clock._epoch -= timedelta(hours=1)  # and an hour back: from 01:10 to 00:10
    queue._poll()
    driver.advance(3600)
    assert by_cron == [1800, 2400 + 3000]


def test_a_cron_that_took_the_key_of_a_running_one_follows_a_wall_clock_that_is_set(driver: Driver) -> None:
    ran: list[float] = []
    queue: Any = driver.queue()
    cron = noting(driver, ran, schedule=Cron("0 * * * *"), key="k")
    queue.send(driver.envelope(lambda ctx, envelope: ctx.wait(60), key="k"))
    driver.advance(30)
    queue.send(cron)
    driver.advance(570)  # 00:10
    driver.clock._epoch += timedelta(minutes=30)  # 00:40
    queue._poll()
    driver.advance(1800)
    assert ran == [60, 1800]


def test_a_cron_survives_a_stop_and_a_start(driver: Driver) -> None:
    ran: list[float] = []
    queue = driver.queue()
    queue.send(noting(driver, ran, schedule=Cron("0 * * * *")))
    driver.advance(3700)
    assert queue.stop(LIMIT)
    queue.start()
    driver.advance(3600)
    assert ran == [3600, 7200]
