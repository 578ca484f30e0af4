"""Judge: what follows a run, and when: the verdict of the table, with schedule, limiter and clock asked.

It runs user code (a limiter may be the user's) and writes the log, so it is asked while no lock is held.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .._checks import duration
from ..core.run import SUCCEEDED
from ..core.verdict import VERDICTS, Ending, Mode, Next, Verdict
from ..envelope import PLAIN, identity_of
from ..errors import RateLimited
from ..limiters import ExponentialBackoff, MaxOf, TokenBucket, give_clock
from ..schedule import Beat
from .futures import abandon
from .log import describe, log, log_outcome

if TYPE_CHECKING:
    from ..clock import Clock
    from ..core.run import Outcome, Run
    from ..envelope import Envelope
    from ..limiters import Limiter

Judgement = tuple[Verdict, float | None, Beat]
"""What follows a run, when it runs again, and what its schedule remembers."""

BROKEN: Judgement = (VERDICTS[Ending.PANIC, Mode.ONCE, None], None, None)
"""Of a run that could not be judged."""
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)  # for schedules that do not ask


class Judge:
    """Decides for one queue."""

    __slots__ = ("_clock", "_limiter", "_mode", "_now", "_queue", "_ticked", "forgets")

    def __init__(self, queue: str, clock: Clock, mode: Mode, limiter: Limiter | None) -> None:
        self._queue = queue
        self._clock = clock
        self._now = clock.now
        self._mode = mode
        self.forgets = mode is Mode.BACKOFF
        """Does the limiter have to be told of each success?"""
        self._ticked = VERDICTS[Ending.SUCCESS, mode, None]
        self._limiter = limiter or MaxOf(ExponentialBackoff(1, 30), TokenBucket(5, burst=10))
        give_clock(self._limiter, clock)
        if limiter is not None and mode is Mode.INTERVAL:
            log(logging.WARNING, queue, "limiter= delays nothing unless on_periodic_error='backoff'")

    def judge(self, run: Run, outcome: Outcome) -> Judgement | None:
        """What follows a run, and when; None if it succeeded and the core itself knows what follows.

        It logs how the run ended, and never raises.
        """
        try:
            envelope = run.envelope
            handling = envelope._handling or PLAIN
            schedule = handling.schedule
            if outcome is SUCCEEDED and schedule is None:
                abandon(envelope)  # a stamp may have succeeded without the call
                return None
            if outcome is SUCCEEDED and handling.ticks is not None:
                self.forget(envelope)
                return None
            due = beat = None
            now = self._now()
            if outcome is SUCCEEDED:
                verdict = self._ticked
            else:
                mode = Mode.ONCE if schedule is None else self._mode
                verdict = VERDICTS[outcome.ending, mode, outcome.choice]
            if verdict.next is Next.TICK and schedule is not None:
                wall = self._clock.wall() if schedule.follows_wall else _ANY_TIME
                due, beat = schedule.next_due(now, wall, run.beat)
            elif verdict.next is Next.BACKOFF:
                due = now + self._backoff(envelope)
            elif verdict.next is Next.AFTER and outcome.decision is not None:
                due = now + outcome.decision.seconds
            elif verdict.next is Next.NOW:
                due = now
            elif verdict.next is Next.COOLED and isinstance(outcome.error, RateLimited):
                due = now + outcome.error.retry_after
            else:
                abandon(envelope)
            if due is None or verdict.done:
                self.forget(envelope)
            if outcome.error is not None or outcome.notes:
                log_outcome(self._queue, run, outcome, verdict)
            return verdict, due, beat
        except BaseException as error:
            # A schedule, a log handler, …: whatever is wrong with it, the envelope is settled and the worker goes on.
            with suppress(BaseException):
                log(logging.ERROR, self._queue, f"a run could not be judged: {describe(error)}", error)
            return BROKEN

    def forget(self, envelope: Envelope[Any]) -> None:
        """It succeeded, or is finished: its failures no longer count."""
        if self.forgets:
            try:
                self._limiter.forget(identity_of(envelope))
            except Exception as error:
                log(logging.ERROR, self._queue, f"limiter raised in forget: {describe(error)}", error)

    def _backoff(self, envelope: Envelope[Any]) -> float:
        try:
            return duration("limiter", self._limiter.when(identity_of(envelope)))
        except Exception as error:
            log(logging.ERROR, self._queue, f"limiter raised, the interval is used: {describe(error)}", error)
            return envelope.interval
