"""Deadlines, cancellation and hook budgets of a run, with a clock that only the test moves."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from rate_envelope_queue.core.run import HookBudget, Outcome
from rate_envelope_queue.core.verdict import Ending
from rate_envelope_queue.decision import Choice, retry_after
from rate_envelope_queue.errors import BadFieldsError, Cancelled, DeadlineExceeded

from .conftest import Panic, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from rate_envelope_queue.context import Context

# Deadlines and cancellation


@pytest.mark.parametrize("place", ["invoke", "after_hook"])
@pytest.mark.parametrize("takes", [3, 3.001, 99])
def test_a_run_that_ends_late_has_exceeded_its_deadline_though_nothing_was_raised(
    stage: Stage, place: str, takes: float
) -> None:
    outcome = stage.play(stage.envelope(deadline=3, **{place: stage.part(place, takes=takes)}))
    assert stage.called == ["before_hook", "invoke", "after_hook", "failure_hook"]
    assert outcome.ending is Ending.ERROR
    assert isinstance(outcome.error, DeadlineExceeded)
    assert stage.arguments["failure_hook"][1] is outcome.error


def test_a_run_that_ends_in_time_is_a_success(stage: Stage) -> None:
    assert stage.play(stage.envelope(deadline=3, invoke=stage.part("invoke", takes=2.999))).error is None


def test_without_a_deadline_no_run_is_late(stage: Stage) -> None:
    assert stage.play(stage.envelope(invoke=stage.part("invoke", takes=10**9))).error is None


def test_a_late_before_hook_leaves_no_time_for_the_invoke(stage: Stage) -> None:
    outcome = stage.play(stage.envelope(deadline=3, before_hook=stage.part("before_hook", takes=3)))
    assert "invoke" not in stage.called
    assert stage.called[-1] == "failure_hook"
    assert isinstance(outcome.error, DeadlineExceeded)


def test_the_after_hook_of_a_late_invoke_sees_that_its_context_is_done(stage: Stage) -> None:
    stage.play(stage.envelope(deadline=3, invoke=stage.part("invoke", takes=4)))
    assert stage.was_done == {
        "before_hook": False,
        "invoke": False,
        "after_hook": True,
        "failure_hook": False,
    }


@pytest.mark.parametrize("place", ["before_hook", "invoke"])
def test_a_real_error_wins_over_the_deadline(stage: Stage, place: str) -> None:
    error = OSError("down")
    late = stage.part(place, raises=error, takes=9)
    assert stage.play(stage.envelope(deadline=3, **{place: late})) == Outcome(Ending.ERROR, error)


def test_an_after_hook_that_raises_does_not_hide_that_the_run_was_late(stage: Stage) -> None:
    after_hook = stage.part("after_hook", raises=OSError(), takes=9)
    outcome = stage.play(stage.envelope(deadline=3, after_hook=after_hook))
    assert isinstance(outcome.error, DeadlineExceeded)
    assert len(outcome.notes) == 1


def test_a_panic_wins_over_the_deadline(stage: Stage) -> None:
    invoke = stage.part("invoke", raises=Panic(), takes=9)
    assert stage.play(stage.envelope(deadline=3, invoke=invoke)).ending is Ending.PANIC


def test_code_that_looks_raises_the_deadline_itself(stage: Stage) -> None:
    def look(ctx: Context) -> None:
        stage.clock.at += 4
        ctx.raise_if_done()

    outcome = stage.play(stage.envelope(deadline=3, invoke=stage.part("invoke", does=look)))
    assert outcome.ending is Ending.ERROR
    assert isinstance(outcome.error, DeadlineExceeded)


@pytest.mark.parametrize("place", ["before_hook", "invoke", "after_hook"])
def test_a_cancelled_run_that_raises_nothing_ends_in_cancelled(stage: Stage, place: str) -> None:
    envelope = stage.envelope()
    run = stage.run(envelope)
    envelope = stage.envelope(**{place: stage.part(place, does=lambda ctx: run.cancel())})
    outcome = stage.play(envelope, run=run)
    assert outcome.ending is Ending.ERROR
    assert isinstance(outcome.error, Cancelled)
    assert stage.called[-1] == "failure_hook"
    assert ("invoke" in stage.called) == (place != "before_hook")


def test_a_real_error_wins_over_the_cancellation(stage: Stage) -> None:
    error = OSError("down")
    invoke = stage.part("invoke", does=lambda ctx: ctx.cancel(), raises=error)
    assert stage.play(stage.envelope(invoke=invoke)) == Outcome(Ending.ERROR, error)


def test_a_cancellation_wins_over_the_deadline(stage: Stage) -> None:
    invoke = stage.part("invoke", does=lambda ctx: ctx.cancel(), takes=9)
    assert isinstance(stage.play(stage.envelope(deadline=3, invoke=invoke)).error, Cancelled)


def test_a_late_run_may_be_retried(stage: Stage) -> None:
    outcome = stage.play(
        stage.envelope(
            deadline=3,
            invoke=stage.part("invoke", takes=4),
            failure_hook=stage.part("failure_hook", returns=retry_after(5)),
        )
    )
    assert outcome.choice is Choice.RETRY_AFTER


# Contexts and budgets


def test_the_invoke_gets_the_run_itself_as_its_context(stage: Stage) -> None:
    envelope = stage.envelope(deadline=3)
    run = stage.run(envelope)
    stage.play(envelope, run=run)
    assert stage.contexts["invoke"] is run


@pytest.mark.parametrize("name", ["before_hook", "invoke", "after_hook", "success_hook"])
def test_everybody_sees_which_attempt_it_is(stage: Stage, name: str) -> None:
    envelope = stage.envelope()
    stage.play(envelope, run=stage.run(envelope, failures=3))
    assert stage.contexts[name].attempt == 4


def test_the_failure_hook_sees_which_attempt_it_was(stage: Stage) -> None:
    envelope = stage.envelope(invoke=stage.part("invoke", raises=OSError()))
    stage.play(envelope, run=stage.run(envelope, failures=3))
    assert stage.contexts["failure_hook"].attempt == 4


def remaining_in(stage: Stage, name: str, seen: list[float]) -> Callable[..., Any]:
    return stage.part(name, does=lambda ctx: seen.append(ctx.remaining()))


@pytest.mark.parametrize(
    ("deadline", "budget"), [(0, 0.8), (1, 0.8), (1.6, 0.8), (10, 5.0)], ids=["none", "short", "even", "long"]
)
@pytest.mark.parametrize("name", ["before_hook", "after_hook", "success_hook"])
def test_a_hook_has_a_fraction_of_the_deadline_and_at_least_the_floor(
    stage: Stage, name: str, deadline: float, budget: float
) -> None:
    seen: list[float] = []
    stage.play(stage.envelope(deadline=deadline, **{name: remaining_in(stage, name, seen)}))
    assert seen == pytest.approx([budget])


@pytest.mark.parametrize(("takes", "left"), [(2, 5), (6, 4), (9.5, 0.5), (10, 0)])
def test_the_after_hook_also_ends_with_the_deadline(stage: Stage, takes: float, left: float) -> None:
    seen: list[float] = []
    invoke = stage.part("invoke", takes=takes)
    stage.play(stage.envelope(deadline=10, invoke=invoke, after_hook=remaining_in(stage, "after_hook", seen)))
    assert seen == pytest.approx([left])


def test_the_before_hook_also_ends_with_the_deadline(stage: Stage) -> None:
    seen: list[float] = []
    stage.play(stage.envelope(deadline=0.5, before_hook=remaining_in(stage, "before_hook", seen)))
    assert seen == pytest.approx([0.5])


@pytest.mark.parametrize("reason", ["late", "cancelled", "panic", "error"])
def test_the_failure_hook_has_a_fresh_budget_however_the_run_ended(stage: Stage, reason: str) -> None:
    seen: list[float] = []
    parts = {
        "late": stage.part("invoke", takes=99),
        "cancelled": stage.part("invoke", does=lambda ctx: ctx.cancel()),
        "panic": stage.part("invoke", raises=Panic(), takes=99),
        "error": stage.part("invoke", raises=OSError(), takes=9),
    }
    stage.play(
        stage.envelope(
            deadline=10, invoke=parts[reason], failure_hook=remaining_in(stage, "failure_hook", seen)
        )
    )
    assert seen == pytest.approx([5.0])
    assert stage.was_done["failure_hook"] is False


def test_the_success_hook_has_a_fresh_budget(stage: Stage) -> None:
    seen: list[float] = []
    invoke = stage.part("invoke", takes=9.9)
    success_hook = remaining_in(stage, "success_hook", seen)
    stage.play(stage.envelope(deadline=10, invoke=invoke, success_hook=success_hook))
    assert seen == pytest.approx([5.0])


def test_a_success_hook_that_takes_long_does_not_make_the_run_late(stage: Stage) -> None:
    success_hook = stage.part("success_hook", takes=99)
    assert stage.play(stage.envelope(deadline=3, success_hook=success_hook)) == Outcome(Ending.SUCCESS)


@pytest.mark.parametrize("name", ["before_hook", "after_hook"])
def test_a_hook_that_overran_only_its_own_budget_is_let_be(stage: Stage, name: str) -> None:
    assert stage.play(stage.envelope(deadline=10, **{name: stage.part(name, takes=6)})).error is None


@pytest.mark.parametrize("name", ["before_hook", "after_hook", "success_hook", "failure_hook"])
def test_a_hook_can_see_that_its_own_budget_is_spent(stage: Stage, name: str) -> None:
    seen: list[Exception | None] = []

    def overrun(ctx: Context) -> None:
        stage.clock.at += 5
        seen.append(ctx.error)

    parts = {name: stage.part(name, does=overrun)}
    if name == "failure_hook":
        parts["invoke"] = stage.part("invoke", raises=OSError())
    stage.play(stage.envelope(deadline=10, **parts))
    assert [type(error) for error in seen] == [DeadlineExceeded]


@pytest.mark.parametrize("name", ["before_hook", "after_hook", "success_hook", "failure_hook"])
def test_cancelling_the_run_reaches_the_hook_that_is_called_right_now(stage: Stage, name: str) -> None:
    seen: list[Exception | None] = []

    def cancel(ctx: Context) -> None:
        run.cancel()
        seen.append(ctx.error)

    parts = {name: stage.part(name, does=cancel)}
    if name == "failure_hook":
        parts["invoke"] = stage.part("invoke", raises=OSError())
    envelope = stage.envelope(**parts)
    run = stage.run(envelope)
    stage.play(envelope, run=run)
    assert [type(error) for error in seen] == [Cancelled]


def test_the_run_forgets_the_context_of_its_report(stage: Stage) -> None:
    envelope = stage.envelope()
    run = stage.run(envelope)
    stage.play(envelope, run=run)
    assert run.report is None


# Hook budgets as options


@pytest.mark.parametrize(
    "options",
    [
        {"fraction": -0.1},
        {"fraction": 1.1},
        {"fraction": inf},
        {"fraction": float("nan")},
        {"fraction": "half"},
        {"floor": -1},
        {"floor": inf},
        {"floor": None},
    ],
)
def test_a_wrong_hook_budget_is_refused_and_named(options: dict[str, Any]) -> None:
    with pytest.raises(BadFieldsError, match=f"hook_budget.{next(iter(options))}"):
        HookBudget(**options)


def test_the_floor_of_a_hook_budget_may_be_a_timedelta() -> None:
    assert HookBudget(fraction=0, floor=timedelta(seconds=2)).seconds(100) == 2  # type: ignore[arg-type]
