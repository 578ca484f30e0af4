"""Durable state: what the runs of a job have recorded (steps and sleeps), and what it waits for or was sent (signals).

A step is recorded by the run that has the lease, and never run again. Sleeps and waits are recorded with the settlement that
suspends the job. Values that there are many of have gc=False: nothing in them leads back.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from ..errors import BadInputError
from .ids import check_id
from .job import FINISHED, JobStatus, StepInfo, instant
from .json import check_size, encode, fingerprint

MOST_STEPS = 1_000
"""Steps and sleeps of a job."""
MOST_RESULTS = 4 * 1_048_576
"""Bytes of the results of a job's steps together, as JSON."""
MOST_SIGNALS = 100
"""Signals that are kept of a job."""
NO_TIMEOUT = 1_000 * 366 * 86_400.0
"""Seconds that a wait without a timeout lasts."""
_FAR = 500 * 366 * 86_400.0
"""An instant that only a wait without a timeout ends after."""
SHOWN_STEPS = 50
"""Steps in the answer that shows a whole job."""
SHOWN_RESULT = 4_096
"""Bytes of a step's result that are shown."""


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """A step that has ended, as it is stored. Its times are those of the store's clock."""

    name: str
    began_at: float
    ended_at: float
    result: bytes
    """JSON."""


class Sleep(Struct, frozen=True, kw_only=True, gc=False):
    """A sleep that has begun."""

    name: str
    until: float


class Wait(Struct, frozen=True, kw_only=True, gc=False):
    """A wait for a signal that has begun. Of those that have not timed out, a job has one at the most: the last."""

    name: str
    until: float
    is_timed_out: bool = False
    """Was the run told that the time was over? Then no signal of that name is accepted any more."""


class JobSignal(Struct, frozen=True, kw_only=True, gc=False):
    """A signal that a job was sent."""

    name: str
    payload: bytes
    """JSON."""
    fingerprint: str
    """Of the payload: the same for the same JSON value."""
    sent_at: float = 0.0
    """When it was accepted; set by the store."""
    is_used: bool = False
    """Was it given to a run?"""


class DurableState(Struct, frozen=True, kw_only=True):
    """All that is recorded of one job: steps in the order in which they ended, the others by name."""

    steps: tuple[Step, ...] = ()
    sleeps: tuple[Sleep, ...] = ()
    waits: tuple[Wait, ...] = ()
    signals: tuple[JobSignal, ...] = ()

    def sleep_until(self, run_at: float) -> Sleep | None:
        """The sleep of a scheduled job that ends then, if that is why it is scheduled."""
        return next((each for each in self.sleeps if abs(each.until - run_at) < 1e-3), None)

    def pending_wait(self) -> Wait | None:
        """What a waiting job waits for."""
        return next((each for each in self.waits if not each.is_timed_out), None)


class ReceivedKind(StrEnum):
    """What a run that asked for a signal was told."""

    SIGNAL = "signal"
    TIMED_OUT = "timed out"
    NOTHING = "nothing"
    """Neither has come yet: it has to wait."""
    LOST = "lost"
    """Its lease is not held any more."""


class Received(Struct, frozen=True):
    """The answer, with the payload of the signal."""

    kind: ReceivedKind
    payload: bytes | None = None


class SignalReceipt(Struct, frozen=True, kw_only=True):
    """What became of a signal: accepted, or the same was there already."""

    id: str
    """Of the job."""
    name: str
    is_new: bool


class SignalAnswer(StrEnum):
    """What became of a signal that was sent."""

    ACCEPTED = "accepted"
    SAME = "same"
    """It was there already."""
    CONFLICT = "conflict"
    """Another of its name, with other content, was there already."""
    FINISHED = "finished"
    """The job has ended."""
    TIMED_OUT = "timed out"
    """The wait for it has timed out."""
    FULL = "full"
    """The job has as many as are kept."""


def answer_signal(
    status: JobStatus, known: str | None, fingerprint: str, *, is_timed_out: bool, kept: int
) -> SignalAnswer:
    """What becomes of a signal; `known` is the fingerprint of the one of its name that is there."""
    if known is not None:
        return SignalAnswer.SAME if known == fingerprint else SignalAnswer.CONFLICT
    if status in FINISHED:
        return SignalAnswer.FINISHED
    if is_timed_out:
        return SignalAnswer.TIMED_OUT
    return SignalAnswer.FULL if kept >= MOST_SIGNALS else SignalAnswer.ACCEPTED


SIGNAL_PROBLEMS = {
    SignalAnswer.CONFLICT: "was sent before with other content: the first of a name wins",
    SignalAnswer.TIMED_OUT: "came too late: the wait for it has timed out",
    SignalAnswer.FULL: f"was refused: a job keeps at most {MOST_SIGNALS} signals",
}
"""Why a signal was refused, in words."""


def read_signal(name: object, payload: Any, most: int) -> JobSignal:
    """A signal to be sent; BadInputError, or PayloadTooLargeError."""
    raw = encode(payload)
    check_size(raw, most)
    return JobSignal(name=check_id(name, "name"), payload=raw, fingerprint=fingerprint(raw))


def name_is_used(name: str) -> BadInputError:
    """What a second step of that name in one run is told."""
    return BadInputError(
        "name", f"must be used once in a run, got {name!r} twice: number the names in a loop"
    )


def timeout_at(until: float) -> datetime | None:
    """When a wait times out; None if it never does."""
    return None if until > _FAR else instant(until)


def show_step(step: Step, most: int | None = SHOWN_RESULT) -> StepInfo:
    """The step with its result, or the first `most` bytes of it."""
    cut = most is not None and len(step.result) > most
    result = step.result[:most].decode(errors="ignore") if cut else msgspec.json.decode(step.result)
    return StepInfo(
        name=step.name,
        began_at=instant(step.began_at),
        ended_at=instant(step.ended_at),
        result=result,
        cut=cut,
    )
