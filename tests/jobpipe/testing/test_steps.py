"""Jobs with steps, sleeps and signals in a test: driven by the manual clock, run alone, or called directly."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    JobNotFoundError,
    Jobpipe,
    SignalRefusedError,
    SignalTimeout,
    WrongStatusError,
    current_job,
)

from ...support.waiting import run

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class Shop:
    """An order that is charged, sleeps a day, waits for its approval and is shipped; as a coroutine or a plain function."""

    def __init__(self, pipe: Jobpipe) -> None:
        self.did: list[str] = []
        self.threads: set[threading.Thread] = set()

        @pipe.job
        async def order(id: str) -> tuple[str, Any]:
            job = current_job()
            charged = await job.step("charge", self.charge, id)
            await job.sleep("cool-off", DAY)
            answer = await job.wait_for("approved", timeout=3 * DAY)
            await job.step("ship", self.ship, id)
            return charged, answer

        @pipe.job
        def plain_order(id: str) -> tuple[str, Any]:
            job = current_job()
            charged = job.step_sync("charge", self.charge, id)
            job.sleep_sync("cool-off", DAY)
            answer = job.wait_for_sync("approved", timeout=3 * DAY)
            job.step_sync("ship", self.do, f"ship {id}")
            return charged, answer

        self.order, self.plain_order = order, plain_order

    def do(self, what: str) -> None:
        self.threads.add(threading.current_thread())
        self.did.append(what)

    def charge(self, id: str) -> str:
        self.do(f"charge {id}")
        return f"charge-{id}"

    async def ship(self, id: str) -> None:
        self.do(f"ship {id}")


@pytest.fixture
def shop(pipe: Jobpipe) -> Shop:
    return Shop(pipe)


# Driven


def test_a_job_goes_on_after_its_sleep_and_its_signal(pipe: Jobpipe, shop: Shop) -> None:
    async def main() -> None:
        async with pipe.testing(start=START) as jobs:
            await shop.order.enqueue("17", id="o")
            (job,) = await jobs.drain()
            assert (job.status, job.run_at) == ("scheduled", START + DAY)
            await jobs.advance(86_399.999)
            assert [job.status for job in jobs.all] == ["scheduled"]
            await jobs.advance(0.001)
            (job,) = await jobs.drain()
            assert job.status == "waiting"
            receipt = await jobs.signal(job, "approved", {"by": "ada"})
            assert (receipt.id, receipt.name, receipt.is_new) == ("o", "approved", True)
            assert jobs.all[0].status == "queued"
            (job,) = await jobs.drain()
            assert (job.status, job.attempts) == ("done", 1)
            assert job.result == ["charge-17", {"by": "ada"}]
            assert jobs.now == START + DAY
            assert [step.name for step in await pipe.steps("o")] == ["charge", "ship"]

    run(main())
    assert shop.did == ["charge 17", "ship 17"]


@pytest.mark.parametrize("name", ["order", "plain_order"])
def test_the_same_without_an_event_loop(pipe: Jobpipe, shop: Shop, name: str) -> None:
    with pipe.testing(start=START) as jobs:
        receipt = getattr(shop, name).enqueue_sync("17")
        jobs.advance_sync("2 days")
        assert jobs.signal_sync(receipt, "approved").is_new
        assert not jobs.signal_sync(receipt.id, "approved").is_new
        (job,) = jobs.drain_sync()
        assert (job.status, job.result) == ("done", ["charge-17", None])
    assert shop.did == ["charge 17", "ship 17"]
    assert shop.threads == {threading.current_thread()}, "also the steps of a coroutine"


def test_a_wait_times_out_at_its_time(pipe: Jobpipe) -> None:
    seen: list[tuple[str, float]] = []

    @pipe.job
    async def patient(seconds: float) -> None:
        try:
            await current_job().wait_for("go", timeout=seconds)
        except SignalTimeout as error:
            seen.append((error.name, (jobs.now - START).total_seconds()))

    with pipe.testing(start=START) as jobs:
        for seconds in (90.25, 3.5, 86_400):
            patient.enqueue_sync(seconds)
        jobs.advance_sync(DAY)
    assert seen == [("go", 3.5), ("go", 90.25), ("go", 86_400.0)]


def test_sleeps_end_at_their_times(pipe: Jobpipe) -> None:
    woke: list[float] = []

    @pipe.job
    def sleeper() -> None:
        for n, seconds in enumerate((0, 0.1, 86_400 / 7, 1e-6)):
            current_job().sleep_sync(f"nap-{n}", seconds)
        woke.append((jobs.now - START).total_seconds())

    with pipe.testing(start=START) as jobs:
        sleeper.enqueue_sync()
        jobs.drain_sync()
        assert jobs.now == START
        jobs.advance_sync(DAY)
    assert woke == [pytest.approx(0.1 + 86_400 / 7 + 1e-6, abs=2e-6)]


def test_a_signal_that_comes_before_is_kept(pipe: Jobpipe, shop: Shop) -> None:
    with pipe.testing() as jobs:
        job = shop.plain_order.enqueue_sync("17")
        jobs.signal_sync(job, "approved", 5)
        jobs.advance_sync(DAY)
        assert [job.result for job in jobs.all] == [["charge-17", 5]]


def test_a_signal_is_refused_as_by_the_pipe(pipe: Jobpipe, shop: Shop) -> None:
    with pipe.testing() as jobs:
        job = shop.plain_order.enqueue_sync("17")
        jobs.signal_sync(job, "approved", 1)
        with pytest.raises(SignalRefusedError, match="the first of a name wins"):
            jobs.signal_sync(job, "approved", 2)
        with pytest.raises(BadInputError, match="name"):
            jobs.signal_sync(job, "no spaces please")
        with pytest.raises(BadInputError, match="id"):
            jobs.signal_sync(5, "approved")  # type: ignore[arg-type]
        with pytest.raises(JobNotFoundError):
            jobs.signal_sync("another", "approved")
        jobs.advance_sync(DAY)
        with pytest.raises(WrongStatusError):
            jobs.signal_sync(jobs.all[0], "again")
    with pytest.raises(RuntimeError, match="has ended"):
        jobs.signal_sync(job, "approved", 1)


def test_a_signal_reaches_its_own_block(pipe: Jobpipe) -> None:
    """So does all that the handlers do that it runs."""

    @pipe.job
    def relay() -> None:
        current_job().wait_for_sync("go")
        pipe.signal_sync("other", "go")

    with pipe.testing() as jobs:
        relay.enqueue_sync(id="one")
        relay.enqueue_sync(id="other")
        jobs.drain_sync()
        with pipe.testing() as inner:
            jobs.signal_sync("one", "go")
            assert {job.status.value for job in jobs.drain_sync()} == {"done"}
            assert inner.all == []


def test_a_thousand_jobs_with_ten_sleeps_of_days(pipe: Jobpipe) -> None:
    """11,000 runs and 10,000 steps: a few seconds; the limit is for a machine that is busy with other things."""
    steps = 0

    async def work(n: int) -> int:
        nonlocal steps
        steps += 1
        return n

    @pipe.job
    async def long(n: int) -> int:
        job = current_job()
        for day in range(10):
            await job.step(f"step-{day}", work, day)
            await job.sleep(f"sleep-{day}", timedelta(days=1 + n % 7))
        return n

    async def main() -> None:
        async with pipe.testing(workers=20) as jobs:
            await pipe.enqueue_many([long.request(n) for n in range(1000)])
            began = time.process_time()
            await jobs.advance("70 days")
            assert time.process_time() - began < 30
            assert [job.result for job in jobs.all] == list(range(1000))

    asyncio.run(main())
    assert steps == 10_000


# One job


@pytest.mark.parametrize("name", ["order", "plain_order"])
def test_run_goes_through_sleeps_and_timeouts(pipe: Jobpipe, shop: Shop, name: str) -> None:
    job_type = getattr(shop, name)
    with pipe.testing(start=START) as jobs:
        with pytest.raises(SignalTimeout, match="approved"):
            jobs.run_sync(job_type, "17")
        assert jobs.now == START + 4 * DAY
        assert shop.did == ["charge 17"]
        assert jobs.all == [], "no trace"

    async def main() -> None:
        async with pipe.testing(start=START) as jobs:
            with pytest.raises(SignalTimeout):
                await jobs.run(job_type, "17")
            assert jobs.now == START + 4 * DAY

    run(main())


def test_run_returns_what_the_last_run_returns(pipe: Jobpipe) -> None:
    @pipe.job
    async def napper(n: int) -> list[int]:
        job = current_job()
        await job.sleep("one", DAY)
        await job.sleep("two", DAY)
        return [n, job.attempts]

    with pipe.testing(start=START) as jobs:
        assert jobs.run_sync(napper, 3) == [3, 1]
        assert jobs.now == START + 2 * DAY


def test_run_runs_no_other_job_while_it_sleeps(pipe: Jobpipe, shop: Shop) -> None:
    @pipe.job
    def napper() -> None:
        current_job().sleep_sync("nap", 2 * DAY)

    with pipe.testing(start=START) as jobs:
        pipe.enqueue_sync("echo", delay=DAY, id="later")
        jobs.run_sync(napper)
        assert [job.status for job in jobs.all] == ["queued"]
        assert [job.id for job in jobs.drain_sync()] == ["later"]


def test_run_takes_a_signal_that_a_step_sends(pipe: Jobpipe) -> None:
    @pipe.job
    async def impatient() -> Any:
        job = current_job()
        await job.step("ask", pipe.signal, job.id, "answer", 42)
        return await job.wait_for("answer")

    with pipe.testing() as jobs:
        assert jobs.run_sync(impatient) == 42


def test_run_refuses_a_wait_that_never_ends(pipe: Jobpipe) -> None:
    @pipe.job
    async def patient() -> None:
        await current_job().wait_for("go")

    with pipe.testing() as jobs:
        with pytest.raises(RuntimeError, match=r"waits for the signal 'go'.*jobs.signal"):
            jobs.run_sync(patient)
        assert jobs.all == []


# A handler that is called directly


def test_a_step_of_a_handler_that_is_called_directly(pipe: Jobpipe, shop: Shop) -> None:
    def point() -> tuple[int, int]:
        return 1, 2

    @pipe.job
    async def twice(name: str) -> Any:
        job = current_job()
        results = [await job.step("one", point), *await asyncio.gather(job.step(name, point))]
        await job.sleep("cool-off", DAY)
        return results

    async def main() -> None:
        async with pipe.testing(start=START) as jobs:
            assert await twice("two") == [(1, 2), (1, 2)], "decoded as the function says"
            assert jobs.now == START + DAY
            (first, second) = await asyncio.gather(twice("two"), twice("three"))
            assert first == second
            for name in ("one", "no spaces please", "cool-off"):
                with pytest.raises(BadInputError, match="name"):
                    await twice(name)
            assert jobs.all == []

    run(main())


def test_a_plain_handler_that_is_called_directly(pipe: Jobpipe, shop: Shop) -> None:
    @pipe.job
    def wrong() -> None:
        current_job().step_sync("one", object)

    with pipe.testing(start=START) as jobs:
        with pytest.raises(
            RuntimeError, match=r"called directly cannot wait for the signal 'approved'.*jobs.signal"
        ):
            shop.plain_order("17")
        assert jobs.now == START + DAY
        with pytest.raises(BadInputError, match="the result of step 'one'"):
            wrong()
    assert shop.did == ["charge 17"]


# In the caller's transaction


@pytest.fixture
def db() -> Any:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE payments (id TEXT)")
    yield db
    db.close()


def pays(pipe: Jobpipe, db: sqlite3.Connection) -> Any:
    def pay(id: str) -> str:
        db.execute("INSERT INTO payments VALUES (?)", (id,))
        return id

    @pipe.job
    def payment(id: str) -> str:
        job = current_job()
        with db:
            paid = job.step_sync("pay", pay, id, connection=db)
        with db:
            job.finish_sync({"paid": paid}, connection=db)
        return "does not count"

    return payment


def rows(db: sqlite3.Connection) -> list[Any]:
    return [id for (id,) in db.execute("SELECT id FROM payments")]


def test_steps_and_outcomes_on_a_connection_are_recorded(pipe: Jobpipe, db: sqlite3.Connection) -> None:
    payment = pays(pipe, db)
    with pipe.testing() as jobs:
        id = payment.enqueue_sync("17").id
        (job,) = jobs.drain_sync()
        assert (job.status, job.result) == ("done", {"paid": "17"})
        assert [step.result for step in pipe.steps_sync(id)] == ["17"]
        assert jobs.run_sync(payment, "18") == "does not count"
        assert payment("19") == "does not count"
    assert rows(db) == ["17", "18", "19"]


def test_a_transaction_stands_a_crash_everywhere(pipe: Jobpipe, db: sqlite3.Connection) -> None:
    def clear() -> None:
        with db:
            db.execute("DELETE FROM payments")

    def check() -> None:
        assert rows(db) == ["17"]

    with pipe.testing() as jobs:
        jobs.crash_everywhere_sync(pays(pipe, db), "17", setup=clear, check=check)


def test_what_lost_its_lease_records_nothing(pipe: Jobpipe, db: sqlite3.Connection) -> None:
    """The caller's transaction fails with it."""
    from jobpipe import LeaseLostError

    calls: list[Callable[[Any], object]] = [
        lambda job: job.step_sync("late", len, "abc", connection=db),
        lambda job: job.finish_sync(connection=db),
    ]

    @pipe.job
    def late(n: int) -> None:
        job = current_job()
        jobs._block.store.release([job._claim.lease])
        with pytest.raises(LeaseLostError):
            calls[n](job)
        lost.append(n)
        raise LeaseLostError(job.id)

    lost: list[int] = []
    with pipe.testing() as jobs:
        for n in (0, 1):
            with pytest.raises(LeaseLostError):
                jobs.run_sync(late, n)
    assert lost == [0, 1]
