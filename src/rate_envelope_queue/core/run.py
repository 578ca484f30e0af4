"""One run of an envelope, written once for both drivers: a generator that yields the calls to make.

    before hook → stamps(invoke) → after hook → success hook or failure hook

A driver makes each call (and awaits it, in asyncio), sends the result in or throws the error in, and gets an
Outcome at the end. Running and recording are separate: nothing here changes the queue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .._checks import duration
from ..context import Context, HookContext
from ..decision import Choice, Decision, drop
from ..errors import BadFieldsError, RateLimited, StopEnvelope, StopType
from .verdict import Ending

if TYPE_CHECKING:
    from ..envelope import Envelope, Handling, Invoker

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of the user's, and its arguments; the first is its context."""
Now = Callable[[], float]


class Interrupter(Protocol):
    """A worker that can break off what a run awaits."""

    def interrupt(self, run: Run) -> None:
        """Break it off, if it is still under way; from any thread."""

    def within(self, context: Context, awaitable: Awaitable[Any]) -> Awaitable[Any]:
        """Await it, but break it off when the context is done."""


class Run(Context):
    """A run under way: the context that user code gets, and what the queue remembers until it ends."""

    __slots__ = ("again", "began_at", "envelope", "is_given_up", "report", "worker")

    envelope: Envelope[Any]
    began_at: float
    again: tuple[Envelope[Any], float] | None
    """Sent again meanwhile: what runs next, and not before when."""
    is_given_up: bool
    """Cancelled for good: finished after this run, whatever comes of it."""
    report: Context | None
    """The context of its success or failure hook, while that is called."""
    worker: Interrupter | None
    """Who can interrupt it; None where nobody can."""

    def __init__(self) -> None:
        """Empty: `WorkQueue.take` fills it, because a call costs as much as the filling, and there is one for each run."""

    def cancel(self, reason: str = "the context was cancelled") -> None:
        """Be done from now on; so is a hook that reports this run right now."""
        super().cancel(reason)
        if self.report is not None:
            self.report.cancel(reason)
        if self.worker is not None:
            self.worker.interrupt(self)


@dataclass(frozen=True, slots=True)
class HookBudget:
    """How long a hook may take: a fraction of the envelope's deadline, but at least the floor."""

    fraction: float = 0.5
    floor: float = 0.8

    def __post_init__(self) -> None:
        object.__setattr__(self, "floor", duration("hook_budget.floor", self.floor))
        fraction = duration("hook_budget.fraction", self.fraction)
        if fraction > 1:
            raise BadFieldsError(f"hook_budget.fraction must be between 0 and 1, got {self.fraction!r}")
        object.__setattr__(self, "fraction", fraction)

    def seconds(self, deadline: float) -> float:
        """The budget of one hook of an envelope with this deadline."""
        return max(self.fraction * deadline, self.floor)


class Note(NamedTuple):
    """Something to log that changes nothing else."""

    text: str
    error: BaseException


class Outcome(NamedTuple):
    """How a run ended, and what its failure hook decided."""

    ending: Ending
    error: BaseException | None = None
    decision: Decision | None = None
    notes: tuple[Note, ...] = ()

    @property
    def choice(self) -> Choice | None:
        """The decision on an error; `drop` where the hook made none."""
        if self.ending is not Ending.ERROR:
            return None
        return (self.decision or drop()).choice


SUCCEEDED = Outcome(Ending.SUCCESS)
_STOPS = frozenset({Ending.STOP_ENVELOPE, Ending.STOP_TYPE})


def classify(error: BaseException) -> Ending:
    """What an exception out of a before hook, the call or an after hook means."""
    if isinstance(error, StopType):
        return Ending.STOP_TYPE
    if isinstance(error, StopEnvelope):
        return Ending.STOP_ENVELOPE
    if isinstance(error, RateLimited):
        return Ending.RATE_LIMITED
    return Ending.ERROR if isinstance(error, Exception) else Ending.PANIC


def steps(
    run: Run, handling: Handling, invoke: Invoker, budget: HookBudget, now: Now
) -> Generator[Call, Any, Outcome]:
    """A whole run."""
    envelope = run.envelope
    ending, error, notes = Ending.SUCCESS, None, []
    try:
        if handling.before_hook is not None:
            yield handling.before_hook, (_within(run, handling, budget, now), envelope)
            run.raise_if_done()
        yield invoke, (run, envelope)
    except BaseException as raised:
        ending, error = classify(raised), raised
    if handling.after_hook is not None and (ending is Ending.SUCCESS or ending in _STOPS):
        try:
            yield handling.after_hook, (_within(run, handling, budget, now), envelope)
        except BaseException as raised:
            meant = classify(raised)
            if ending in _STOPS or meant is Ending.ERROR:
                notes.append(Note("after hook raised, which changes nothing", raised))
            else:
                ending, error = meant, raised
    return (yield from report(run, handling, ending, error, budget, now, notes))


def report(
    run: Run,
    handling: Handling,
    ending: Ending,
    error: BaseException | None,
    budget: HookBudget,
    now: Now,
    notes: list[Note],
) -> Generator[Call, Any, Outcome]:
    """The end of a run: tell the success or the failure hook, with a budget of its own."""
    decision = None
    if ending is Ending.SUCCESS and run.done:
        ending, error = Ending.ERROR, run.error  # too late or cancelled, though nothing was raised
    if ending is Ending.SUCCESS:
        hook = handling.success_hook
    elif ending in (Ending.ERROR, Ending.PANIC):
        hook = handling.failure_hook
    else:
        hook = None
    if hook is not None:
        run.report = _afresh(run, handling, budget, now)
        try:
            answer = yield (
                hook,
                (run.report, run.envelope) if error is None else (run.report, run.envelope, error),
            )
        except BaseException as raised:
            name = "success" if ending is Ending.SUCCESS else "failure"
            notes.append(Note(f"{name} hook raised, which changes nothing", raised))
        else:
            if ending is Ending.ERROR and isinstance(answer, Decision):
                decision = answer
        run.report = None
    return Outcome(ending, error, decision, tuple(notes))


def _within(run: Run, handling: Handling, budget: HookBudget, now: Now) -> Context:
    """The context of a before or after hook: its budget, within the run's deadline."""
    seconds = budget.seconds(handling.deadline)
    return HookContext(run, until=now() + seconds, allowed=seconds)


def _afresh(run: Run, handling: Handling, budget: HookBudget, now: Now) -> Context:
    """The context of a success or failure hook: its budget, however late the run is."""
    context = Context(clock=run._clock)
    context.attempt = run.attempt
    context._allowed = budget.seconds(handling.deadline)
    context._until = now() + context._allowed
    return context
