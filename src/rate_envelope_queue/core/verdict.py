"""The decision table: how a run ended, and what follows, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..decision import Choice


class Ending(Enum):
    """How a run ended."""

    SUCCESS = "success"
    ERROR = "error"
    PANIC = "panic"
    STOP_ENVELOPE = "stop envelope"
    STOP_TYPE = "stop type"
    RATE_LIMITED = "rate limited"


class Mode(Enum):
    """How an envelope repeats: not at all, or what a periodic one does after an error."""

    ONCE = "once"
    INTERVAL = "interval"
    BACKOFF = "backoff"


class Next(Enum):
    """When an envelope runs again."""

    NEVER = "never"
    NOW = "now"
    AFTER = "after the decision's seconds"
    TICK = "at the schedule's next tick"
    BACKOFF = "when the limiter allows"
    COOLED = "after the seconds that the signal names"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows a run, and what it adds to the counters."""

    next: Next
    done: int = 0
    failed: int = 0
    retried: int = 0
    dropped: int = 0
    panicked: int = 0
    bans: bool = False
    """Does it put the type on the blacklist?"""
    cools: bool = False
    """Does its type wait as long as it does?"""


_FINISHED = Verdict(Next.NEVER, done=1)
_TICKED = Verdict(Next.TICK, done=1)
_DROPPED = Verdict(Next.NEVER, failed=1, dropped=1)
_RETRIED_NOW = Verdict(Next.NOW, failed=1, retried=1)
_RETRIED_LATER = Verdict(Next.AFTER, failed=1, retried=1)
_FAILED_TICK = Verdict(Next.TICK, failed=1)
_BACKED_OFF = Verdict(Next.BACKOFF, failed=1, retried=1)
_PANICKED = Verdict(Next.NEVER, failed=1, panicked=1)
_STOPPED = Verdict(Next.NEVER)
_TYPE_STOPPED = Verdict(Next.NEVER, bans=True)
_COOLED = Verdict(Next.COOLED, cools=True)

VERDICTS: dict[tuple[Ending, Mode, Choice | None], Verdict] = {
    (Ending.SUCCESS, Mode.ONCE, None): _FINISHED,
    (Ending.SUCCESS, Mode.INTERVAL, None): _TICKED,
    (Ending.SUCCESS, Mode.BACKOFF, None): _TICKED,
    (Ending.ERROR, Mode.ONCE, Choice.DROP): _DROPPED,
    (Ending.ERROR, Mode.ONCE, Choice.RETRY_NOW): _RETRIED_NOW,
    (Ending.ERROR, Mode.ONCE, Choice.RETRY_AFTER): _RETRIED_LATER,
    (Ending.ERROR, Mode.INTERVAL, Choice.DROP): _FAILED_TICK,
    (Ending.ERROR, Mode.INTERVAL, Choice.RETRY_NOW): _RETRIED_NOW,
    (Ending.ERROR, Mode.INTERVAL, Choice.RETRY_AFTER): _RETRIED_LATER,
    (Ending.ERROR, Mode.BACKOFF, Choice.DROP): _BACKED_OFF,
    (Ending.ERROR, Mode.BACKOFF, Choice.RETRY_NOW): _RETRIED_NOW,
    (Ending.ERROR, Mode.BACKOFF, Choice.RETRY_AFTER): _RETRIED_LATER,
    (Ending.PANIC, Mode.ONCE, None): _PANICKED,
    (Ending.PANIC, Mode.INTERVAL, None): _PANICKED,
    (Ending.PANIC, Mode.BACKOFF, None): _PANICKED,
    (Ending.STOP_ENVELOPE, Mode.ONCE, None): _STOPPED,
    (Ending.STOP_ENVELOPE, Mode.INTERVAL, None): _STOPPED,
    (Ending.STOP_ENVELOPE, Mode.BACKOFF, None): _STOPPED,
    (Ending.STOP_TYPE, Mode.ONCE, None): _TYPE_STOPPED,
    (Ending.STOP_TYPE, Mode.INTERVAL, None): _TYPE_STOPPED,
    (Ending.STOP_TYPE, Mode.BACKOFF, None): _TYPE_STOPPED,
    (Ending.RATE_LIMITED, Mode.ONCE, None): _COOLED,
    (Ending.RATE_LIMITED, Mode.INTERVAL, None): _COOLED,
    (Ending.RATE_LIMITED, Mode.BACKOFF, None): _COOLED,
}
