"""One run, driven by hand: the contract's table *One run*, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rate_envelope_queue.core.run import Outcome, classify
from rate_envelope_queue.core.verdict import Ending
from rate_envelope_queue.decision import Choice, Decision, drop, retry_after, retry_now
from rate_envelope_queue.envelope import Envelope
from rate_envelope_queue.errors import Cancelled, DeadlineExceeded, StopEnvelope, StopType

from .conftest import Panic, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from rate_envelope_queue.envelope import Stamp

# Success


def test_a_success_calls_the_hooks_around_the_invoke_in_order(stage: Stage) -> None:
    outcome = stage.play(stage.envelope())
    assert stage.called == ["before_hook", "invoke", "after_hook", "success_hook"]
    assert outcome == Outcome(Ending.SUCCESS)
    assert outcome.choice is None


def test_without_hooks_only_the_invoke_is_called(stage: Stage) -> None:
    outcome = stage.play(Envelope(stage.part("invoke")))
    assert stage.called == ["invoke"]
    assert outcome == Outcome(Ending.SUCCESS)


@pytest.mark.parametrize("missing", ["before_hook", "after_hook", "success_hook", "failure_hook"])
def test_a_missing_hook_is_skipped(stage: Stage, missing: str) -> None:
    assert stage.play(stage.envelope(**{missing: None})).ending is Ending.SUCCESS
    names = ["before_hook", "invoke", "after_hook", "success_hook"]
    assert stage.called == [name for name in names if name != missing]


def test_everybody_is_handed_the_envelope(stage: Stage) -> None:
    envelope = stage.envelope()
    stage.play(envelope)
    assert set(stage.arguments.values()) == {(envelope,)}


@pytest.mark.parametrize("name", ["before_hook", "invoke", "after_hook", "success_hook"])
def test_what_a_successful_part_returns_changes_nothing(stage: Stage, name: str) -> None:
    envelope = stage.envelope(**{name: stage.part(name, returns=retry_now())})
    assert stage.play(envelope) == Outcome(Ending.SUCCESS)


def test_stamps_surround_the_invoke_and_not_the_hooks(stage: Stage) -> None:
    def stamp(name: str) -> Stamp:
        def around(inner: Callable[..., Any]) -> Callable[..., Any]:
            def call(ctx: Any, envelope: Any) -> Any:
                stage.called.append(f"{name} begins")
                try:
                    return inner(ctx, envelope)
                finally:
                    stage.called.append(f"{name} ends")

            return call

        return around

    stage.play(stage.envelope(), stamps=(stamp("outer"), stamp("inner")))
    assert stage.called == [
        *("before_hook", "outer begins", "inner begins", "invoke", "inner ends", "outer ends"),
        *("after_hook", "success_hook"),
    ]


def test_a_stamp_that_swallows_the_error_makes_it_a_success(stage: Stage) -> None:
    def swallow(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(ctx: Any, envelope: Any) -> None:
            with pytest.raises(OSError, match="down"):
                inner(ctx, envelope)

        return call

    envelope = stage.envelope(invoke=stage.part("invoke", raises=OSError("down")))
    assert stage.play(envelope, stamps=(swallow,)).ending is Ending.SUCCESS


# Errors


def test_a_before_hook_that_raises_is_an_error_and_skips_the_invoke_and_the_after_hook(stage: Stage) -> None:
    error = OSError("down")
    outcome = stage.play(stage.envelope(before_hook=stage.part("before_hook", raises=error)))
    assert stage.called == ["before_hook", "failure_hook"]
    assert outcome == Outcome(Ending.ERROR, error)


def test_an_invoke_that_raises_is_an_error_and_skips_the_after_hook(stage: Stage) -> None:
    error = OSError("down")
    outcome = stage.play(stage.envelope(invoke=stage.part("invoke", raises=error)))
    assert stage.called == ["before_hook", "invoke", "failure_hook"]
    assert outcome == Outcome(Ending.ERROR, error)


def test_a_stamp_that_raises_is_an_error_like_the_invoke(stage: Stage) -> None:
    def refuse(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(ctx: Any, envelope: Any) -> None:
            raise OSError("refused")

        return call

    outcome = stage.play(stage.envelope(), stamps=(refuse,))
    assert stage.called == ["before_hook", "failure_hook"]
    assert outcome.ending is Ending.ERROR


def test_the_failure_hook_is_told_the_error(stage: Stage) -> None:
    error = OSError("down")
    envelope = stage.envelope(invoke=stage.part("invoke", raises=error))
    stage.play(envelope)
    assert stage.arguments["failure_hook"] == (envelope, error)


def test_an_after_hook_that_raises_is_noted_and_the_run_still_a_success(stage: Stage) -> None:
    error = OSError("down")
    outcome = stage.play(stage.envelope(after_hook=stage.part("after_hook", raises=error)))
    assert stage.called == ["before_hook", "invoke", "after_hook", "success_hook"]
    assert outcome.ending is Ending.SUCCESS
    assert outcome.error is None
    assert [note.error for note in outcome.notes] == [error]


# Decisions


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        (retry_now(), Choice.RETRY_NOW),
        (retry_after(5), Choice.RETRY_AFTER),
        (drop(), Choice.DROP),
    ],
)
def test_the_failure_hook_decides(stage: Stage, answer: Decision, choice: Choice) -> None:
    failure_hook = stage.part("failure_hook", returns=answer)
    outcome = stage.play(
        stage.envelope(invoke=stage.part("invoke", raises=OSError()), failure_hook=failure_hook)
    )
    assert outcome.decision is answer
    assert outcome.choice is choice


@pytest.mark.parametrize("answer", [None, "retry", 5, True, Choice.RETRY_NOW, retry_now])
def test_any_other_answer_is_no_decision_and_drops(stage: Stage, answer: object) -> None:
    failure_hook = stage.part("failure_hook", returns=answer)
    outcome = stage.play(
        stage.envelope(invoke=stage.part("invoke", raises=OSError()), failure_hook=failure_hook)
    )
    assert outcome.decision is None, "what was not decided is logged louder than a drop()"
    assert outcome.choice is Choice.DROP


def test_without_a_failure_hook_an_error_drops(stage: Stage) -> None:
    outcome = stage.play(stage.envelope(invoke=stage.part("invoke", raises=OSError()), failure_hook=None))
    assert outcome.decision is None
    assert outcome.choice is Choice.DROP


@pytest.mark.parametrize("error", [OSError(), StopEnvelope(), StopType(), Panic()])
def test_a_failure_hook_that_raises_is_noted_and_drops(stage: Stage, error: BaseException) -> None:
    real = ValueError("the real one")
    failure_hook = stage.part("failure_hook", raises=error)
    outcome = stage.play(stage.envelope(invoke=stage.part("invoke", raises=real), failure_hook=failure_hook))
    assert (outcome.ending, outcome.error, outcome.choice) == (Ending.ERROR, real, Choice.DROP)
    assert [note.error for note in outcome.notes] == [error]


@pytest.mark.parametrize("error", [OSError(), StopEnvelope(), StopType(), Panic()])
def test_a_success_hook_that_raises_is_noted_and_changes_nothing(stage: Stage, error: BaseException) -> None:
    outcome = stage.play(stage.envelope(success_hook=stage.part("success_hook", raises=error)))
    assert (outcome.ending, outcome.error) == (Ending.SUCCESS, None)
    assert [note.error for note in outcome.notes] == [error]
    assert stage.called[-1] == "success_hook", "the failure hook is not told"


def test_both_an_after_hook_and_a_success_hook_that_raise_are_noted(stage: Stage) -> None:
    first, second = OSError("after"), OSError("success")
    outcome = stage.play(
        stage.envelope(
            after_hook=stage.part("after_hook", raises=first),
            success_hook=stage.part("success_hook", raises=second),
        )
    )
    assert [note.error for note in outcome.notes] == [first, second]


# Stops


STOPS = [(StopEnvelope, Ending.STOP_ENVELOPE), (StopType, Ending.STOP_TYPE)]


@pytest.mark.parametrize(("signal", "ending"), STOPS)
@pytest.mark.parametrize(
    ("place", "called"),
    [
        ("before_hook", ["before_hook", "after_hook"]),
        ("invoke", ["before_hook", "invoke", "after_hook"]),
        ("after_hook", ["before_hook", "invoke", "after_hook"]),
    ],
)
def test_a_stop_calls_the_after_hook_but_no_success_or_failure_hook(
    stage: Stage, signal: type[Exception], ending: Ending, place: str, called: list[str]
) -> None:
    raised = signal()
    outcome = stage.play(stage.envelope(**{place: stage.part(place, raises=raised)}))
    assert stage.called == called
    assert outcome == Outcome(ending, raised)
    assert outcome.choice is None


@pytest.mark.parametrize(("signal", "ending"), STOPS)
@pytest.mark.parametrize("place", ["before_hook", "invoke"])
@pytest.mark.parametrize("error", [OSError(), StopEnvelope(), StopType()])
def test_what_the_after_hook_raises_after_a_stop_is_ignored(
    stage: Stage, signal: type[Exception], ending: Ending, place: str, error: BaseException
) -> None:
    raised = signal()
    outcome = stage.play(
        stage.envelope(
            **{place: stage.part(place, raises=raised), "after_hook": stage.part("after_hook", raises=error)}
        )
    )
    assert (outcome.ending, outcome.error) == (ending, raised)
    assert stage.called[-1] == "after_hook"
    assert [note.error for note in outcome.notes] == [error]


@pytest.mark.parametrize(("signal", "ending"), STOPS)
def test_a_stop_needs_no_after_hook(stage: Stage, signal: type[Exception], ending: Ending) -> None:
    envelope = stage.envelope(invoke=stage.part("invoke", raises=signal()), after_hook=None)
    assert stage.play(envelope).ending is ending
    assert stage.called == ["before_hook", "invoke"]


@pytest.mark.parametrize(("signal", "ending"), STOPS)
@pytest.mark.parametrize("place", ["before_hook", "invoke", "after_hook"])
def test_a_stop_wins_over_the_deadline(
    stage: Stage, signal: type[Exception], ending: Ending, place: str
) -> None:
    late = stage.part(place, raises=signal(), takes=9)
    assert stage.play(stage.envelope(deadline=3, **{place: late})).ending is ending


# Panics


@pytest.mark.parametrize("panic", [Panic(), SystemExit()], ids=repr)
@pytest.mark.parametrize(
    ("place", "called"),
    [
        ("before_hook", ["before_hook", "failure_hook"]),
        ("invoke", ["before_hook", "invoke", "failure_hook"]),
        ("after_hook", ["before_hook", "invoke", "after_hook", "failure_hook"]),
    ],
)
def test_a_panic_tells_the_failure_hook_and_ignores_its_decision(
    stage: Stage, panic: BaseException, place: str, called: list[str]
) -> None:
    failure_hook = stage.part("failure_hook", returns=retry_now())
    parts = {"failure_hook": failure_hook, place: stage.part(place, raises=panic)}
    envelope = stage.envelope(**parts)
    outcome = stage.play(envelope)
    assert stage.called == called
    assert stage.arguments["failure_hook"] == (envelope, panic)
    assert (outcome.ending, outcome.error, outcome.decision, outcome.choice) == (
        *(Ending.PANIC, panic),
        *(None, None),
    )


def test_a_panic_in_a_stamp_is_one_of_the_run(stage: Stage) -> None:
    def panics(inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(ctx: Any, envelope: Any) -> None:
            inner(ctx, envelope)
            raise Panic

        return call

    assert stage.play(stage.envelope(), stamps=(panics,)).ending is Ending.PANIC
    assert stage.called == ["before_hook", "invoke", "failure_hook"]


def test_a_failure_hook_that_raises_after_a_panic_is_noted(stage: Stage) -> None:
    panic, error = Panic(), OSError()
    outcome = stage.play(
        stage.envelope(
            invoke=stage.part("invoke", raises=panic),
            failure_hook=stage.part("failure_hook", raises=error),
        )
    )
    assert (outcome.ending, outcome.error) == (Ending.PANIC, panic)
    assert [note.error for note in outcome.notes] == [error]


# What an exception means


class Both(StopEnvelope, StopType):
    """Means the wider of the two."""


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (StopEnvelope(), Ending.STOP_ENVELOPE),
        (StopType(), Ending.STOP_TYPE),
        (Both(), Ending.STOP_TYPE),
        (OSError(), Ending.ERROR),
        (DeadlineExceeded(), Ending.ERROR),
        (Cancelled(), Ending.ERROR),
        (ExceptionGroup("several", [OSError()]), Ending.ERROR),
        (Panic(), Ending.PANIC),
        (SystemExit(), Ending.PANIC),
        (KeyboardInterrupt(), Ending.PANIC),
        (GeneratorExit(), Ending.PANIC),
        (BaseExceptionGroup("several", [Panic()]), Ending.PANIC),
    ],
    ids=repr,
)
def test_an_exception_means(error: BaseException, ending: Ending) -> None:
    assert classify(error) is ending


# A bare call, and what is left to do after it


@pytest.mark.parametrize(("signal", "ending"), STOPS)
def test_a_stop_out_of_a_bare_call_tells_no_hook(
    stage: Stage, signal: type[Exception], ending: Ending
) -> None:
    raised = signal()
    assert stage.report(stage.envelope(), raised) == Outcome(ending, raised)
    assert stage.called == []


@pytest.mark.parametrize(
    ("error", "hook"), [(None, "success_hook"), (OSError(), "failure_hook"), (Panic(), "failure_hook")]
)
def test_the_report_after_a_bare_call_is_that_of_a_whole_run(
    stage: Stage, error: BaseException | None, hook: str
) -> None:
    envelope = stage.envelope(failure_hook=stage.part("failure_hook", returns=retry_now()))
    outcome = stage.report(envelope, error)
    ending = Ending.SUCCESS if error is None else classify(error)
    assert stage.called == [hook]
    assert (outcome.ending, outcome.error) == (ending, error)
    assert (outcome.decision is not None) == (ending is Ending.ERROR)


def test_the_report_of_a_bare_call_sees_that_it_was_cancelled(stage: Stage) -> None:
    envelope = stage.envelope()
    run = stage.run(envelope)
    run.cancel("the queue was terminated")
    outcome = stage.report(envelope, None, run=run)
    assert isinstance(outcome.error, Cancelled)
    assert stage.called == ["failure_hook"]
