"""One run: hooks, stamps, stops, decisions, deadlines, panics, and what the log says."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rate_envelope_queue import (
    BadFieldsError,
    Cancelled,
    Context,
    DeadlineExceeded,
    Decision,
    Envelope,
    EnvelopeBlacklistedError,
    HookBudget,
    StopEnvelope,
    StopType,
    SystemClock,
    before_after_stamp,
    drop,
    logging_stamp,
    retry_after,
    retry_now,
    stamp,
)

from ..support.gates import Gate
from ..support.waiting import LIMIT
from .conftest import Driver


class Diary:
    """Hooks that write down when they were called and may raise."""

    def __init__(self, **raises: BaseException) -> None:
        self.entries: list[str] = []
        self.errors: list[BaseException] = []
        self.contexts: dict[str, Context] = {}
        self._raises = raises

    def __getattr__(self, name: str) -> Callable[..., None]:
        def called(ctx: Context, envelope: Envelope[Any], *error: BaseException) -> None:
            self.entries.append(name)
            self.errors.extend(error)
            self.contexts[name] = ctx
            if name in self._raises:
                raise self._raises[name]

        return called

    def hooks(self, *, without: str = "") -> dict[str, Any]:
        names = ("before_hook", "after_hook", "success_hook", "failure_hook")
        return {name: getattr(self, name.removesuffix("_hook")) for name in names if name != without}


def run_once(driver: Driver, diary: Diary, **options: Any) -> Any:
    """The queue after one envelope with all hooks has run."""
    queue = driver.queue(**options.pop("queue", {}))
    hooks = {name: driver.kind(hook) for name, hook in diary.hooks().items()}
    queue.send(driver.envelope(diary.invoke, **{**hooks, **options}))
    assert queue.join(LIMIT)
    return queue


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


# Deadlines and budgets


def test_a_run_that_returns_late_has_exceeded_its_deadline(driver: Driver) -> None:
    """Code that does not look at its context still gets the outcome; in asyncio a coroutine is cancelled before."""
    diary = Diary()

    def late(ctx: Context, envelope: Envelope[Any]) -> None:
        diary.entries.append("invoke")
        driver.clock._instant += 5  # the clock moves while it works

    queue = driver.queue()
    queue.send(driver.envelope(late, deadline=3, **diary.hooks(without="before_hook")))
    assert queue.join(LIMIT)
    assert diary.entries == ["invoke", "after", "failure"]
    assert isinstance(diary.errors[0], DeadlineExceeded)
    assert queue.stats().failed == 1
    assert diary.contexts["after"].done, "the after hook sees that it is too late"


def test_the_failure_hook_gets_a_fresh_context_however_late_the_run_was(driver: Driver) -> None:
    seen: list[tuple[bool, float]] = []

    def late(ctx: Context, envelope: Envelope[Any]) -> None:
        driver.clock._instant += 50

    def on_failure(ctx: Context, envelope: Envelope[Any], error: Exception) -> None:
        seen.append((ctx.done, ctx.remaining()))

    queue = driver.queue(hook_budget=HookBudget(fraction=0.5, floor=0.8))
    queue.send(driver.envelope(late, deadline=4, failure_hook=on_failure))
    assert queue.join(LIMIT)
    assert seen == [(False, 2.0)]


def test_hook_budgets_are_a_fraction_of_the_deadline_with_a_floor(driver: Driver) -> None:
    seen: dict[str, float] = {}

    def note(name: str) -> Callable[..., None]:
        return lambda ctx, envelope: seen.update({name: ctx.remaining()})

    queue = driver.queue(hook_budget=HookBudget(fraction=0.25, floor=0.5))
    queue.send(driver.envelope(note("invoke"), before_hook=note("long"), deadline=8))
    queue.send(driver.envelope(success_hook=note("short"), deadline=1))
    queue.send(driver.envelope(after_hook=note("within"), deadline=0.2))
    queue.send(driver.envelope(success_hook=note("none")))
    assert queue.join(LIMIT)
    assert seen == {"invoke": 8, "long": 2, "short": 0.5, "within": 0.2, "none": 0.5}


def test_a_real_error_wins_over_the_deadline(driver: Driver) -> None:
    diary = Diary()

    def late(ctx: Context, envelope: Envelope[Any]) -> None:
        driver.clock._instant += 5
        raise ValueError("real")

    queue = driver.queue()
    queue.send(driver.envelope(late, deadline=3, failure_hook=diary.failure))
    assert queue.join(LIMIT)
    assert isinstance(diary.errors[0], ValueError)


def test_a_stop_wins_over_the_deadline(driver: Driver) -> None:
    def late(ctx: Context, envelope: Envelope[Any]) -> None:
        driver.clock._instant += 5
        raise StopEnvelope

    queue = driver.queue()
    queue.send(driver.envelope(late, deadline=3))
    assert queue.join(LIMIT)
    assert (queue.stats().failed, queue.occupied) == (0, 0)


def test_a_before_hook_that_uses_up_the_deadline_leaves_no_time_to_invoke(driver: Driver) -> None:
    diary = Diary()

    def late(ctx: Context, envelope: Envelope[Any]) -> None:
        driver.clock._instant += 5

    queue = driver.queue()
    hooks = diary.hooks(without="before_hook")
    queue.send(driver.envelope(diary.invoke, before_hook=late, deadline=3, **hooks))
    assert queue.join(LIMIT)
    assert diary.entries == ["failure"]
    assert isinstance(diary.errors[0], DeadlineExceeded)


def test_code_can_co_operate_with_its_deadline(driver: Driver) -> None:
    seen: list[Any] = []

    looked = threading.Event()

    def patient(ctx: Context, envelope: Envelope[Any]) -> None:
        seen.append(ctx.remaining())
        seen.append(ctx.wait(1))
        seen.append(ctx.remaining())
        seen.append(ctx.wait(100))
        seen.append((ctx.done, ctx.remaining()))
        looked.set()
        ctx.raise_if_done()

    queue = driver.queue()
    queue.send(driver.envelope(patient, deadline=3))
    driver.advance(10)
    assert queue.join(LIMIT)
    assert queue.stats().failed == 1
    assert looked.wait(LIMIT)
    assert seen == [3, False, 2, True, (True, 0)]


def test_a_cancelled_run_that_returns_has_failed_with_cancelled(driver: Driver, gate: Gate) -> None:
    diary = Diary()
    queue = driver.queue()
    envelope = driver.envelope(gate.pass_through, failure_hook=diary.failure)
    queue.send(envelope)
    gate.wait_reached()
    queue.cancel(envelope)
    gate.open()
    assert queue.join(LIMIT)
    assert isinstance(diary.errors[0], Cancelled)


def test_a_context_has_no_deadline_unless_the_envelope_has(driver: Driver) -> None:
    seen: list[float] = []
    queue = driver.queue()
    queue.send(driver.envelope(lambda ctx, envelope: seen.append(ctx.remaining())))
    assert queue.join(LIMIT)
    assert seen == [float("inf")]


# Stamps


def test_stamps_of_the_queue_are_outside_and_the_first_is_outermost(driver: Driver) -> None:
    order: list[str] = []

    def noting(name: str) -> Any:
        @stamp
        def noted(ctx: Context, envelope: Envelope[Any]) -> Any:
            order.append(f"{name}>")
            yield
            order.append(f"<{name}")

        return noted

    queue = driver.queue(stamps=[noting("q1"), noting("q2")])
    work = lambda ctx, envelope: order.append("invoke")  # noqa: E731
    queue.send(driver.envelope(work, stamps=[noting("e1"), noting("e2")]))
    assert queue.join(LIMIT)
    assert order == ["q1>", "q2>", "e1>", "e2>", "invoke", "<e2", "<e1", "<q2", "<q1"]
    assert queue.stats().done == 1


def test_a_stamp_sees_the_error_of_the_inner_call_and_may_swallow_it(driver: Driver) -> None:
    @stamp
    def forgiving(ctx: Context, envelope: Envelope[Any]) -> Any:
        try:
            yield
        except ValueError as error:
            seen.append(str(error))

    seen: list[str] = []
    queue = driver.queue(stamps=[forgiving])
    queue.send(driver.envelope(_raise(ValueError("forgiven"))))
    queue.send(driver.envelope(_raise(TypeError("not forgiven"))))
    assert queue.join(LIMIT)
    assert seen == ["forgiven"]
    assert (queue.stats().done, queue.stats().failed) == (1, 1)


def test_a_stamp_may_replace_the_error(driver: Driver) -> None:
    @stamp
    def renaming(ctx: Context, envelope: Envelope[Any]) -> Any:
        try:
            yield
        except ValueError:
            raise KeyError("renamed") from None

    diary = Diary()
    queue = driver.queue(stamps=[renaming])
    queue.send(driver.envelope(_raise(ValueError()), failure_hook=diary.failure))
    assert queue.join(LIMIT)
    assert isinstance(diary.errors[0], KeyError)


def _raise(error: BaseException) -> Callable[..., None]:
    def invoke(ctx: Context, envelope: Envelope[Any]) -> None:
        raise error

    return invoke


@pytest.mark.parametrize("yields", [0, 2])
def test_a_stamp_that_does_not_yield_exactly_once_fails_the_run(driver: Driver, yields: int) -> None:
    @stamp
    def wrong(ctx: Context, envelope: Envelope[Any]) -> Any:
        for _ in range(yields):
            yield

    diary = Diary()
    queue = driver.queue(stamps=[wrong])
    queue.send(driver.envelope(failure_hook=diary.failure))
    assert queue.join(LIMIT)
    assert isinstance(diary.errors[0], RuntimeError)
    assert "yield" in str(diary.errors[0])


def test_a_plain_stamp_takes_the_inner_call_and_returns_the_outer(driver: Driver) -> None:
    seen: list[object] = []

    def plain(inner: Any) -> Any:
        def call(ctx: Context, envelope: Envelope[Any]) -> Any:
            seen.append(envelope.id)
            return inner(ctx, envelope)

        return call

    queue = driver.queue(stamps=[plain])
    queue.send(driver.envelope(id=1))
    assert queue.join(LIMIT)
    assert seen == [1]
    assert queue.stats().done == 1


def test_before_after_stamp_calls_both_and_skips_after_on_an_error(driver: Driver) -> None:
    order: list[str] = []
    around = before_after_stamp(
        driver.kind(lambda ctx, envelope: order.append("before")),
        driver.kind(lambda ctx, envelope: order.append("after")),
        budget=2,
    )
    queue = driver.queue(stamps=[around])
    queue.send(driver.envelope(lambda ctx, envelope: order.append("invoke")))
    assert queue.join(LIMIT)
    assert order == ["before", "invoke", "after"]
    order.clear()
    queue.send(driver.envelope(_raise(ValueError())))
    assert queue.join(LIMIT)
    assert order == ["before"]


def test_logging_stamp_tells_type_id_duration_and_error(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    queue = driver.queue(stamps=[logging_stamp(logging.getLogger("mine"))])
    queue.send(driver.envelope(type="mail", id=7))
    queue.send(driver.envelope(_raise(ValueError("broken")), type="mail", id=8))
    assert queue.join(LIMIT)
    first, second = (record.getMessage() for record in caplog.records if record.name == "mine")
    assert all(part in first for part in ("'mail'", "7", " s: ok"))
    assert all(part in second for part in ("'mail'", "8", "ValueError: broken"))


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


def test_a_stamp_that_raises_when_it_is_applied_fails_the_run(driver: Driver) -> None:
    def bad(inner: Any) -> Any:
        raise ValueError("not applicable")

    diary = Diary()
    queue = driver.queue()
    queue.send(driver.envelope(stamps=[bad], failure_hook=diary.failure))
    assert queue.join(LIMIT)
    assert isinstance(diary.errors[0], ValueError)


@pytest.mark.parametrize("id", [1, Unshowable()])
@pytest.mark.parametrize("error", [ValueError(), RaisesExitAsText()])
def test_what_cannot_be_shown_in_the_log_is_settled_all_the_same(
    driver: Driver, id: object, error: Exception
) -> None:
    queue = driver.queue()
    queue.send(driver.envelope(_raise(error), id=id))
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
    queue.send(driver.envelope(schedule=Broken()), driver.envelope(_raise(ValueError())))
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
