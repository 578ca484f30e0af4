"""Limits of job types, as handlers see them: rates, concurrency, keys, cooling, and what one is told of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest
from msgspec import Struct

from jobpipe import BadInputError, Jobpipe, JobStatus, Reason
from jobpipe.gateway.limits import key_of, rate_text
from jobpipe.model.request import JobRequest
from rate_envelope_queue import Rate, RateLimited

from ...support.gates import AsyncGate
from ...support.jobs import finished, reached, seen
from ...support.waiting import run


@pytest.fixture
def pipe(url: str) -> Jobpipe:
    return Jobpipe(url, queue_size=0)


def handler(payload: Any) -> Any:
    return payload


# Declaring


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"rate": "5 a second"}, "rate"),
        ({"rate": "0/s"}, "rate"),
        ({"rate": 5}, "rate"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 1.5}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"rate": "5/s", "key": "customer"}, "key"),
        ({"key": handler}, "key"),
    ],
)
def test_wrong_limit_is_refused_at_the_definition(options: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInputError, match=field) as caught:
        Jobpipe("memory://").job("work", **options)
    assert caught.value.field == field


def test_unknown_option_of_a_type_is_a_type_error_that_names_it() -> None:
    with pytest.raises(TypeError, match=r"^unknown option 'rates'; did you mean 'rate'\?$"):
        Jobpipe("memory://").job("work", rates="5/s")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"^unknown option 'xyz'; known options: .*rate, concurrency"):
        Jobpipe("memory://").job("work", xyz=1)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("interval", "text"),
    [(0.2, "5/s"), (0.6, "100/min"), (60, "1/min"), (7200, "12/d"), (172800, "1 in 172800 s")],
)
def test_rate_is_told_as_one_would_write_it(interval: float, text: str) -> None:
    assert rate_text(interval) == text


# Rates


def test_starts_are_evenly_paced(pipe: Jobpipe) -> None:
    """Within the exactness of an event loop, no two start closer together than the rate says."""
    starts: list[float] = []

    @pipe.job("paced", rate="25/s")
    async def paced() -> None:
        starts.append(time.monotonic())

    async def scenario() -> None:
        async with pipe:
            await pipe.enqueue_many(JobRequest(type="paced", id=f"j{n}") for n in range(8))
            async with pipe.running():
                for n in range(8):
                    await finished(pipe, f"j{n}")
            jobs = [await pipe.get(f"j{n}") for n in range(8)]
        told = sorted(job.started_at.timestamp() for job in jobs if job.started_at)
        assert min(later - earlier for earlier, later in pairwise(told)) > 0.0399

    began_at = time.monotonic()  # not the first start: a busy machine may be late with that one alone
    run(scenario())
    assert len(starts) == 8
    assert starts[-1] - began_at > 7 * 0.04 - 0.02


def test_jobs_do_not_bunch_up_behind_places_that_are_busy(pipe: Jobpipe) -> None:
    """They are claimed when there is a place for them, and not while the places are taken."""
    starts: list[float] = []
    opened_at: list[float] = []
    gate = AsyncGate()

    @pipe.job("paced", rate="20/s")
    async def paced() -> None:
        starts.append(time.monotonic())

    @pipe.job("busy")
    async def busy() -> None:
        await gate.pass_through()

    async def scenario() -> None:
        async with pipe, pipe.running(workers=1):
            for n in range(30):  # so that it expects short jobs, and claims ahead
                await finished(pipe, (await pipe.enqueue("echo", n)).id)
            await busy.enqueue()
            await gate.began.wait()
            await asyncio.sleep(0.05)  # by now it is not a short one
            receipts = [await paced.enqueue() for _ in range(6)]
            await asyncio.sleep(0.3)
            opened_at.append(time.monotonic())
            gate.go.set()
            for receipt in receipts:
                await finished(pipe, receipt.id)

    run(scenario())
    assert starts[-1] - opened_at[0] > 5 * 0.05 - 0.02


def test_burst_starts_at_once(pipe: Jobpipe) -> None:
    began: list[int] = []

    @pipe.job("burst", rate=Rate(1, per=3600, burst=3))
    async def burst(number: int) -> None:
        began.append(number)

    async def scenario() -> None:
        async with pipe, pipe.running():
            for n in range(5):
                await burst.enqueue(n, id=f"j{n}")
            for n in range(3):
                await finished(pipe, f"j{n}")
            found = await pipe.explain("j3")
            assert found.reason is Reason.RATE
            assert found.until is not None
            assert "1/h" in found.text

    run(scenario())
    assert began == [0, 1, 2]


# Concurrency


@pytest.mark.parametrize("is_async", [True, False])
def test_concurrency_is_never_exceeded(pipe: Jobpipe, is_async: bool) -> None:
    running, most = 0, 0

    def enter() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)

    def leave() -> None:
        nonlocal running
        running -= 1

    async def coroutine() -> None:
        enter()
        await asyncio.sleep(0)
        leave()

    def function() -> None:
        enter()
        leave()

    pipe.job("few", concurrency=2)(coroutine if is_async else function)

    async def scenario() -> None:
        async with pipe, pipe.running(workers=8):
            receipts = [await pipe.enqueue("few") for _ in range(20)]
            for receipt in receipts:
                assert (await finished(pipe, receipt.id)).status is JobStatus.DONE

    run(scenario())
    assert 1 <= most <= 2


def test_limited_type_delays_no_other(pipe: Jobpipe) -> None:
    gate = AsyncGate()

    @pipe.job("one", concurrency=1, priority=1000)
    async def one() -> None:
        await gate.pass_through()

    async def scenario() -> None:
        async with pipe, pipe.running(workers=4):
            waiting = [await one.enqueue() for _ in range(50)]
            await gate.began.wait()
            for n in range(20):
                await finished(pipe, (await pipe.enqueue("echo", n)).id)
            found = await pipe.explain(waiting[1].id)
            assert (found.reason, found.blockers) == (Reason.CONCURRENCY, (waiting[0].id,))
            (info,) = await pipe.limits()
            assert (info.type, info.key, info.concurrency, info.running) == ("one", None, 1, 1)
            assert (info.holders, info.waiting, info.rate, info.tokens) == ((waiting[0].id,), 49, None, None)
            gate.go.set()
            for receipt in waiting:
                await finished(pipe, receipt.id)

    run(scenario())


# Keys


class Order(Struct):
    customer: str
    number: int


def test_each_key_has_a_limit_of_its_own(pipe: Jobpipe) -> None:
    running: Counter[str] = Counter()
    order: defaultdict[str, list[int]] = defaultdict(list)

    @pipe.job("ship", concurrency=1, key=lambda order: order.customer)
    async def ship(payload: Order) -> None:
        running[payload.customer] += 1
        assert running[payload.customer] == 1
        await asyncio.sleep(0)
        running[payload.customer] -= 1
        order[payload.customer].append(payload.number)

    async def scenario() -> None:
        async with pipe, pipe.running(workers=4):
            receipts = [await ship.enqueue(Order("abc"[n % 3], n), max_retries=0) for n in range(18)]
            for receipt in receipts:
                job = await finished(pipe, receipt.id)
                assert job.status is JobStatus.DONE, job.error

    run(scenario())
    assert order == {"a": [*range(0, 18, 3)], "b": [*range(1, 18, 3)], "c": [*range(2, 18, 3)]}


def test_a_key_is_a_number_or_a_short_text() -> None:
    assert key_of(lambda payload: payload, 17) == "17"
    assert key_of(lambda payload: payload, "a" * 200) == "a" * 200
    for wrong in ("", "a" * 201, "a" * 200 + "…", "a\0b", "\ud800", True, 1.5, None):
        with pytest.raises(BadInputError, match="invalid key"):
            key_of(lambda payload: payload, wrong)


def test_busy_key_is_named_and_holds_up_no_other(pipe: Jobpipe) -> None:
    gate = AsyncGate()

    @pipe.job("ship", concurrency=1, key=lambda customer: customer)
    async def ship(customer: int) -> None:
        if customer == 1:
            await gate.pass_through()

    async def scenario() -> None:
        async with pipe, pipe.running(workers=4):
            first, second = await ship.enqueue(1), await ship.enqueue(1)
            await gate.began.wait()
            await finished(pipe, (await ship.enqueue(2)).id)
            found = await pipe.explain(second.id)
            assert (found.reason, found.blockers) == (Reason.CONCURRENCY, (first.id,))
            assert "'ship' with the key '1'" in found.text
            whole, *held = await pipe.limits()
            assert (whole.key, whole.is_keyed, whole.concurrency, whole.running) == (None, True, 1, 0)
            assert [(info.key, info.running, info.waiting) for info in held] == [("1", 1, None)]
            gate.go.set()
            await finished(pipe, second.id)

    run(scenario())


@pytest.mark.parametrize("key", [None, "", "x" * 201, 1.5, True, "a\0b", "\ud800"])
def test_what_is_no_key_is_refused_and_nothing_put_in(pipe: Jobpipe, key: Any) -> None:
    pipe.job("ship", concurrency=1, key=lambda _: key)(handler)

    async def scenario() -> None:
        async with pipe:
            with pytest.raises(BadInputError, match="key"):
                await pipe.enqueue("ship")
            assert (await pipe.page()).jobs == []

    run(scenario())


def test_key_function_that_raises_refuses_the_job(pipe: Jobpipe) -> None:
    pipe.job("ship", concurrency=1, key=lambda payload: payload["customer"])(handler)

    async def scenario() -> None:
        async with pipe:
            with pytest.raises(BadInputError, match="KeyError: 'customer'") as caught:
                await pipe.enqueue("ship", {})
            assert caught.value.field == "payload"

    run(scenario())


def test_jobs_of_who_does_not_know_the_type_are_limited_too(sqlite_url: str) -> None:
    """Their keys are found by the worker, which costs no attempt; one without a key fails without a retry."""
    stranger, pipe = Jobpipe(sqlite_url, queue_size=0), Jobpipe(sqlite_url, queue_size=0)
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    @pipe.job("ship", concurrency=1, key=lambda order: order["customer"])
    async def ship(order: dict[str, str]) -> None:
        customer = order["customer"]
        running[customer] += 1
        most[customer] = max(most[customer], running[customer])
        await asyncio.sleep(0)
        running[customer] -= 1

    async def scenario() -> None:
        async with stranger, pipe:
            receipts = [await stranger.enqueue("ship", {"customer": "ab"[n % 2]}) for n in range(10)]
            keyless = await stranger.enqueue("ship", {"nobody": "x"})
            async with pipe.running(workers=4):
                for receipt in receipts:
                    job = await finished(pipe, receipt.id)
                    assert (job.status, job.attempts) == (JobStatus.DONE, 1)
                failed = await finished(pipe, keyless.id)
            assert (failed.status, failed.attempts) == (JobStatus.FAILED, 1)
            assert failed.error is not None
            assert "key" in failed.error.message

    run(scenario())
    assert most == {"a": 1, "b": 1}


# Cooling


def test_rate_limit_met_by_a_handler_cools_its_whole_type_and_no_other(pipe: Jobpipe) -> None:
    """Fired once, nothing of the type starts until the time is over, and no attempt is lost."""
    began: list[float] = []

    @pipe.job("call", max_retries=0)
    async def call() -> None:
        began.append(time.monotonic())
        if len(began) == 1:
            raise RateLimited(0.3)

    async def scenario() -> None:
        async with pipe:
            receipts = [await call.enqueue() for _ in range(3)]
            async with pipe.running(workers=1):
                await reached(pipe, receipts[0].id, JobStatus.SCHEDULED)
                found = await pipe.explain(receipts[1].id)
                assert (found.reason, found.blockers) == (Reason.RATE, ("call",))
                assert found.until is not None
                (info,) = await pipe.limits()
                assert (info.type, info.cools_until is not None) == ("call", True)
                await finished(pipe, (await pipe.enqueue("echo")).id)
                assert len(began) == 1
                for receipt in receipts:
                    assert (await finished(pipe, receipt.id)).attempts == 1

    run(scenario())
    assert began[1] - began[0] > 0.29


def test_limits_are_seen_with_their_tokens(pipe: Jobpipe) -> None:
    @pipe.job("paced", rate=Rate(1, per=3600, burst=4), concurrency=7)
    async def paced() -> None:
        pass

    async def scenario() -> None:
        async with pipe, pipe.running():
            (idle,) = await pipe.limits()
            assert (idle.type, idle.rate, idle.burst, idle.tokens) == ("paced", "1/h", 4, 4.0)
            assert (idle.next_at, idle.concurrency, idle.running, idle.waiting) == (None, 7, 0, 0)
            for _ in range(5):
                await paced.enqueue()
            used = await seen(pipe, pipe.limits, lambda found: found[0].tokens == pytest.approx(0, abs=0.1))
            assert used[0].next_at is not None

    run(scenario())
