"""OutcomeLog: what the log says of runs: a line for each that did not succeed, and once a minute how many ended.

A run that succeeds has a line at DEBUG only: it would cost more than the job. The lines carry `job_id`, `job_type`,
`attempt` and `seconds`, and the exception as `exc_info`, where error trackers look for it.
"""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..model.job import JobError, Move
from ..model.lease import Outcome
from ..model.outcome import OUTCOMES, cause_of
from ..model.text import clean, counted

if TYPE_CHECKING:
    from .held import HeldJob

logger = logging.getLogger("jobpipe.jobs")

_LEVELS = {
    Move.SUCCEED: logging.DEBUG,
    Move.SNOOZE: logging.DEBUG,
    Move.SLEEP: logging.DEBUG,
    Move.WAIT: logging.DEBUG,
    Move.CANCEL: logging.INFO,
    Move.RETRY: logging.WARNING,
    Move.FAIL: logging.ERROR,
}
_TEXTS = {
    Move.SUCCEED: "job %s (%s) done at attempt %d in %.3f s",
    Move.SNOOZE: "job %s (%s) snoozed at attempt %d for %s s",
    Move.SLEEP: "job %s (%s) sleeps at attempt %d: %s",
    Move.WAIT: "job %s (%s) waits at attempt %d for the signal %s",
    Move.CANCEL: "job %s (%s) cancelled at attempt %d%s",
    Move.RETRY: "job %s (%s) failed at attempt %d and runs again in %s s%s",
    Move.FAIL: "job %s (%s) failed at attempt %d, for good%s",
}
_LONGEST_MESSAGE = 500
_MOST_TYPES = 20
"""In one line."""


class OutcomeLog:
    """That of one runner."""

    def __init__(self) -> None:
        self._ended: Counter[tuple[str, Move]] = Counter()
        """Since the start, by type and outcome; counted on the event loop only, so that none is lost."""
        self._told: Counter[tuple[str, Move]] = Counter()

    def add(self, run: HeldJob, outcome: Outcome, error: BaseException | None) -> None:
        """A run has ended, with this error."""
        self._ended[run.claim.type, outcome.move] += 1
        # Why not for all that are cancelled: who asked for that knows it.
        level = logging.DEBUG if run.is_cancelling else _LEVELS[outcome.move]
        if logger.isEnabledFor(level):
            with _guarded():
                _log(level, run, outcome, error)

    def sum_up(self) -> None:
        """One line with how many ended since the last one, if any did; from the thread of the heartbeat."""
        ended = self._ended.copy()
        new, self._told = ended - self._told, ended
        if new:
            with _guarded():
                logger.info("runs that ended: %s", _summary(new))


@contextmanager
def _guarded() -> Iterator[None]:
    """Why: log handlers of the program may raise, which costs no outcome. It is told as `logging` does."""
    try:
        yield
    except Exception:
        if logging.raiseExceptions:
            traceback.print_exc()


def _summary(new: Counter[tuple[str, Move]]) -> str:
    """`email 120 done, 3 retried; report 2 done`: the types with the most first."""
    totals: Counter[str] = Counter()
    for (type, _), count in new.items():
        totals[type] += count
    parts = []
    for type, _ in totals.most_common(_MOST_TYPES):
        counts = [f"{new[type, move]:,} {word}" for move, word in OUTCOMES.items() if new[type, move]]
        parts.append(f"{type} {', '.join(counts)}")
    rest = totals.most_common()[_MOST_TYPES:]
    if rest:
        parts.append(f"{sum(count for _, count in rest):,} of {counted(len(rest), 'other type')}")
    return "; ".join(parts)


def _log(level: int, run: HeldJob, outcome: Outcome, error: BaseException | None) -> None:
    claim, move = run.claim, outcome.move
    details: tuple[object, ...] = ()
    if move is Move.SUCCEED:
        details = (run.seconds,)
    if outcome.waits_again:
        details = (f"{outcome.delay:,.3f}".rstrip("0").rstrip("."),)
    if outcome.name is not None:
        details = (outcome.name,)
    if move in (Move.RETRY, Move.FAIL, Move.CANCEL):
        details += (_words(outcome.error),)
    cause = None if error is None or level < logging.WARNING else cause_of(error)
    has_trace = outcome.error is not None and outcome.error.traceback is not None
    fields = {
        "job_id": claim.id,
        "job_type": claim.type,
        "attempt": claim.attempts,
        "seconds": round(run.seconds, 6),
    }
    record = logger.makeRecord(
        logger.name,
        level,
        __file__,
        0,
        _TEXTS[move],
        (claim.id, claim.type, claim.attempts, *details),
        None if cause is None else (type(cause), cause, cause.__traceback__ if has_trace else None),
        extra=fields,
    )
    if cause is not None and outcome.error is not None and outcome.error.traceback is not None:
        # Why not left to formatters: this one is made already, begins with the handler, and is bounded.
        record.exc_text = outcome.error.traceback.rstrip("\n")
    logger.handle(record)


def _words(error: JobError | None) -> str:
    return "" if error is None else f": {error.type}: {clean(error.message, _LONGEST_MESSAGE)}"
