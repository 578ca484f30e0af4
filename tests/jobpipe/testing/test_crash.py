"""Crash tests of handlers: those that stand a crash everywhere pass, others are told where they do not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from jobpipe import BadInputError, Job, Jobpipe, Retry, current_job

from ...support.waiting import run


class Bank:
    """Payments, once for each order or once for each run."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.runs: list[tuple[int, str]] = []

    def pay(self, order: str, *, is_once: bool) -> None:
        self.runs.append((current_job().attempts, order))
        if not (is_once and order in self.paid):
            self.paid.append(order)

    def clear(self) -> None:
        self.paid.clear()

    def check(self) -> None:
        assert self.paid == ["17"], f"paid {len(self.paid)} times"


def test_a_handler_that_is_idempotent_passes(pipe: Jobpipe) -> None:
    bank = Bank()

    @pipe.job
    async def pay(order: str) -> None:
        bank.pay(order, is_once=True)

    async def main() -> None:
        async with pipe.testing() as jobs:
            await jobs.crash_everywhere(pay, "17", check=bank.check, setup=bank.clear)
            assert [(job.status, job.attempts) for job in jobs.all] == [
                ("done", 1),
                ("done", 2),
                ("done", 2),
                ("done", 2),
                ("done", 1),
            ]

    run(main())
    assert [attempt for attempt, _ in bank.runs] == [1, 2, 1, 2, 1, 2, 1]


def test_one_that_is_not_is_told_where(pipe: Jobpipe) -> None:
    bank = Bank()

    @pipe.job
    def pay(order: str) -> None:
        bank.pay(order, is_once=False)

    with pipe.testing() as jobs:
        with pytest.raises(AssertionError, match="pay with a crash after the handler: paid 2 times"):
            jobs.crash_everywhere_sync(pay, "17", check=bank.check, setup=bank.clear)
        with pytest.raises(AssertionError, match="pay without a crash: never"):
            jobs.crash_everywhere_sync(pay, "17", check=_never)


def test_any_error_of_the_check_is_told_where(pipe: Jobpipe) -> None:
    rows = [3, 2, 1]

    @pipe.job
    def take() -> None: ...

    def check() -> None:
        {3: None, 2: None}[rows.pop(0)]

    with pipe.testing() as jobs, pytest.raises(KeyError) as caught:
        jobs.crash_everywhere_sync(take, check=check)
    assert caught.value.__notes__ == ["take with a crash after the handler"]


def _never() -> None:
    raise AssertionError("never")


def test_a_process_that_dies_before_the_handler_has_not_called_it(pipe: Jobpipe) -> None:
    """A handler that has to begin with its first attempt does not stand that."""

    @pipe.job(max_retries=1)
    async def first_only() -> None:
        assert current_job().attempts == 1, "begun before"

    with pipe.testing() as jobs, pytest.raises(AssertionError) as caught:
        jobs.crash_everywhere_sync(first_only, check=lambda: None)
    assert str(caught.value).startswith(
        "first_only with a crash before the handler: the job is failed: AssertionError: begun before"
    )


def test_what_the_handler_enqueues_is_run_before_the_check(pipe: Jobpipe) -> None:
    sent: list[str] = []

    @pipe.job
    async def order(id: str) -> None:
        await pipe.enqueue("mail", id, id=f"mail-{id}")

    @pipe.job
    async def mail(id: str) -> None:
        sent.append(id)

    async def check() -> None:
        assert sent == ["17"]

    async def main() -> None:
        async with pipe.testing() as jobs:
            await jobs.crash_everywhere(order, "17", check=check)

    run(main())


def test_retries_are_seen_through(pipe: Jobpipe) -> None:
    @pipe.job(max_retries=5)
    async def stubborn() -> None:
        if current_job().attempts < 4:
            raise Retry(3600)

    with pipe.testing() as jobs:
        jobs.crash_everywhere_sync(stubborn, check=lambda: None)
        assert {job.status.value for job in jobs.all} == {"done"}


def test_a_dead_process_says_nothing(pipe: Jobpipe, caplog: pytest.LogCaptureFixture) -> None:
    """Only the rescue has something to tell; and no hook is called for a job that did not fail."""
    failed: list[Job] = []
    pipe.on_failure(failed.append)

    @pipe.job
    def work() -> None: ...

    with caplog.at_level(logging.WARNING, "jobpipe"), pipe.testing() as jobs:
        jobs.crash_everywhere_sync(work, check=lambda: None)
    assert {record.getMessage().split(" was lost")[1] for record in caplog.records} == {
        " by its worker testing: it is queued now"
    }
    assert failed == []


def test_the_functions_of_the_test_run_in_its_thread(pipe: Jobpipe) -> None:
    import threading

    seen: set[Any] = set()

    def note() -> None:
        seen.add(threading.current_thread())

    @pipe.job
    def work() -> None:
        note()

    with pipe.testing() as jobs:
        jobs.crash_everywhere_sync(work, check=note, setup=note)
    assert seen == {threading.current_thread()}


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda jobs, work: jobs.crash_everywhere_sync("work", check=print), "job_type"),
        (lambda jobs, work: jobs.crash_everywhere_sync(work, check=None), "check"),
        (lambda jobs, work: jobs.crash_everywhere_sync(work, check=print, setup=3), "setup"),
        (lambda jobs, work: jobs.crash_everywhere_sync(work, "x", check=print), "payload"),
    ],
)
def test_what_is_wrong_is_named(pipe: Jobpipe, call: Callable[..., None], field: str) -> None:
    @pipe.job
    async def work(n: int) -> None: ...

    with pipe.testing() as jobs, pytest.raises(BadInputError, match=field):
        call(jobs, work)
