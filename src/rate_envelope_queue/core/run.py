"""One run of an envelope, written once for both drivers: a generator that yields the calls to make.

    before hook → stamps(invoke) → after hook → success hook or failure hook

A driver makes each call (and awaits it, in asyncio), leaves what came of it in the run, and finds an Outcome
there at the end. Running and recording are separate: nothing here changes the queue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .._checks import duration
from ..context import Context, HookContext, ReportContext
from ..decision import Choice, Decision, drop
from ..errors import BadFieldsError, RateLimited, StopEnvelope, StopType
from .verdict import Ending

if TYPE_CHECKING:
    from ..envelope import Envelope, Handling, Invoker
    from ..schedule import Beat

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of the user's, and its arguments; the first is its context."""
Now = Callable[[], float]
Again = tuple["Envelope[Any]", float]
"""An envelope sent again while it runs, and when it is to run."""


class Interrupter(Protocol):
    """A worker that can break off what a run awaits."""

    def interrupt(self, run: Run) -> None:
        """Break it off, if it is still under way; from any thread."""

    def within(self, context: Context, awaitable: Awaitable[Any]) -> Awaitable[Any]:
        """Await it, but break it off when the context is done."""


class Run(Context):
    """A run under way: the context that user code gets, and what the queue remembers until it ends."""

    __slots__ = (
        "again",
        "answer",
        "beat",
        "began_at",
        "envelope",
        "is_last",
        "outcome",
        "raised",
        "report",
        "worker",
    )

    envelope: Envelope[Any]
    began_at: float
    beat: Beat
    """What its schedule remembered when it was taken."""
    again: Again | None
    """Sent again meanwhile: what runs next, and not before when."""
    is_last: bool
    """Cancelled for good: finished after this run, whatever comes of it."""
    report: Context | None
    """The context of its success or failure hook, while that is called."""
    worker: Interrupter | None
    """What can interrupt it; None where nothing can."""

    answer: Any
    raised: BaseException | None
    outcome: Outcome
    """Where a driver and `steps` talk to each other; unset until then."""

    if TYPE_CHECKING:

        def __init__(self) -> None:
            """Empty: `WorkQueue.take` fills it."""
    else:
        # Why: a call costs as much as the filling, and there is one for each run.
        __init__ = object.__init__

    def cancel(self, reason: str = "the context was cancelled") -> None:
        """Be done from now on; so is a hook that reports this run right now."""
        super().cancel(reason)
        report = self.report  # Why once: its worker may take it away meanwhile
        if report is not None:
            report.cancel(reason)
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
        seconds = self.fraction * deadline
        return max(self.floor, seconds)


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


_SUCCESS = Ending.SUCCESS  # Why: to look a member of an Enum up takes long, and each run does it
SUCCEEDED = Outcome(_SUCCESS)
_STOPS = (Ending.STOP_ENVELOPE, Ending.STOP_TYPE)
_FAILURES = (Ending.ERROR, Ending.PANIC)
_NOTHING: Any = None  # Why Any: the driver puts something else there while `steps` is suspended


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
    run: Run,
    handling: Handling,
    invoke: Invoker | None,
    error: BaseException | None,
    budget: HookBudget,
    now: Now,
) -> Iterator[Call]:
    """The calls of a whole run; or, without an invoke, those after it was called and raised the error or none.

    The driver leaves the answer of each call in `run.answer` or what it raised in `run.raised`, and finds the
    end in `run.outcome`. (Values, not send and throw: a generator that is only iterated costs a third.)
    """
    envelope = run.envelope
    seconds = budget.seconds(handling.deadline)
    run.raised = error
    if invoke is not None:
        if handling.before_hook is not None:
            yield handling.before_hook, (HookContext(run, run.began_at + seconds, seconds), envelope)
            if run.raised is None and (run._cancelled is not None or run._until <= now()):
                run.raised = run.error  # no time is left to invoke
        if run.raised is None:
            yield invoke, (run, envelope)
    error = run.raised
    ending = _SUCCESS if error is None else classify(error)
    notes: tuple[Note, ...] = ()
    if invoke is not None and handling.after_hook is not None and (error is None or ending in _STOPS):
        run.raised = _NOTHING
        yield handling.after_hook, (HookContext(run, now() + seconds, seconds), envelope)
        if run.raised is not None:
            meant = classify(run.raised)
            if ending in _STOPS or meant is Ending.ERROR:
                notes = (Note("after hook raised, which changes nothing", run.raised),)
            else:
                ending, error = meant, run.raised
    moment = now()
    if ending is _SUCCESS and (run._cancelled is not None or run._until <= moment):
        ending, error = Ending.ERROR, run.error  # too late or cancelled, though nothing was raised
    decision = None
    hook = handling.success_hook if error is None else handling.failure_hook if ending in _FAILURES else None
    if hook is not None:
        # Why a context afresh: however late the run is, there is time to report it.
        run.report = ReportContext(run, moment + seconds, seconds)
        run.raised = run.answer = _NOTHING
        yield hook, (run.report, envelope) if error is None else (run.report, envelope, error)
        run.report = None
        if run.raised is not None:
            name = "success" if error is None else "failure"
            notes = (*notes, Note(f"{name} hook raised, which changes nothing", run.raised))
        elif ending is Ending.ERROR and isinstance(run.answer, Decision):
            decision = run.answer
        elif ending is Ending.ERROR and run.answer is not None:
            # Why not its repr: that is code of the user's, which may raise.
            kind = type(run.answer).__name__
            wrong = TypeError(
                f"it must return drop(), retry_now(), retry_after(...) or None, got a value of type {kind}"
            )
            notes = (*notes, Note("failure hook has decided nothing", wrong))
    plain = ending is _SUCCESS and not notes
    run.outcome = SUCCEEDED if plain else Outcome(ending, error, decision, notes)
