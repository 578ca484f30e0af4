"""Decision: what a failure hook answers. Made by drop(), retry_now() and retry_after()."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ._checks import Seconds, duration


class Choice(Enum):
    """The three answers."""

    DROP = "drop"
    RETRY_NOW = "retry_now"
    RETRY_AFTER = "retry_after"


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows a failed run."""

    choice: Choice
    seconds: float = 0.0


_DROP = Decision(Choice.DROP)
_RETRY_NOW = Decision(Choice.RETRY_NOW)


def drop() -> Decision:
    """Give the envelope up; a periodic one goes on with its next tick."""
    return _DROP


def retry_now() -> Decision:
    """Run it again as soon as a worker is free."""
    return _RETRY_NOW


def retry_after(seconds: Seconds) -> Decision:
    """Run it again after `seconds`; ValueError unless they are a finite number > 0."""
    return Decision(Choice.RETRY_AFTER, duration("retry_after: seconds", seconds, positive=True))
