"""Executor: runs each job that is held as an envelope, and says what it came to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Token
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec.structs import replace

from rate_envelope_queue import Context, Decision, Envelope, RateLimited, StopEnvelope, StopType, drop

from ..errors import BadInputError
from ..jobtypes.current import CurrentJob, reset_current, set_current
from ..jobtypes.durable import DurableRun, here
from ..model import json
from ..model.job import Move
from ..model.lease import Outcome
from ..model.outcome import Carried, HandlerError, Hopeless, Suspension, outcome_of, without_group
from .held import HeldJob
from .isolation.run import IsolatedRun

if TYPE_CHECKING:
    from ..gateway.lazy_store import Gateway
    from ..gateway.tracing import Tracing
    from .held_jobs import HeldJobs
    from .isolation.children import Children
    from .settler import Settler

logger = logging.getLogger("jobpipe")

Invoker = Callable[[Context, Envelope[Any]], Any]

_SIGNALS = (RateLimited, StopEnvelope, StopType, Suspension)
"""What the envelope's queue would take for itself."""
_CARRIED = (*_SIGNALS, BaseExceptionGroup)


class Executor:
    """Makes the envelopes of one runner. Plain functions begin and report in their threads, all else is on the loop."""

    on_error: Callable[[BaseException], object] | None = None
    """Called with what a handler raised, or why its result is none: for who runs one job in a test."""

    def __init__(
        self,
        gateway: Gateway,
        held: HeldJobs,
        settler: Settler,
        tracing: Tracing | None = None,
        *,
        keeps_logs: bool = False,
        max_result: int,
        children: Children | None = None,
    ) -> None:
        self._gateway = gateway
        self._max_result = max_result
        self._held = held
        self._settler = settler
        self._tracing = tracing
        self._keeps_logs = keeps_logs
        self._children = children
        self._by_queue = bool(held.pools.concurrency)

    def envelope(self, run: HeldJob) -> Envelope[HeldJob]:
        """The envelope that runs it."""
        claim = run.claim
        type = claim.queue if self._by_queue else claim.type  # Why: by it, envelopes are limited to slots
        if self._children is not None and claim.type in self._children.addresses:
            # Why without a deadline: it counts from when there is a process, which kills it then; nor are stamps ours.
            return Envelope(
                partial(self._run_isolated, self._children),
                id=claim.id,
                type=type,
                payload=run,
                priority=run.priority,
                success_hook=self._succeeded,
                failure_hook=self._failed,
            )
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
            run.owner = here()  # Why again: stamps may call it in a task or thread of its own
            return job_type.run(envelope.payload)

        async def call_async(context: Context, envelope: Envelope[Any]) -> Any:
            run.owner = here()
            return await job_type.run(envelope.payload)

        return call_async if job_type.is_async else call

    def _run_stamped(self, inner: Invoker) -> Invoker:
        """The outermost stamp. Those of the program see an envelope with the handler's argument as its payload."""

        async def run_stamped(context: Context, envelope: Envelope[HeldJob]) -> None:
            run = envelope.payload
            if not self._held.begin(run):
                return
            token = self._enter(run, context)
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
            except _CARRIED as error:
                _carry(error)
            finally:
                self._leave(run, token)

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
            token = self._enter(run, context)
            try:
                run.result = _result(await run.job_type.run(self._argument(run)))
            except _CARRIED as error:
                _carry(error)
            finally:
                self._leave(run, token)

    def _run_function(self, context: Context, envelope: Envelope[HeldJob]) -> None:
        run = envelope.payload
        if self._held.begin(run):
            # Why never left: each call in a thread has a context of its own.
            self._enter(run, context)
            try:
                run.result = _result(run.job_type.run(self._argument(run)))
            except _CARRIED as error:
                _carry(error)

    async def _run_isolated(self, children: Children, context: Context, envelope: Envelope[HeldJob]) -> None:
        run = envelope.payload
        run.has_child = True
        try:
            outcome = await self._outcome_in_child(children, run, context)
        except Exception:
            if not run.began_at and not self._held.begin(run):
                return  # Why begun: a process that cannot start costs the attempt, too
            raise
        if outcome is None:
            return
        if outcome.move is not Move.SUCCEED:
            raise HandlerError(outcome)
        run.result = outcome.result

    async def _outcome_in_child(self, children: Children, run: HeldJob, context: Context) -> Outcome | None:
        """What it came to; None if it is not to begin any more."""
        async with children.child(run.job_type) as child:
            if not self._held.begin(run):
                return None
            token = self._enter(run, context)
            trace: dict[str, str] = {}
            if self._tracing is not None:
                self._tracing.inject(trace)
            try:
                return await children.run(
                    child,
                    run.job_type,
                    run.claim,
                    IsolatedRun(self._held, run),
                    started_at=run.started_at,
                    store_now=self._held.store_now(run),
                    keeps_logs=self._keeps_logs and run.job_type.logs,
                    trace=trace,
                )
            finally:
                self._leave(run, token)

    def _enter(self, run: HeldJob, context: Context) -> Token[CurrentJob]:
        """The handler is about to be called here."""
        run.owner = here()
        if self._tracing is not None:
            run.span = self._tracing.begin(run.claim)
        return set_current(self._current(run, context))

    def _leave(self, run: HeldJob, token: Token[CurrentJob]) -> None:
        reset_current(token)
        if run.span is not None:
            run.span.leave()

    def _current(self, run: HeldJob, context: Context) -> CurrentJob:
        log_of_run = partial(self._held.log_of, run) if self._keeps_logs and run.job_type.logs else None
        return CurrentJob(
            run.claim,
            context,
            partial(self._held.report, run),
            log_of_run,
            partial(self._durable, run, context),
        )

    def _durable(self, run: HeldJob, context: Context) -> DurableRun:
        """What the run records; made with the first call."""
        if run.durable is None:
            run.durable = DurableRun(self._gateway, self._held, run, context, self._max_result)
        return run.durable

    def _argument(self, run: HeldJob) -> Any:
        try:
            return run.job_type.decode(run.claim.payload)
        except BadInputError as error:
            raise Hopeless from error

    def _succeeded(self, context: Context, envelope: Envelope[HeldJob]) -> None:
        run = envelope.payload
        if run.is_finishing and not run.is_gone:
            self._held.do_soon(self._end_finishing(run))
        elif run.durable is not None and run.durable.problem is not None:
            self._failed(context, envelope, RuntimeError(run.durable.problem))
        else:
            self._end(run, Outcome(move=Move.SUCCEED, result=run.result, progress=run.progress))

    def _failed(self, context: Context, envelope: Envelope[HeldJob], error: BaseException) -> Decision:
        run = envelope.payload
        if self.on_error is not None:
            self.on_error(error)
        if run.is_finishing and not run.is_gone:
            self._held.do_soon(self._end_finishing(run, error))
        else:
            self._end(run, self._outcome_of(run, error), error)
        return drop()

    async def _end_finishing(self, run: HeldJob, error: BaseException | None = None) -> None:
        """The handler has written the outcome in a transaction of its own: see whether that was committed."""
        is_leased = await self._held.is_still_leased(run)
        if is_leased is None:
            self._held.lose(run)
            if run.span is not None:
                run.span.end(None, error)
            return
        if is_leased:
            run.is_finishing = False
            error = error or RuntimeError(
                "the transaction in which the handler called `finish` was not committed"
            )
            self._end(run, self._outcome_of(run, error), error)
            return
        if error is not None:
            logger.warning(
                "job %s was finished, or taken back; what its handler raised afterwards does not count: %r",
                run.claim.id,
                error,
            )
        self._end(run, Outcome(move=Move.SUCCEED, progress=run.progress))

    def _outcome_of(self, run: HeldJob, error: BaseException) -> Outcome:
        if run.is_cancelling:
            return Outcome(move=Move.CANCEL, progress=run.progress)
        job_type = run.job_type
        outcome = outcome_of(error, run.claim, job_type.backoff, job_type.is_final)
        return replace(outcome, progress=run.progress)

    def _end(self, run: HeldJob, outcome: Outcome, error: BaseException | None = None) -> None:
        try:
            self._settler.end(run, outcome, error)
        finally:
            if run.span is not None:
                run.span.end(None if run.is_gone else outcome, error)


def _result(value: Any) -> bytes:
    """What a handler returned, as JSON; Hopeless for what is none, or is too much: the next run would return the same."""
    try:
        return json.encode_result(value)
    except BadInputError as error:
        raise Hopeless from error


def _carry(error: BaseException) -> NoReturn:
    """Raise it in a form that the envelope's queue does not act on."""
    found = without_group(error)  # Why: a task group puts what was raised in its body into a group
    if isinstance(found, BaseExceptionGroup):
        raise found
    raise Carried(found) from None
