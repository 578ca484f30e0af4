"""What the queue says in the log: one line an event; the traceback is in exc_info."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..core.verdict import Ending, Next
from ..errors import Cancelled

if TYPE_CHECKING:
    from ..core.run import Outcome, Run
    from ..core.verdict import Verdict

logger = logging.getLogger("rate_envelope_queue")
logger.addHandler(logging.NullHandler())

_FOLLOWS = {
    Next.NEVER: "it is dropped",
    Next.NOW: "it runs again at once",
    Next.AFTER: "it runs again after {seconds:g} s",
    Next.TICK: "it goes on with its next tick",
    Next.BACKOFF: "it runs again when the limiter allows",
    Next.COOLED: "its type waits",
}


def log(level: int, queue: str, text: str, error: BaseException | None = None) -> None:
    """Write one line about a queue."""
    logger.log(level, "[rate-envelope-queue] queue %r: %s", queue, text, exc_info=error)


def log_outcome(queue: str, run: Run, outcome: Outcome, verdict: Verdict) -> None:
    """Say how a run ended that was no plain success."""
    name = f"envelope type={run.envelope.type!r} id={_shown(run.envelope.id)}"
    for note in outcome.notes:
        log(logging.WARNING, queue, f"{name}: {note.text}: {describe(note.error)}", note.error)
    error = outcome.error
    if error is None:
        return
    if outcome.ending is Ending.ERROR:
        seconds = 0.0 if outcome.decision is None else outcome.decision.seconds
        follows = "it was cancelled" if run.is_last else _FOLLOWS[verdict.next].format(seconds=seconds)
        is_wanted = outcome.decision is not None or (run.is_last and isinstance(error, Cancelled))
        level = logging.INFO if is_wanted else logging.WARNING
        log(level, queue, f"{name} failed (attempt {run.attempt}), {follows}: {describe(error)}", error)
    elif outcome.ending is Ending.PANIC:
        log(logging.ERROR, queue, f"{name} panicked, it is finished: {describe(error)}", error)
    elif outcome.ending is Ending.RATE_LIMITED:
        log(logging.INFO, queue, f"{name} is rate limited, {_FOLLOWS[verdict.next]}: {describe(error)}")
    elif outcome.ending is Ending.STOP_TYPE and not run.envelope.type:
        log(logging.WARNING, queue, f"{name} raised StopType but has no type: only this envelope is stopped")
    elif outcome.ending is Ending.STOP_TYPE:
        log(logging.INFO, queue, f"{name} stopped its type; allow({run.envelope.type!r}) lifts it")


def describe(error: BaseException) -> str:
    """The error in one line, whatever its `__str__` does."""
    try:
        text = _line(str(error))
    except BaseException:
        text = "(its text could not be made)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _shown(value: object) -> str:
    try:
        return _line(repr(value))
    except BaseException:
        return f"<{type(value).__name__} that cannot be shown>"


def _line(text: str) -> str:
    """The text with everything escaped that could end a line or manage a terminal."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
