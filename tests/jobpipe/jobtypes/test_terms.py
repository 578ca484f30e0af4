"""Which errors end a job, and durations as seconds or as timedelta, wherever one is given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    Cancel,
    Fail,
    Job,
    Jobpipe,
    JobRequest,
    RateLimited,
    Retry,
    ScheduleRequest,
    Snooze,
)
from jobpipe.jobtypes.terms import terms_of
from jobpipe.model.lease import Claim, Lease, Outcome
from jobpipe.model.outcome import outcome_of
from rate_envelope_queue import Cancelled, DeadlineExceeded

from ...support.jobs import finished
from ...support.waiting import LIMIT, run

pytestmark = pytest.mark.usefixtures("away_from_home")

CLAIM = Claim(
    lease=Lease("a", 1, "w", "t"),
    type="work",
    queue="default",
    payload=b"null",
    attempts=1,
    max_retries=5,
    priority=0,
    deadline=None,
    run_at=0,
    created_at=0,
    started_at=0,
)


@pytest.fixture
def pipe() -> Jobpipe:
    return Jobpipe("memory://")


def follow(error: BaseException, **options: Any) -> Outcome:
    terms = terms_of(options)  # type: ignore[arg-type]
    return outcome_of(error, CLAIM, terms.backoff, terms.is_final)


def moves(error: BaseException) -> list[str]:
    """With no rule, with those to retry, with those to fail, and with both."""
    rules: list[dict[str, Any]] = [
        {},
        {"retry_on": (OSError, LookupError)},
        {"fail_on": (ValueError, ConnectionError)},
        {"retry_on": (OSError, LookupError), "fail_on": ConnectionError},
    ]
    return [follow(error, **options).move.value for options in rules]


def test_errors_are_retried_or_not_by_their_kind() -> None:
    assert moves(TypeError()) == ["retry", "fail", "retry", "fail"]
    assert moves(OSError()) == ["retry", "retry", "retry", "retry"]
    assert moves(KeyError()) == ["retry", "retry", "retry", "retry"], "subclasses count"
    assert moves(UnicodeError()) == ["retry", "fail", "fail", "fail"]
    assert moves(ConnectionResetError()) == ["retry", "retry", "fail", "fail"], "fail_on wins"
    assert follow(OSError(), retry_on=()).move == "fail"
    assert follow(OSError(), retry_on=[OSError]).move == "retry"


def test_signals_deadlines_and_lost_workers_are_exempt() -> None:
    rules: list[dict[str, Any]] = [{"retry_on": ()}, {"fail_on": Exception}]
    for options in rules:
        for error, move in [
            (Retry(), "retry"),
            (Snooze(1), "snooze"),
            (RateLimited(1), "snooze"),
            (Cancel(), "cancel"),
            (Fail("no"), "fail"),
            (DeadlineExceeded("timed out after 1 s"), "retry"),
            (Cancelled("the run was cancelled"), "retry"),
        ]:
            assert follow(error, **options).move == move, error


@pytest.mark.parametrize("name", ["retry_on", "fail_on"])
@pytest.mark.parametrize("value", ["OSError", 5, OSError(), int, (OSError, "x")], ids=ascii)
def test_what_is_no_kind_of_error_is_refused_at_the_definition(pipe: Jobpipe, name: str, value: Any) -> None:
    with pytest.raises(BadInputError, match=f"^{name} must be an exception class") as caught:
        pipe.job("work", **{name: value})
    assert caught.value.field == name


def run_one(pipe: Jobpipe, handler: Callable[[], Any], **options: Any) -> Job:
    async def scenario() -> Job:
        pipe.job("work", **options)(handler)
        async with pipe, pipe.running():
            return await finished(pipe, (await pipe.enqueue("work")).id)

    return run(scenario())


def test_fail_ends_a_job_without_a_retry(pipe: Jobpipe) -> None:
    def handler() -> None:
        raise Fail("no such customer")

    job = run_one(pipe, handler)
    assert (job.status, job.attempts, job.max_retries) == ("failed", 1, 10)
    assert job.error is not None
    assert (job.error.type, job.error.message) == ("Fail", "no such customer")


def test_an_error_to_fail_on_ends_a_job(pipe: Jobpipe) -> None:
    async def handler() -> None:
        raise KeyError("customer")

    job = run_one(pipe, handler, fail_on=LookupError)
    assert (job.status, job.attempts) == ("failed", 1)
    assert job.error is not None
    assert job.error.type == "KeyError"


@pytest.mark.parametrize(
    "result", [object(), {1: {2, 3}, "a": object}, float("nan"), "x" * 1_048_577], ids=range(4)
)
def test_a_result_that_cannot_be_stored_ends_a_job(pipe: Jobpipe, result: Any) -> None:
    job = run_one(pipe, lambda: result)
    assert (job.status, job.attempts) == ("failed", 1)
    assert job.error is not None
    assert job.error.message.startswith("result ")
    assert "JSON" in job.error.message


# Durations


def test_durations_may_be_timedeltas_everywhere(pipe: Jobpipe) -> None:
    minute = timedelta(minutes=1)
    pipe = Jobpipe("memory://", lease=minute, grace=minute / 2, keep=timedelta(days=1))
    assert (pipe.settings.lease, pipe.settings.grace, pipe.settings.keep) == (60.0, 30.0, 86_400.0)
    work = pipe.job("work", deadline=minute, base=minute / 60, cap=minute)(lambda: None)
    assert (work.defaults.deadline, work.backoff.base, work.backoff.cap) == (60.0, 1.0, 60.0)
    assert (Retry(minute).after, Snooze(minute).seconds, RateLimited(minute).retry_after) == (
        60.0,
        60.0,
        60.0,
    )
    plain = pipe.enqueue_sync("work", id="plain", delay=60, deadline=120)
    for again in (
        pipe.enqueue_sync("work", id="plain", delay=minute, deadline=2 * minute),
        *work_many(pipe, minute),
        pipe.enqueue_sync(work.request(), id="plain", delay=minute, deadline=2 * minute),
    ):
        assert (again.id, again.is_new, again.status) == (plain.id, False, "scheduled"), "the same job"
    assert pipe.wait_sync("plain", timeout=timedelta(0)).deadline == 120.0
    pipe.every(minute, name="tick")(lambda: None)
    assert pipe.schedules.put_sync("tock", ScheduleRequest(type="work", every=minute)).every == 60.0
    pipe.close()


def work_many(pipe: Jobpipe, minute: timedelta) -> list[Any]:
    return pipe.enqueue_many_sync([JobRequest(id="plain", type="work", delay=minute, deadline=2 * minute)])


def test_a_wrong_duration_is_refused_by_its_name(pipe: Jobpipe) -> None:
    wrong: list[tuple[str, Callable[[Any], object]]] = [
        ("delay", lambda value: pipe.enqueue_sync("echo", delay=value)),
        ("deadline", lambda value: pipe.enqueue_sync("echo", deadline=value)),
        ("jobs[0].delay", lambda value: pipe.enqueue_many_sync([JobRequest(delay=value)])),
        ("timeout", lambda value: pipe.wait_sync("a", timeout=value)),
        ("every", lambda value: pipe.every(value)),
        ("every", lambda value: pipe.schedules.put_sync("a", ScheduleRequest(type="echo", every=value))),
        ("base", lambda value: pipe.job("work", base=value)),
        ("cap", lambda value: pipe.job("work", cap=value)),
        ("deadline", lambda value: pipe.job("work", deadline=value)),
        ("after", lambda value: Retry(after=value)),
        ("seconds", lambda value: Snooze(value)),
    ]
    for value in (timedelta(seconds=-1), -1, "1", float("nan")):
        for field, call in wrong:
            with pytest.raises(BadInputError) as caught:
                call(value)
            assert caught.value.field == field, (field, value)
    assert pipe.stats_sync().queued == 0
    pipe.close()


def test_a_deadline_is_retried_whatever_the_rules(pipe: Jobpipe) -> None:
    runs: list[int] = []

    async def handler() -> str:
        runs.append(1)
        if len(runs) == 1:
            await asyncio.sleep(LIMIT)
        return "in time"

    job = run_one(pipe, handler, deadline=0.2, base=0, fail_on=TimeoutError)
    assert job.status == "done"
    assert job.attempts >= 2
