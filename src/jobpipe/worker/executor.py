"""Executor: runs each job that is held as an envelope, and says what it came to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from rate_envelope_queue import Context, Decision, Envelope, RateLimited, StopEnvelope, StopType, drop

from ..errors import BadInputError
from ..jobtypes.current import CurrentJob, reset_current, set_current
from ..model import json
from ..model.job import Move
from ..model.lease import Claim, Outcome
from ..model.outcome import Carried, Hopeless, outcome_of
from .held import HeldJob

if TYPE_CHECKING:
    from .held_jobs import HeldJobs
    from .settler import Settler

logger = logging.getLogger("jobpipe")

Invoker = Callable[[Context, Envelope[Any]], Any]

MOST_RESULT = 1_048_576
"""Bytes of a result as JSON."""
_SIGNALS = (RateLimited, StopEnvelope, StopType)
"""What the envelope's queue would take for itself."""


class Executor:
    """Makes the envelopes of one runner. Plain functions begin and report in their threads, all else is on the loop."""

    def __init__(self, held: HeldJobs, settler: Settler) -> None:
        self._held = held
        self._settler = settler
        self._by_queue = bool(held.pools.concurrency)

    def envelope(self, run: HeldJob) -> Envelope[HeldJob]:
        """The envelope that runs it."""
        claim = run.claim
        type = claim.queue if self._by_queue else claim.type  # Why: by it, envelopes are limited to slots
        stamps = run.job_type.stamps
        if run.job_type.is_async and claim.deadline is None and not stamps:
            # Why apart: without hooks an envelope is made and run in half the time, and most jobs are like this.
            return Envelope(self._run_to_end, id=claim.id, type=type, payload=run, priority=run.priority)
        return Envelope(
            self._invoke_of(run),
            id=claim.id,
            type=type,
            payload=run,
            priority=run.priority,
            deadline=claim.deadline or 0,
            success_hook=self._succeeded,
            failure_hook=self._failed,
            stamps=(self._run_stamped, *stamps) if stamps else (),
        )

    def _invoke_of(self, run: HeldJob) -> Invoker:
        """What its envelope calls: with stamps the handler itself, within `_run_stamped` and the stamps of the program."""
        job_type = run.job_type
        if not job_type.stamps:
            return self._run_coroutine if job_type.is_async else self._run_function

        def call(context: Context, envelope: Envelope[Any]) -> Any:
            return job_type.run(envelope.payload)

        async def call_async(context: Context, envelope: Envelope[Any]) -> Any:
            return await job_type.run(envelope.payload)

        return call_async if job_type.is_async else call

    def _run_stamped(self, inner: Invoker) -> Invoker:
        """The outermost stamp. Those of the program see an envelope with the handler's argument as its payload."""

        async def run_stamped(context: Context, envelope: Envelope[HeldJob]) -> None:
            run = envelope.payload
            if not self._held.begin(run):
                return
            token = set_current(self._current(run, context))
            try:
                seen = Envelope(
                    envelope.invoke,
                    id=run.claim.id,
                    type=run.claim.type,
                    payload=self._argument(run),
                    priority=run.claim.priority,
                    deadline=run.claim.deadline or 0,
                )
                result = inner(context, seen)
                run.result = _result(await result if isawaitable(result) else result)
            except _SIGNALS as signal:
                raise Carried(signal) from None
            finally:
                reset_current(token)

        return run_stamped

    async def _run_to_end(self, context: Context, envelope: Envelope[HeldJob]) -> None:
        try:
            await self._run_coroutine(context, envelope)
        except asyncio.CancelledError as error:
            self._failed(context, envelope, error)
            raise  # the envelope's queue has to know
        except BaseException as error:
            self._failed(context, envelope, error)
        else:
            self._succeeded(context, envelope)

    async def _run_coroutine(self, context: Context, envelope: Envelope[HeldJob]) -> None:
        run = envelope.payload
        if self._held.begin(run):
            token = set_current(self._current(run, context))
            try:
                run.result = _result(await run.job_type.run(self._argument(run)))
            except _SIGNALS as signal:
                raise Carried(signal) from None
            finally:
                reset_current(token)

    def _run_function(self, context: Context, envelope: Envelope[HeldJob]) -> None:
        run = envelope.payload
        if self._held.begin(run):
            # Why never reset: each call in a thread has a context of its own.
            set_current(self._current(run, context))
            try:
                run.result = _result(run.job_type.run(self._argument(run)))
            except _SIGNALS as signal:
                raise Carried(signal) from None

    def _current(self, run: HeldJob, context: Context) -> CurrentJob:
        return CurrentJob(run.claim, context, partial(self._held.report, run))

    def _argument(self, run: HeldJob) -> Any:
        try:
            return run.job_type.decode(run.claim.payload)
        except BadInputError as error:
            raise Hopeless from error

    def _succeeded(self, context: Context, envelope: Envelope[HeldJob]) -> None:
        run = envelope.payload
        self._settler.end(run, Outcome(move=Move.SUCCEED, result=run.result, progress=run.progress))

    def _failed(self, context: Context, envelope: Envelope[HeldJob], error: BaseException) -> Decision:
        run = envelope.payload
        if run.is_gone:
            return drop()
        if run.is_cancelling:
            outcome = Outcome(move=Move.CANCEL, progress=run.progress)
        else:
            job_type = run.job_type
            outcome = outcome_of(error, run.claim, job_type.backoff, job_type.is_final)
            outcome = replace(outcome, progress=run.progress)
            _log(run.claim, outcome)
        self._settler.end(run, outcome)
        return drop()


def _result(value: Any) -> bytes:
    """What a handler returned, as JSON; Hopeless for what is none, or is too much: the next run would return the same."""
    try:
        raw = json.encode(value, "result")
        if len(raw) > MOST_RESULT:
            raise BadInputError(
                "result", f"takes {len(raw):,} bytes as JSON, {MOST_RESULT:,} are allowed: store it elsewhere"
            )
    except BadInputError as error:
        raise Hopeless from error
    return raw


def _log(claim: Claim, outcome: Outcome) -> None:
    """One line for a run that did not succeed; the traceback is in the job's history."""
    what = "" if outcome.error is None else f": {outcome.error.type}: {outcome.error.message}"
    if outcome.move is Move.FAIL:
        logger.warning("job %s (%s) failed at attempt %d%s", claim.id, claim.type, claim.attempts, what)
    elif outcome.move is Move.CANCEL:
        logger.info("job %s (%s) cancelled itself%s", claim.id, claim.type, what)
    else:
        logger.info(
            "job %s (%s) runs again in %s s%s",
            claim.id,
            claim.type,
            f"{outcome.delay:,.3f}".rstrip("0").rstrip("."),
            what,
        )
