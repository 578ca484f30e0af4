"""From what a handler raised to what becomes of its job: one table, looked up by the kind of error; and the back-off."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from rate_envelope_queue import Cancelled, DeadlineExceeded, RateLimited

from ..errors import (
    BadInputError,
    Cancel,
    Fail,
    ProcessDied,
    Retry,
    SignalTimeout,
    Snooze,
    StepResultError,
    seconds_of,
)
from .job import JobError, Move
from .lease import Claim, Outcome
from .request import LONGEST_DELAY
from .text import clean

_LONGEST_MESSAGE = 2_000
_LONGEST_TRACEBACK = 8_000
_LARGEST_EXPONENT = 60
"""2 to this, times any base, is above any cap."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delay before retry k = 1, 2, … is uniform between 0 and min(cap, base * 2^(k-1)).

    Without jitter it is that bound itself.
    """

    base: float = 1.0
    cap: float = 600.0
    jitter: bool = True

    def __post_init__(self) -> None:
        for field in ("base", "cap"):
            object.__setattr__(self, field, seconds_of(field, getattr(self, field)))
        if not isinstance(self.jitter, bool):
            raise BadInputError("jitter", f"must be True or False, got {self.jitter!r}")

    def bound(self, retry: int) -> float:
        """The longest delay before the given retry; the first is 1."""
        return min(self.cap, self.base * 2.0 ** min(retry - 1, _LARGEST_EXPONENT))

    def delay(self, retry: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
        """The delay before the given retry; the first is 1."""
        return uniform(0.0, self.bound(retry)) if self.jitter else self.bound(retry)


OUTCOMES = {
    Move.SUCCEED: "done",
    Move.RETRY: "retried",
    Move.FAIL: "failed",
    Move.CANCEL: "cancelled",
    Move.SNOOZE: "snoozed",
    Move.SLEEP: "sleeping",
    Move.WAIT: "waiting",
}
"""How logs and traces call what a run came to."""


class Hopeless(Exception):
    """The run cannot succeed, however often it is tried."""


class BrokenJob(Exception):
    """The store holds values of the job that no call lets in."""


class Suspension(BaseException):
    """Ends a run that is to go on later. Why no Exception: a handler that catches those must not stop it."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"{OUTCOMES[outcome.move]}: {outcome.name}")
        self.outcome = outcome


class Carried(Exception):
    """Carries what the library's queue would act on past it: its own signals, and a suspension."""

    def __init__(self, signal: BaseException) -> None:
        super().__init__(str(signal))
        self.signal = signal


class HandlerError(Exception):
    """What a handler raised in a process of its own; its outcome was found there."""

    def __init__(self, outcome: Outcome) -> None:
        error = outcome.error
        super().__init__(OUTCOMES[outcome.move] if error is None else f"{error.type}: {error.message}")
        self.outcome = outcome


def outcome_of(
    error: BaseException,
    claim: Claim,
    backoff: Backoff,
    is_final: Callable[[BaseException], bool] = lambda _: False,
) -> Outcome:
    """What follows a run that raised; errors that are final by the rules of its type fail the job."""
    if isinstance(error, Carried):
        error = error.signal
    for kind, decide in _DECISIONS:
        if isinstance(error, kind):
            return decide(error, claim, backoff)
    return _give_up(error) if is_final(error) else _failed(error, claim, backoff)


def cause_of(error: BaseException) -> BaseException:
    """What the handler raised, or what was wrong, without what it was wrapped in here."""
    if isinstance(error, Carried):
        return error.signal
    return error.__cause__ or error if isinstance(error, Hopeless) else error


def without_group(error: BaseException) -> BaseException:
    """The suspension itself, where a task group made a group of it; else the error as it is."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    suspensions, others = error.split(Suspension)
    if suspensions is None or others is not None:
        return error
    found: BaseException = suspensions
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _give_up(error: BaseException) -> Outcome:
    return Outcome(move=Move.FAIL, error=error_of(error))


def _failed(error: BaseException, claim: Claim, backoff: Backoff, after: float | None = None) -> Outcome:
    """A retry if one is left, after the back-off unless the handler chose a time."""
    if claim.attempts > claim.max_retries:
        return _give_up(error)
    delay = backoff.delay(claim.attempts) if after is None else after
    return Outcome(move=Move.RETRY, error=error_of(error), delay=min(delay, LONGEST_DELAY))


def _snooze(seconds: float, *, cools: bool = False) -> Outcome:
    delay = min(seconds, LONGEST_DELAY)
    return Outcome(move=Move.SNOOZE, delay=delay, cools=delay if cools else 0.0)


def _cancel(reason: str) -> Outcome:
    return Outcome(move=Move.CANCEL, error=JobError(type="Cancel", message=clean(reason, _LONGEST_MESSAGE)))


_DECISIONS: tuple[tuple[type[BaseException], Callable[[Any, Claim, Backoff], Outcome]], ...] = (
    (Retry, lambda error, claim, backoff: _failed(error, claim, backoff, error.after)),
    (Snooze, lambda error, *_: _snooze(error.seconds)),
    (Cancel, lambda error, *_: _cancel(error.reason)),
    (RateLimited, lambda error, *_: _snooze(error.retry_after, cools=True)),
    (Suspension, lambda error, *_: error.outcome),
    (HandlerError, lambda error, *_: error.outcome),
    (Hopeless, lambda error, *_: _give_up(cause_of(error))),
    (Fail, lambda error, *_: _give_up(error)),
    (SignalTimeout, lambda error, *_: _give_up(error)),
    (StepResultError, lambda error, *_: _give_up(error)),
    # Why here: no rule of a type is about them; the next run may be in time.
    (DeadlineExceeded, _failed),
    (Cancelled, _failed),
)


def error_of(error: BaseException) -> JobError:
    """The error as it is kept: whatever it is, it can be told."""
    try:
        message = str(error)
    except BaseException as broken:
        message = f"(its message cannot be read: {type(broken).__name__})"
    trace = None
    # Why none of a process that died: nothing of the handler's is in it.
    if not isinstance(error, ProcessDied):
        with suppress(Exception):
            trace = "".join(traceback.format_exception(type(error), error, _of_handler(error.__traceback__)))
    return JobError(
        type=clean(type(error).__name__, 200),
        message=clean(message, _LONGEST_MESSAGE),
        # Why the end of it: that is where it happened.
        traceback=None if trace is None else clean(trace[-_LONGEST_TRACEBACK:], _LONGEST_TRACEBACK),
    )


_OURS = (
    *("rate_envelope_queue.", "jobpipe.worker.", "jobpipe.jobtypes.signature"),
    *("concurrent.futures.", "asyncio."),
)


def _of_handler(frames: TracebackType | None) -> TracebackType | None:
    """The traceback from the handler on: how it came to be called is no news to its author."""
    first = frames
    while first is not None and first.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
        first = first.tb_next
    return frames if first is None else first
