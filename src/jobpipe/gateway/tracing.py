"""Tracing: spans of OpenTelemetry for jobs that are enqueued and run, in its messaging conventions.

The context of the span that enqueues a job is stored with it, as W3C writes it. The first run is a child of that span. Later
runs may come hours after it: each begins a trace of its own, with a link to it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..errors import SettingsError
from ..model.job import Move
from ..model.newjob import Answer, NewJob
from ..model.outcome import OUTCOMES, cause_of
from ..model.text import clean

try:
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as error:
    raise SettingsError(
        "tracing (JOBPIPE_TRACING)", f"needs {error.name}: pip install 'rate-envelope-queue[opentelemetry]'"
    ) from None

if TYPE_CHECKING:
    from ..model.lease import Claim, Outcome

_PARENT, _STATE = "traceparent", "tracestate"
logger = logging.getLogger("jobpipe")

_LONGEST_STATE = 512
"""Characters of a `tracestate` that W3C asks everyone to pass on; a longer one is left out."""
_LONGEST_WORDS = 500
"""Characters that the status of a span says of an error."""
_NOWHERE = context.Context()
_w3c = TraceContextTextMapPropagator()


class Tracing:
    """The spans of one pipe; without a tracer, by that of the global provider."""

    def __init__(self, tracer: trace.Tracer | None = None) -> None:
        self._tracer = tracer or trace.get_tracer("jobpipe")

    async def enqueue(
        self, batch: Sequence[NewJob], insert: Callable[[list[NewJob]], Awaitable[Answer]]
    ) -> Answer:
        """Insert the jobs, each with a span of its own, whose context is stored with it."""
        kind = "send" if len(batch) == 1 else "create"
        spans = [
            self._tracer.start_span(
                f"enqueue {job.queue}",
                kind=trace.SpanKind.PRODUCER,
                attributes=_attributes("enqueue", kind, job.queue, job.id, job.type),
            )
            for job in batch
        ]
        try:
            traced = [replace(job, trace=_text_of(span)) for job, span in zip(batch, spans, strict=True)]
            answer = await insert(traced)
            if not isinstance(answer, list):
                _note_error(spans, answer)
            return answer
        except BaseException as error:
            _note_error(spans, error)
            raise
        finally:
            for span in spans:
                span.end()

    def begin(self, claim: Claim) -> RunSpan:
        """A run begins: its span is the current one from now on."""
        origin = _context_of(claim.trace)
        link = trace.get_current_span(origin).get_span_context()
        is_linked = claim.has_run and link.is_valid
        parent = _NOWHERE if is_linked else origin
        span = self._tracer.start_span(
            f"run {claim.queue}",
            context=parent,
            kind=trace.SpanKind.CONSUMER,
            attributes={
                **_attributes("run", "process", claim.queue, claim.id, claim.type),
                "messaging.client.id": claim.lease.worker,
                "jobpipe.job.attempt": claim.attempts,
            },
            links=[trace.Link(link)] if is_linked else None,
        )
        return RunSpan(span, context.attach(trace.set_span_in_context(span, parent)))

    @contextmanager
    def request(self, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[None]:
        """Take over the context in the headers of a call, unless there is a span already: the server may be traced itself."""
        if trace.get_current_span().get_span_context().is_valid:
            yield
            return
        carrier: dict[str, list[str]] = {}
        for name, value in headers:
            if name in (b"traceparent", b"tracestate"):
                carrier.setdefault(name.decode(), []).append(value.decode("latin-1"))
        token = context.attach(_w3c.extract(carrier))
        try:
            yield
        finally:
            context.detach(token)

    def inject(self, headers: MutableMapping[str, str]) -> None:
        """Put the current context into the headers of a call."""
        _w3c.inject(headers)

    def flush(self, seconds: float) -> None:
        """Have the spans exported that have ended, where the provider keeps them for a while."""
        flush = getattr(trace.get_tracer_provider(), "force_flush", None)
        if flush is not None:
            with suppress(Exception):  # Why: what exports them has told of its own troubles
                flush(int(seconds * 1_000))


class RunSpan:
    """The span of one run."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: trace.Span, token: Any) -> None:
        self._span = span
        self._token = token

    def leave(self) -> None:
        """The handler has returned, in the context in which it was called."""
        context.detach(self._token)

    def end(self, outcome: Outcome | None, error: BaseException | None = None) -> None:
        """The run came to this; None for one that is not recorded: its lease was lost, or it was given back."""
        self._span.set_attribute(
            "jobpipe.job.outcome", "interrupted" if outcome is None else OUTCOMES[outcome.move]
        )
        if outcome is not None and outcome.move in (Move.RETRY, Move.FAIL) and error is not None:
            _note_error([self._span], cause_of(error))
        try:
            self._span.end()
        except Exception:  # Why: a span processor of the program may raise, which is no matter of the job
            logger.exception("the span of a run could not be ended")


def _attributes(name: str, kind: str, queue: str, id: str, type: str) -> dict[str, str | int]:
    return {
        "messaging.system": "jobpipe",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": queue,
        "messaging.message.id": id,
        "jobpipe.job.type": type,
    }


def _note_error(spans: Sequence[trace.Span], error: BaseException) -> None:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        words = clean(str(error), _LONGEST_WORDS)
    except Exception:  # its text cannot be made
        words = ""
    for span in spans:
        span.set_attribute("error.type", name)
        span.set_status(trace.StatusCode.ERROR, words)
        with suppress(Exception):
            span.record_exception(error)


def _text_of(span: trace.Span) -> str | None:
    """The context of a span as it is stored; None where it has none."""
    carrier: dict[str, str] = {}
    _w3c.inject(carrier, trace.set_span_in_context(span))
    parent, state = carrier.get(_PARENT), carrier.get(_STATE, "")
    return f"{parent} {state}" if parent and 0 < len(state) <= _LONGEST_STATE else parent


def _context_of(text: str | None) -> context.Context:
    """The context that was stored, whatever is in it; an empty one where there is none."""
    if not text:
        return _NOWHERE
    parent, _, state = text.partition(" ")
    return _w3c.extract({_PARENT: parent, _STATE: state} if state else {_PARENT: parent}, _NOWHERE)
