"""One run: hooks, stops, decisions, panics, what the log says, and calls from inside."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from rate_envelope_queue import (
    BadFieldsError,
    Context,
    Decision,
    Envelope,
    EnvelopeBlacklistedError,
    StopEnvelope,
    StopType,
    SystemClock,
    drop,
    retry_after,
    retry_now,
)

from ..support.gates import Gate
from ..support.waiting import LIMIT
from .conftest import Driver
from .diary import Diary, raising, run_once

ALL = ["before", "invoke", "after", "success"]


def test_hooks_are_called_in_order(driver: Driver) -> None:
    diary = Diary()
    queue = run_once(driver, diary)
    assert diary.entries == ALL
    assert queue.stats().done == 1


def test_an_error_in_the_before_hook_skips_invoke_and_after_hook(driver: Driver) -> None:
    diary = Diary(before=ValueError("no"))
    queue = run_once(driver, diary)
    assert diary.entries == ["before", "failure"]
    assert (queue.stats().failed, queue.stats().dropped) == (1, 1)


def test_an_error_in_invoke_skips_the_after_hook(driver: Driver) -> None:
    diary = Diary(invoke=ValueError("no"))
    queue = run_once(driver, diary)
    assert diary.entries == ["before", "invoke", "failure"]
    assert isinstance(diary.errors[0], ValueError)
    assert (queue.stats().failed, queue.occupied) == (1, 0)


def test_an_error_in_the_after_hook_is_logged_and_ignored(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    diary = Diary(after=ValueError("late trouble"))
    queue = run_once(driver, diary)
    assert diary.entries == ALL
    assert queue.stats().done == 1
    assert "after hook raised" in caplog.text
    assert "late trouble" in caplog.text


@pytest.mark.parametrize("place", ["success", "failure"])
@pytest.mark.parametrize("error", [ValueError("hook"), SystemExit(3), StopType()])
def test_whatever_a_last_hook_raises_is_logged_and_changes_nothing(
    driver: Driver, caplog: pytest.LogCaptureFixture, place: str, error: BaseException
) -> None:
    raises = {place: error} | ({"invoke": ValueError("no")} if place == "failure" else {})
    queue = run_once(driver, Diary(**raises), type="t")
    stats = queue.stats()
    assert (stats.done, stats.failed, stats.panicked) == ((1, 0, 0) if place == "success" else (0, 1, 0))
    assert queue.blacklist == frozenset()
    assert f"{place} hook raised" in caplog.text


@pytest.mark.parametrize("place", ["before", "invoke", "after"])
def test_stop_envelope_ends_a_periodic_envelope_and_still_runs_the_after_hook(
    driver: Driver, place: str
) -> None:
    diary = Diary(**{place: StopEnvelope()})
    queue = run_once(driver, diary, interval=1)
    assert diary.entries == {"before": ["before", "after"]}.get(place, ["before", "invoke", "after"])
    assert queue.occupied == 0
    stats = queue.stats()
    assert (stats.done, stats.failed, stats.dropped) == (0, 0, 0)


def test_what_the_after_hook_raises_after_a_stop_is_ignored(driver: Driver) -> None:
    diary = Diary(invoke=StopEnvelope(), after=StopType())
    queue = run_once(driver, diary, type="t")
    assert queue.blacklist == frozenset()


@pytest.mark.parametrize("place", ["before", "invoke", "after"])
def test_stop_type_blacklists_the_type_and_drops_what_waits(driver: Driver, place: str) -> None:
    diary = Diary(**{place: StopType()})
    queue = driver.queue(start=False)
    hooks = {name: driver.kind(hook) for name, hook in diary.hooks().items()}
    bad = driver.envelope(diary.invoke, type="bad", **hooks)
    waiting, delayed = driver.envelope(type="bad"), driver.envelope(type="bad")
    good = driver.envelope(type="good")
    queue.send(bad, waiting, good)
    queue.send(delayed, delay=5)
    queue.start()
    driver.advance(10)
    assert queue.blacklist == {"bad"}
    stats = queue.stats()
    assert (stats.done, stats.dropped, stats.occupied) == (1, 2, 0)
    with pytest.raises(EnvelopeBlacklistedError, match="bad"):
        queue.send(driver.envelope(type="bad"))
    queue.stop()
    queue.start()
    assert queue.blacklist == {"bad"}, "it survives a restart"
    assert queue.allow("bad") is True
    queue.send(driver.envelope(type="bad"))
    assert queue.join(LIMIT)


def test_running_envelopes_of_a_stopped_type_finish_and_do_not_run_again(driver: Driver) -> None:
    slow, stopper = Gate(), Gate()

    def stop(ctx: Context, envelope: Envelope[Any]) -> None:
        stopper.pass_through()
        raise StopType

    queue = driver.queue(workers=2)
    periodic = driver.envelope(slow.pass_through, type="t", interval=1)
    queue.send(periodic, driver.envelope(stop, type="t"))
    slow.wait_reached()
    stopper.wait_reached()
    queue.send(periodic)  # sent again during its run: dropped with its type
    stopper.open()
    while not queue.blacklist:
        threading.Event().wait(0.001)
    slow.open()
    assert queue.join(LIMIT)
    driver.advance(10)
    assert (queue.stats().done, queue.occupied) == (1, 0)


def test_stop_type_without_a_type_stops_the_envelope_with_a_warning(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    queue = run_once(driver, Diary(invoke=StopType()), interval=1)
    assert (queue.blacklist, queue.occupied) == (frozenset(), 0)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "no type" in caplog.text


@pytest.mark.parametrize("place", ["before", "invoke", "after"])
def test_a_panic_is_logged_and_told_and_ends_the_envelope(
    driver: Driver, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    diary = Diary(**{place: SystemExit("out")})
    queue = run_once(driver, diary, interval=1)
    assert diary.entries[-1] == "failure"
    assert isinstance(diary.errors[0], SystemExit)
    stats = queue.stats()
    assert (stats.failed, stats.panicked, stats.occupied) == (1, 1, 0)
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.exc_info is not None
    queue.send(driver.envelope())
    assert queue.join(LIMIT), "the worker goes on"


def test_the_decision_after_a_panic_is_ignored(driver: Driver) -> None:
    def panic(ctx: Context, envelope: Envelope[Any]) -> None:
        raise SystemExit

    queue = driver.queue()
    queue.send(driver.envelope(panic, failure_hook=lambda ctx, envelope, error: retry_now()))
    assert queue.join(LIMIT)
    assert (queue.stats().panicked, queue.occupied) == (1, 0)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    __repr__ = __str__


def test_an_error_without_a_text_is_settled_and_logged(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    queue = run_once(driver, Diary(invoke=Unprintable()))
    assert (queue.stats().failed, queue.occupied) == (1, 0)
    assert "Unprintable" in caplog.text


def test_retry_now_and_retry_after_run_it_again_and_count_attempts(driver: Driver) -> None:
    attempts: list[tuple[int, float]] = []
    decisions = iter([retry_now(), retry_after(5), retry_after(7)])

    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        attempts.append((ctx.attempt, driver.clock.now()))
        if len(attempts) < 4:
            raise ValueError

    queue = driver.queue()
    queue.send(driver.envelope(fail, failure_hook=lambda ctx, envelope, error: next(decisions)))
    driver.advance(20)
    assert attempts == [(1, 0), (2, 0), (3, 5), (4, 12)]
    stats = queue.stats()
    assert (stats.failed, stats.retried, stats.done, stats.occupied) == (3, 3, 1, 0)


@pytest.mark.parametrize("answer", [drop(), None, "retry", 5, True])
def test_anything_but_a_retry_drops_it_and_the_next_attempt_is_the_first(driver: Driver, answer: Any) -> None:
    attempts: list[int] = []

    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        attempts.append(ctx.attempt)
        raise ValueError

    queue = driver.queue()
    envelope = driver.envelope(fail, failure_hook=lambda ctx, envelope, error: answer)
    for _ in range(2):
        queue.send(envelope)
        assert queue.join(LIMIT)
    assert attempts == [1, 1]
    assert (queue.stats().dropped, queue.occupied) == (2, 0)


@pytest.mark.parametrize(
    ("hook", "level"),
    [
        (None, "WARNING"),
        (lambda *_: None, "WARNING"),
        (lambda *_: drop(), "INFO"),
        (lambda *_: retry_after(9), "INFO"),
    ],
)
def test_every_failure_leaves_one_line_in_the_log(
    driver: Driver, caplog: pytest.LogCaptureFixture, hook: Any, level: str
) -> None:
    caplog.set_level(logging.INFO, "rate_envelope_queue")

    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        raise ValueError("first\nsecond")

    queue = driver.queue()
    queue.send(driver.envelope(fail, failure_hook=hook, type="mail", id="a\nb"))
    assert queue.join(LIMIT)
    (record,) = caplog.records
    assert record.levelname == level
    message = record.getMessage()
    assert message.startswith("[rate-envelope-queue]")
    assert "\n" not in message
    assert "mail" in message
    assert record.exc_info is not None


def test_an_answer_of_the_failure_hook_that_is_no_decision_is_logged(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        raise ValueError

    queue = driver.queue()
    queue.send(driver.envelope(fail, failure_hook=lambda *_: Unprintable()))
    assert queue.join(LIMIT)
    assert "failure hook has decided nothing" in caplog.text
    assert "retry_after(...) or None, got a value of type Unprintable" in caplog.text
    assert queue.stats().dropped == 1


def test_a_hook_may_be_a_coroutine_function_in_asyncio_only(driver: Driver) -> None:
    async def hook(ctx: Context, envelope: Envelope[Any]) -> None:
        called.append(ctx.attempt)

    called: list[int] = []
    queue = driver.queue()
    envelope = driver.envelope(success_hook=hook)
    if driver.is_async:
        queue.send(envelope)
        assert queue.join(LIMIT)
        assert called == [1]
    else:
        with pytest.raises(BadFieldsError, match="AsyncRateEnvelopeQueue"):
            queue.send(envelope)
        assert queue.occupied == 0


def test_hooks_get_the_decision_type_right() -> None:
    assert isinstance(retry_after(1), Decision)
    for wrong in (0, -1, float("inf"), float("nan"), "1", None, True):
        with pytest.raises(ValueError, match="seconds"):
            retry_after(wrong)  # type: ignore[arg-type]


# From inside


def test_stop_from_inside_an_envelope_begins_the_stop_and_returns_false(driver: Driver) -> None:
    answers: list[Any] = []
    queue = driver.queue(workers=2, clock=SystemClock())

    def stop(ctx: Context, envelope: Envelope[Any]) -> None:
        answers.append(queue.stop())

    if driver.is_async:
        inner = queue._queue  # type: ignore[attr-defined]

        async def stop_async(ctx: Context, envelope: Envelope[Any]) -> None:
            answers.append(await inner.stop())

        queue.send(Envelope(stop_async))
    else:
        queue.send(Envelope(stop))
    assert queue.join(LIMIT)
    assert queue.stop(LIMIT) is True
    assert answers == [False]


def test_join_from_inside_and_start_while_stopping_from_inside_are_refused(driver: Driver) -> None:
    caught: list[BaseException] = []
    queue = driver.queue(clock=SystemClock())

    def inside(ctx: Context, envelope: Envelope[Any]) -> None:
        for call in (queue.join, queue.stop, queue.start):
            try:
                call()
            except RuntimeError as error:
                caught.append(error)

    async def inside_async(ctx: Context, envelope: Envelope[Any]) -> None:
        inner = queue._queue  # type: ignore[attr-defined]
        for call in (inner.join, inner.stop, inner.start):
            try:
                await call()
            except RuntimeError as error:
                caught.append(error)

    queue.send(Envelope(inside_async if driver.is_async else inside))
    assert queue.join(LIMIT)
    assert queue.stop(LIMIT)
    assert [("join" in str(error), "start" in str(error)) for error in caught] == [
        (True, False),
        (False, True),
    ]


def test_an_envelope_may_send_others_and_itself(driver: Driver) -> None:
    queue = driver.queue()
    runs: list[int] = []

    def again(ctx: Context, envelope: Envelope[Any]) -> None:
        runs.append(1)
        if len(runs) < 3:
            if driver.is_async:
                queue._queue._loop.call_soon_threadsafe(queue._queue.send_nowait, envelope)  # type: ignore[attr-defined]
            else:
                queue.send(envelope)

    queue.send(driver.envelope(again))
    if not driver.is_async:
        assert queue.join(LIMIT)
        assert len(runs) == 3


# Whatever user code does, the envelope is settled and the worker goes on


class Unshowable:
    def __repr__(self) -> str:
        raise SystemExit("no repr")


class RaisesExitAsText(Exception):
    def __str__(self) -> str:
        raise SystemExit("no text")


@pytest.mark.parametrize("id", [1, Unshowable()])
@pytest.mark.parametrize("error", [ValueError(), RaisesExitAsText()])
def test_what_cannot_be_shown_in_the_log_is_settled_all_the_same(
    driver: Driver, id: object, error: Exception
) -> None:
    queue = driver.queue()
    queue.send(driver.envelope(raising(error), id=id))
    assert queue.join(LIMIT)
    queue.send(driver.envelope())
    assert queue.join(LIMIT)
    assert (queue.stats().failed, queue.stats().done, queue.occupied) == (1, 1, 0)


def test_a_schedule_or_limiter_that_raises_ends_the_envelope_and_not_the_worker(driver: Driver) -> None:
    class Broken:
        interval = 0.0
        follows_wall = False

        def first_due(self, now: float, wall: object) -> tuple[float, None]:
            return now, None

        def next_due(self, now: float, wall: object, beat: object) -> tuple[float, None]:
            raise RuntimeError("no next time")

        def when(self, item: object) -> float:
            return 1.0

        def forget(self, item: object) -> None:
            raise RuntimeError("cannot forget")

        def retries(self, item: object) -> int:
            return 0

    queue = driver.queue(on_periodic_error="backoff", limiter=Broken())
    queue.send(driver.envelope(schedule=Broken()), driver.envelope(raising(ValueError())))
    assert queue.join(LIMIT)
    queue.send(driver.envelope())
    assert queue.join(LIMIT)
    assert queue.occupied == 0


def test_a_sync_invoke_may_have_a_coroutine_for_a_failure_hook_only(driver: Driver) -> None:
    threads: list[threading.Thread] = []

    async def on_failure(ctx: Context, envelope: Envelope[Any], error: Exception) -> None: ...

    queue = driver.queue()
    invoke = lambda ctx, envelope: threads.append(threading.current_thread())  # noqa: E731
    envelope = Envelope(invoke, failure_hook=on_failure)
    if not driver.is_async:
        with pytest.raises(BadFieldsError, match="failure_hook="):
            queue.send(envelope)
        return
    queue.send(envelope)
    assert queue.join(LIMIT)
    assert queue.stats().done == 1
    assert threads[0].name.startswith("q-thread")
