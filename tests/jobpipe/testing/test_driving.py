"""How a test runs jobs: all that is due, what comes due while the clock moves, or one."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobpipe import BadInputError, Fail, Job, Jobpipe, RateLimited, Retry, Snooze, current_job
from jobpipe.stores.base import Store
from jobpipe.testing import JobTester

from ...support.waiting import run

START = datetime(2026, 3, 1, tzinfo=UTC)


def statuses(jobs: list[Job]) -> list[str]:
    return [job.status.value for job in jobs]


def record(pipe: Jobpipe, name: str, jobs: JobTester, **options: Any) -> list[float]:
    """Seconds from the start at which jobs of the type have run."""
    ran: list[float] = []

    @pipe.job(name, **options)
    async def handler() -> None:
        ran.append((jobs.now - START).total_seconds())

    return ran


def test_the_example_of_the_contract(pipe: Jobpipe) -> None:
    @pipe.job
    async def email(to: str, subject: str) -> None: ...

    async def place_order() -> None:
        await email.enqueue({"to": "ada@example.org", "subject": "Thanks"}, delay=3600)

    async def main() -> None:
        async with pipe.testing() as jobs:
            await place_order()
            jobs.assert_enqueued("email", payload={"to": "ada@example.org"}, delay=3600)
            jobs.assert_not_enqueued("sms")
            await jobs.advance("1 hour")
            assert [job.status for job in await jobs.drain()] == ["done"]

    run(main())


def test_drain_runs_what_is_due_and_what_that_enqueues(pipe: Jobpipe) -> None:
    @pipe.job
    async def parent(n: int) -> None:
        await pipe.enqueue("child", n)
        await pipe.enqueue("child", n, delay=1)

    @pipe.job
    def child(n: int) -> int:
        if n:
            pipe.enqueue_sync("child", n - 1)
        return n

    async def main() -> None:
        async with pipe.testing() as jobs:
            await parent.enqueue(2)
            before = jobs.now
            assert statuses(jobs.all) == ["queued"]
            drained = await jobs.drain()
            assert [(job.type, job.result) for job in drained] == [
                ("parent", None),
                ("child", 2),
                ("child", 1),
                ("child", 0),
            ]
            assert statuses(drained) == ["done"] * 4
            assert jobs.now == before
            assert statuses(jobs.of("child")) == ["done", "scheduled", "done", "done"]
            assert await jobs.drain() == []

    run(main())


def test_jobs_run_one_after_the_other_by_priority_and_age(pipe: Jobpipe) -> None:
    ran: list[str] = []

    @pipe.job
    async def slow(name: str) -> None:
        ran.append(f"{name} begins")
        await asyncio.sleep(0)
        ran.append(f"{name} ends")

    async def main() -> None:
        async with pipe.testing() as jobs:
            await slow.enqueue("b")
            await slow.enqueue("c")
            await slow.enqueue("a", priority=1)
            await jobs.drain()

    run(main())
    assert ran == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]


def test_several_workers_run_jobs_at_once(pipe: Jobpipe) -> None:
    met = asyncio.Event()

    @pipe.job
    async def wait() -> None:
        await met.wait()

    @pipe.job
    async def ring() -> None:
        met.set()

    async def main() -> None:
        async with pipe.testing(workers=2) as jobs:
            await wait.enqueue()
            await ring.enqueue()
            assert statuses(await jobs.drain()) == ["done", "done"]

    run(main())


def test_a_job_that_runs_is_seen_running(pipe: Jobpipe) -> None:
    seen: list[str] = []

    @pipe.job
    async def look() -> None:
        seen.append((await pipe.get(current_job().id)).status)

    async def main() -> None:
        async with pipe.testing() as jobs:
            for _ in range(3):
                await look.enqueue()
            await jobs.drain()

    run(main())
    assert seen == ["running"] * 3


# The clock


@pytest.mark.parametrize("by", ["1 hour", "60 min", 3600, 3600.0, timedelta(hours=1)])
def test_the_clock_takes_text_seconds_and_timedeltas(pipe: Jobpipe, by: Any) -> None:
    with pipe.testing(start=START) as jobs:
        jobs.advance_sync(by)
        assert jobs.now == START + timedelta(hours=1)


@pytest.mark.parametrize("by", ["soon", "1 fortnight", -1, "", None, float("nan")])
def test_a_wrong_duration_is_refused_before_anything_runs(pipe: Jobpipe, by: Any) -> None:
    with pipe.testing(start=START) as jobs:
        pipe.enqueue_sync("echo")
        with pytest.raises(BadInputError, match="by"):
            jobs.advance_sync(by)
        assert jobs.now == START
        assert statuses(jobs.all) == ["queued"]


def test_retries_come_at_their_times_until_the_job_has_failed(pipe: Jobpipe) -> None:
    failed: list[Job] = []
    pipe.on_failure(failed.append)
    jobs = pipe.testing(start=START)
    ran: list[float] = []

    @pipe.job(max_retries=3, base=10, jitter=False)
    async def broken() -> None:
        ran.append((jobs.now - START).total_seconds())
        raise ValueError("no")

    async def main() -> None:
        async with jobs:
            await broken.enqueue()
            assert statuses(await jobs.drain()) == ["scheduled"]
            await jobs.advance(10)
            assert ran == [0, 10]
            await jobs.advance("1 hour")
            (job,) = await jobs.drain()
            assert (job.status, job.attempts, len(job.history)) == ("failed", 4, 4)
            assert job.finished_at == START + timedelta(seconds=70)

    run(main())
    assert ran == [0, 10, 30, 70]
    assert [job.type for job in failed] == ["broken"]


def test_the_clock_waits_for_hooks_of_failed_jobs(pipe: Jobpipe) -> None:
    """Also where another worker is idle."""
    jobs = pipe.testing(start=START, workers=2)
    may_end = threading.Event()

    @pipe.on_failure
    def tell(job: Job) -> None:
        assert may_end.wait(60)

    @pipe.job
    async def broken() -> None:
        threading.Timer(0.1, may_end.set).start()
        raise Fail("no")

    ran = record(pipe, "later", jobs)

    async def main() -> None:
        async with jobs:
            await broken.enqueue()
            await pipe.enqueue("later", delay=5)
            await jobs.advance(10)
            assert jobs.of("broken")[0].finished_at == START

    run(main())
    assert ran == [5]


def test_signals_of_handlers_hold(pipe: Jobpipe) -> None:
    jobs = pipe.testing(start=START)
    ran: list[str] = []

    @pipe.job
    async def signal(kind: str) -> str:
        ran.append(kind)
        if ran.count(kind) > 1:
            return kind
        raise {"snooze": Snooze(60), "retry": Retry(120), "fail": Fail("no")}[kind]

    async def main() -> None:
        async with jobs:
            for kind in ("snooze", "retry", "fail"):
                await signal.enqueue(kind)
            assert statuses(await jobs.drain()) == ["scheduled", "scheduled", "failed"]
            await jobs.advance(60)
            assert statuses(jobs.all) == ["done", "scheduled", "failed"]
            await jobs.advance(60)
            assert statuses(jobs.all) == ["done", "done", "failed"]

    run(main())


def test_schedules_tick_at_their_times(pipe: Jobpipe) -> None:
    jobs = pipe.testing(start=START)
    ran: list[tuple[str, datetime]] = []

    @pipe.every(1800)
    async def half_hourly() -> None:
        ran.append(("half", jobs.now))

    @pipe.cron("15 6 * * *", tz="Europe/Paris")
    def daily() -> None:
        ran.append(("daily", jobs.now))

    with jobs:
        jobs.advance_sync("1 day")
    assert [at for name, at in ran if name == "half"] == [
        START + timedelta(minutes=30) * n for n in range(1, 49)
    ]
    assert [at for name, at in ran if name == "daily"] == [START + timedelta(hours=5, minutes=15)]
    assert ran == sorted(ran, key=lambda each: each[1])


def test_rates_let_jobs_start_one_at_a_time(pipe: Jobpipe) -> None:
    jobs = pipe.testing(start=START)
    ran = record(pipe, "paced", jobs, rate="6/min")
    with jobs:
        for _ in range(4):
            pipe.enqueue_sync("paced")
        jobs.drain_sync()
        first = len(ran)
        jobs.advance_sync("1 minute")
    assert len(ran) == 4
    assert first < 4
    assert all(
        later - earlier == pytest.approx(10)
        for earlier, later in zip(ran[first:], ran[first + 1 :], strict=False)
    )


def test_limits_of_a_queue_and_cooling_types_hold(pipe: Jobpipe) -> None:
    jobs = pipe.testing(start=START)
    pipe.queue("mail", rate="1/min")
    ran = record(pipe, "mailed", jobs, queue="mail")
    calls: list[float] = []

    @pipe.job
    async def api(n: int) -> None:
        calls.append((jobs.now - START).total_seconds())
        if len(calls) == 1:
            raise RateLimited(retry_after=300)

    with jobs:
        for n in range(2):
            pipe.enqueue_sync("mailed")
            api.enqueue_sync(n)
        jobs.drain_sync()
        assert (ran, calls) == ([0], [0])
        jobs.advance_sync("10 min")
    assert ran == [0, pytest.approx(60)]
    assert calls == [0, pytest.approx(300), pytest.approx(300)]


def test_what_has_not_begun_expires_at_its_time(pipe: Jobpipe) -> None:
    with pipe.testing(start=START) as jobs:
        pipe.pause_sync("default")
        pipe.enqueue_sync("echo", expires_in=60)
        jobs.advance_sync("1 hour")
        (job,) = jobs.all
        assert (job.status, job.finished_at) == ("expired", START + timedelta(seconds=60))
        assert jobs.drain_sync() == []


def test_a_job_whose_worker_is_lost_runs_when_its_lease_has_ended(pipe: Jobpipe) -> None:
    jobs = pipe.testing(start=START)
    ran = record(pipe, "work", jobs)

    def lose(store: Store) -> None:
        assert len(store.claim("another", ["work"], 1, 30).claims) == 1

    with jobs:
        pipe.enqueue_sync("work")
        lose(pipe.store)
        assert jobs.drain_sync() == []
        jobs.advance_sync(29)
        assert ran == []
        jobs.advance_sync("1 hour")
        assert [(job.status, job.attempts) for job in jobs.drain_sync()] == [("done", 2)]
    assert ran == [30]


def test_a_handler_may_wait_for_the_clock(pipe: Jobpipe) -> None:
    """It keeps its lease meanwhile, and its slot."""
    jobs = pipe.testing(start=START)
    woken: list[float] = []

    @pipe.job
    def wait() -> None:
        current_job().context.wait(3600)
        woken.append((jobs.now - START).total_seconds())

    async def main() -> None:
        async with jobs:
            await wait.enqueue()
            assert statuses(await jobs.drain()) == ["running"]
            await jobs.advance("2 hours")
            assert statuses(jobs.all) == ["done"]
            assert jobs.all[0].attempts == 1

    run(main())
    assert woken == [3600]


def test_a_handler_that_waits_for_the_clock_ends_with_the_block(pipe: Jobpipe) -> None:
    ended = threading.Event()

    @pipe.job
    def wait() -> None:
        current_job().context.wait(3600)
        ended.set()

    async def main() -> None:
        with pipe.testing() as jobs:
            await wait.enqueue()
            await jobs.drain()
        assert ended.wait(60)

    run(main())


def test_in_the_thread_of_the_test_it_can_wait_as_long_as_the_clock_moves(pipe: Jobpipe) -> None:
    jobs = pipe.testing(start=START)
    woken: list[float] = []

    @pipe.job(base=7200, cap=7200, jitter=False)
    def wait() -> None:
        assert not current_job().context.wait(3600)
        woken.append((jobs.now - START).total_seconds())

    with jobs:
        wait.enqueue_sync()
        (job,) = jobs.drain_sync()
        assert job.status == "scheduled"
        assert job.error is not None
        assert "which stands still" in job.error.message
        jobs.advance_sync("4 hours")
        assert [(job.status, job.attempts) for job in jobs.all] == [("done", 2)]
        assert jobs.now == START + timedelta(hours=4)
    assert woken == [3 * 3600]


def test_a_deadline_is_by_the_clock(pipe: Jobpipe) -> None:
    @pipe.job(deadline=60, max_retries=0)
    def wait() -> None:
        assert current_job().context.remaining() == 60
        current_job().context.wait(3600)

    with pipe.testing(start=START) as jobs:
        wait.enqueue_sync()
        jobs.advance_sync("1 hour")
        (job,) = jobs.all
        assert (job.status, job.finished_at) == ("failed", START + timedelta(seconds=60))
        assert job.error is not None
        assert job.error.type == "DeadlineExceeded"


# From any thread


def test_handlers_run_in_the_thread_of_the_test(pipe: Jobpipe) -> None:
    seen: list[threading.Thread] = []

    @pipe.job
    def look() -> None:
        seen.append(threading.current_thread())
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        asyncio.run(asyncio.sleep(0))

    @pipe.job
    async def look_too() -> None:
        seen.append(threading.current_thread())

    with pipe.testing() as jobs:
        for each in (look, look_too):
            each.enqueue_sync()
            each.enqueue_sync(delay=1)
            jobs.drain_sync()
            jobs.advance_sync(1)
            jobs.run_sync(each)
    assert seen == [threading.current_thread()] * 6


def test_an_async_test_may_use_the_twins(pipe: Jobpipe) -> None:
    @pipe.job
    async def double(n: int) -> int:
        return 2 * n

    async def main() -> None:
        with pipe.testing() as jobs:
            await double.enqueue(4)
            assert [job.result for job in jobs.drain_sync()] == [8]
            assert jobs.run_sync(double, 5) == 10

    run(main())


def test_coroutines_of_a_test_without_a_loop_share_one(pipe: Jobpipe) -> None:
    loops: set[asyncio.AbstractEventLoop] = set()

    @pipe.job
    async def look() -> None:
        loops.add(asyncio.get_running_loop())

    with pipe.testing() as jobs:
        for _ in range(3):
            look.enqueue_sync()
            jobs.drain_sync()
    assert len(loops) == 1


def test_a_handler_cannot_drain(pipe: Jobpipe) -> None:
    @pipe.job(max_retries=0)
    async def greedy() -> None:
        await jobs.drain()

    with pipe.testing() as jobs:
        greedy.enqueue_sync()
        (job,) = jobs.drain_sync()
    assert job.error is not None
    assert "enqueue them" in job.error.message


def test_threads_may_drain_at_the_same_time(pipe: Jobpipe) -> None:
    @pipe.job
    async def count(n: int) -> int:
        await asyncio.sleep(0)
        return n

    with pipe.testing() as jobs:
        for n in range(20):
            count.enqueue_sync(n)
        drained: list[Job] = []
        threads = [threading.Thread(target=lambda: drained.extend(jobs.drain_sync())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(job.result for job in drained) == list(range(20))
        assert statuses(jobs.all) == ["done"] * 20
