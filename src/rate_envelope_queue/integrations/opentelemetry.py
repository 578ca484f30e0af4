"""tracing_stamp: a span of OpenTelemetry for each run, in the trace of the sender.

The queue tells the stamp of each send (`on_send`), in the sender's thread or task: there it notes the current
context, and the run takes place in it. An envelope that was sent outside any span begins a trace of its own.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.run import Run, classify
from ..core.verdict import Ending
from ..drivers.log import describe
from ..envelope import PLAIN
from ..errors import Cancelled
from ..stamps import stamp

try:
    from opentelemetry import context, trace
except ImportError as error:
    raise ImportError(
        "tracing_stamp needs opentelemetry-api: pip install 'rate-envelope-queue[opentelemetry]'",
        name="opentelemetry",
    ) from error

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..context import Context
    from ..envelope import Envelope, Invoker

_OUTCOMES = {
    Ending.SUCCESS: "ok",
    Ending.ERROR: "error",
    Ending.PANIC: "panic",
    Ending.STOP_ENVELOPE: "stopped",
    Ending.STOP_TYPE: "stopped",
    Ending.RATE_LIMITED: "rate_limited",
}
_ERRORS = frozenset({Ending.ERROR, Ending.PANIC})
_NOWHERE = context.Context()


class TracingStamp:
    """A stamp that opens a span around each call. Made by `tracing_stamp`."""

    __slots__ = ("_stamp", "_tracer")

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer
        self._stamp = stamp(self._surround)

    def __call__(self, inner: Invoker) -> Invoker:
        return self._stamp(inner)

    def on_send(self, envelope: Envelope[Any]) -> None:
        """Note in which context the envelope is sent; called by the queue."""
        envelope._handling = replace(envelope._handling or PLAIN, sender=context.get_current())

    def _surround(self, ctx: Context, envelope: Envelope[Any]) -> Generator[None, Any, None]:
        # Why never the current context: that of a worker is the one in which the queue was started.
        token = context.attach((envelope._handling or PLAIN).sender or _NOWHERE)
        try:
            with self._tracer.start_as_current_span(
                envelope.type or "envelope",
                attributes=_attributes(ctx, envelope),
                record_exception=False,
                set_status_on_exception=False,
            ) as span:
                try:
                    yield
                except BaseException as error:
                    _note(span, _meaning(ctx, error))
                    raise
                _note(span, ctx.error)  # too late, or cancelled, though nothing was raised
        finally:
            context.detach(token)


def tracing_stamp(tracer: trace.Tracer | None = None) -> TracingStamp:
    """A stamp, for a queue or an envelope, that opens a span for each run as a child of the sender's.

    Without a tracer it uses that of the global provider. The span is around the call and the stamps within;
    hooks are outside.
    """
    return TracingStamp(tracer or trace.get_tracer("rate_envelope_queue"))


def _attributes(ctx: Context, envelope: Envelope[Any]) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {"envelope.type": envelope.type, "envelope.attempt": ctx.attempt}
    if envelope.id is not None:
        attributes["envelope.id"] = str(envelope.id)
    return attributes


def _meaning(ctx: Context, error: BaseException) -> BaseException:
    """The error as the queue will see it: on an event loop, a cancellation stands for what caused it."""
    if isinstance(error, asyncio.CancelledError) and isinstance(ctx, Run) and ctx.worker is not None:
        return ctx.error or Cancelled("the run raised CancelledError")
    return error


def _note(span: trace.Span, error: BaseException | None) -> None:
    """Put the outcome on the span, and the error, if it is one."""
    ending = Ending.SUCCESS if error is None else classify(error)
    span.set_attribute("envelope.outcome", _OUTCOMES[ending])
    if error is not None and ending in _ERRORS:
        with suppress(Exception):  # Why: an error whose text cannot be made must stay the error of the run
            span.record_exception(error)
        span.set_status(trace.StatusCode.ERROR, describe(error))
