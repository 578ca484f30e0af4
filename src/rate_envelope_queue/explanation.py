"""Explanation: why an envelope is not running, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from .core.explain import Answer, Reason

if TYPE_CHECKING:
    from .envelope import Envelope


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason, and what goes with it: until when, held up by which envelopes, or at which position."""

    reason: Reason
    text: str
    until: datetime | None = None
    """When it may run: for `DELAYED` and `THROTTLED`."""
    held_by: tuple[Envelope[Any], ...] = ()
    """What runs instead: for `CONCURRENCY`."""
    position: int | None = None
    """1 is next: for `POSITION`."""

    @classmethod
    def of(cls, answer: Answer, now: float, wall: datetime) -> Explanation:
        """The answer of the core, with the time of day."""
        wait = None if answer.until is None else max(answer.until - now, 0.0)
        until = None if wait is None else wall + timedelta(seconds=wait)
        text = _TEXTS[answer.reason].format(
            wait=wait,
            until=f"{until:%Y-%m-%d %H:%M:%S} UTC" if until else "",
            holders=", ".join(map(repr, answer.held_by)),
            position=answer.position,
        )
        return cls(answer.reason, text, until, answer.held_by, answer.position)

    def __str__(self) -> str:
        return self.text


_TEXTS = {
    Reason.NOT_IN_QUEUE: "it is not in the queue",
    Reason.RUNNING: "it is running",
    Reason.NOT_STARTED: "it is ready, and the queue does not run: start() it",
    Reason.DELAYED: "it is delayed until {until}, for {wait:.3f} s",
    Reason.PAUSED: "it is ready, and the queue is paused: resume() it",
    Reason.THROTTLED: "it is ready, and held back by a rate or a cooling until {until}, for {wait:.3f} s",
    Reason.CONCURRENCY: "it is ready, and its type is at its concurrency limit: {holders}",
    Reason.POSITION: "it is ready, at position {position}",
}
