"""The tracing stamp: one span for each run, as a child of the sender's, that says how the run ended."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    BadFieldsError,
    Context,
    Envelope,
    RateEnvelopeQueue,
    RateLimited,
    StopEnvelope,
    StopType,
    retry_now,
)
from rate_envelope_queue.integrations import opentelemetry
from rate_envelope_queue.integrations.opentelemetry import tracing_stamp
from rate_envelope_queue.testing import AsyncManualClock, ManualClock

from .support.waiting import LIMIT


class Traces:
    """A tracer, and the spans that have ended."""

    def __init__(self) -> None:
        self._memory = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self.tracer = provider.get_tracer("tests")

    def span(self, name: str) -> Any:
        return self.tracer.start_as_current_span(name)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._memory.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def parent_of(self, name: str) -> str | None:
        """The name of the parent of the only span of this name; None for a root."""
        parent = self.one(name).parent
        if parent is None:
            return None
        (found,) = [
            span for span in self._memory.get_finished_spans() if span.context.span_id == parent.span_id
        ]
        assert found.context.trace_id == self.one(name).context.trace_id
        return found.name


@pytest.fixture
def traces() -> Traces:
    return Traces()


Send = Callable[..., None]


def no_send(send: Send) -> None: ...


class Threads:
    """Has the test send to the thread queue, before its start or after it, and returns when all has run."""

    def run(
        self, *sends: Callable[[Send], None], before: Callable[[Send], None] = no_send, **options: Any
    ) -> None:
        queue = RateEnvelopeQueue("q", workers=1, **options)
        before(queue.send)
        with queue:
            for send in (no_send, *sends):
                send(queue.send)
                assert queue.join(LIMIT)

    def kind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


class Loop(Threads):
    """The same for the asyncio queue."""

    def run(
        self, *sends: Callable[[Send], None], before: Callable[[Send], None] = no_send, **options: Any
    ) -> None:
        async def main() -> None:
            queue = AsyncRateEnvelopeQueue("q", workers=1, **options)
            before(queue.send_nowait)
            async with queue:
                for send in (no_send, *sends):
                    send(queue.send_nowait)
                    assert await queue.join(LIMIT)

        asyncio.run(main())


class Coroutines(Loop):
    """The asyncio queue with coroutine functions."""

    def kind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapped(*args: Any) -> Any:
            await asyncio.sleep(0)
            return function(*args)

        return wrapped


@pytest.fixture(params=[Threads, Loop, Coroutines])
def queues(request: pytest.FixtureRequest) -> Threads:
    made: Threads = request.param()
    return made


def raising(error: BaseException) -> Callable[..., Any]:
    def invoke(ctx: Context, envelope: Envelope[Any]) -> None:
        raise error

    return invoke


def nothing(ctx: Context, envelope: Envelope[Any]) -> None: ...


# The span of a run


def test_a_run_is_a_span_with_the_type_as_its_name(queues: Threads, traces: Traces) -> None:
    mail = Envelope(queues.kind(nothing), type="mail", id=17)
    queues.run(lambda send: send(mail), stamps=[tracing_stamp(traces.tracer)])
    span = traces.one("mail")
    assert dict(span.attributes or {}) == {
        "envelope.type": "mail",
        "envelope.id": "17",
        "envelope.attempt": 1,
        "envelope.outcome": "ok",
    }
    assert (span.status.status_code, len(span.events)) == (StatusCode.UNSET, 0)


def test_without_a_type_and_an_id_it_is_called_envelope(queues: Threads, traces: Traces) -> None:
    queues.run(lambda send: send(Envelope(queues.kind(nothing))), stamps=[tracing_stamp(traces.tracer)])
    assert dict(traces.one("envelope").attributes or {}) == {
        "envelope.type": "",
        "envelope.attempt": 1,
        "envelope.outcome": "ok",
    }


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ValueError("no such box"), "error"), (SystemExit("over"), "panic")],
)
def test_an_error_is_recorded_and_sets_the_status(
    queues: Threads, traces: Traces, error: BaseException, outcome: str
) -> None:
    mail = Envelope(queues.kind(raising(error)), type="mail")
    queues.run(lambda send: send(mail), stamps=[tracing_stamp(traces.tracer)])
    span = traces.one("mail")
    assert (span.attributes or {})["envelope.outcome"] == outcome
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == f"{type(error).__name__}: {error}"
    (event,) = span.events
    assert (event.attributes or {})["exception.type"] == type(error).__name__
    assert "raise error" in str((event.attributes or {})["exception.stacktrace"])


@pytest.mark.parametrize(
    ("signal", "outcome"),
    [(StopEnvelope(), "stopped"), (StopType(), "stopped"), (RateLimited(60), "rate_limited")],
)
def test_a_signal_is_an_outcome_and_no_error(
    queues: Threads, traces: Traces, signal: Exception, outcome: str
) -> None:
    mail = Envelope(queues.kind(raising(signal)), type="mail")
    queues.run(lambda send: send(mail), stamps=[tracing_stamp(traces.tracer)])
    span = traces.one("mail")
    assert (span.attributes or {})["envelope.outcome"] == outcome
    assert (span.status.status_code, len(span.events)) == (StatusCode.UNSET, 0)


def test_each_attempt_is_a_span_in_the_same_trace(queues: Threads, traces: Traces) -> None:
    def fail_twice(ctx: Context, envelope: Envelope[Any]) -> None:
        if ctx.attempt < 3:
            raise ConnectionError

    mail = Envelope(queues.kind(fail_twice), type="mail", failure_hook=lambda *_: retry_now())

    def send_it(send: Send) -> None:
        with traces.span("request"):
            send(mail)

    queues.run(send_it, stamps=[tracing_stamp(traces.tracer)])
    spans = traces.named("mail")
    shown = [((span.attributes or {})["envelope.attempt"], span.status.status_code) for span in spans]
    assert shown == [(1, StatusCode.ERROR), (2, StatusCode.ERROR), (3, StatusCode.UNSET)]
    request = traces.one("request").context
    assert {span.parent.span_id for span in spans if span.parent} == {request.span_id}
    assert {span.context.trace_id for span in spans} == {request.trace_id}


def test_the_stamp_changes_nothing_about_the_run(queues: Threads, traces: Traces) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    told: list[BaseException] = []
    error = Mute()
    hook = lambda ctx, envelope, error: told.append(error)  # noqa: E731
    mail = Envelope(queues.kind(raising(error)), type="mail", failure_hook=hook)
    queues.run(lambda send: send(mail), stamps=[tracing_stamp(traces.tracer)])
    assert told == [error]
    assert traces.one("mail").status.status_code is StatusCode.ERROR


def test_a_call_that_returns_too_late_is_an_error(traces: Traces) -> None:
    clock = ManualClock()
    mail: Envelope[None] = Envelope(lambda ctx, envelope: ctx.wait(60), type="mail", deadline=5)

    def send_it(send: Send) -> None:
        send(mail)
        clock.advance(60)

    Threads().run(send_it, clock=clock, stamps=[tracing_stamp(traces.tracer)])
    span = traces.one("mail")
    assert (span.attributes or {})["envelope.outcome"] == "error"
    assert span.status.description == "DeadlineExceeded: timed out after 5 s"


def test_a_coroutine_broken_off_by_its_deadline_is_an_error_and_no_panic(traces: Traces) -> None:
    async def main() -> None:
        clock = AsyncManualClock()

        async def sleep(ctx: Context, envelope: Envelope[Any]) -> None:
            await clock.sleep(60)

        stamps = [tracing_stamp(traces.tracer)]
        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock, stamps=stamps) as queue:
            await queue.send(Envelope(sleep, type="mail", deadline=5))
            await clock.advance(60)

    asyncio.run(main())
    span = traces.one("mail")
    assert (span.attributes or {})["envelope.outcome"] == "error"
    assert span.status.description == "DeadlineExceeded: timed out after 5 s"


def test_a_coroutine_that_raises_cancelled_error_is_an_error_and_no_panic(traces: Traces) -> None:
    mail = Envelope(Coroutines().kind(raising(asyncio.CancelledError())), type="mail")
    Coroutines().run(lambda send: send(mail), stamps=[tracing_stamp(traces.tracer)])
    span = traces.one("mail")
    assert (span.attributes or {})["envelope.outcome"] == "error"
    assert span.status.description == "Cancelled: the run raised CancelledError"


# The trace of the sender


def test_the_span_of_the_sender_is_the_parent(queues: Threads, traces: Traces) -> None:
    def send_two(send: Send) -> None:
        with traces.span("first request"):
            send(Envelope(queues.kind(nothing), type="first"))
        with traces.span("second request"):
            send(Envelope(queues.kind(nothing), type="second"), Envelope(queues.kind(nothing), type="third"))

    queues.run(send_two, stamps=[tracing_stamp(traces.tracer)])
    assert traces.parent_of("first") == "first request"
    assert traces.parent_of("second") == traces.parent_of("third") == "second request"


def test_what_is_sent_outside_a_span_begins_a_trace_wherever_the_queue_was_started(
    queues: Threads, traces: Traces
) -> None:
    with traces.span("startup"):

        def send_it(send: Send) -> None:
            token = context.attach(context.Context())
            send(Envelope(queues.kind(nothing), type="mail"))
            context.detach(token)

        queues.run(send_it, stamps=[tracing_stamp(traces.tracer)])
    assert traces.parent_of("mail") is None


def test_spans_and_baggage_of_the_sender_are_there_within_the_run(queues: Threads, traces: Traces) -> None:
    seen: list[object] = []

    def invoke(ctx: Context, envelope: Envelope[Any]) -> None:
        seen.append(baggage.get_baggage("user"))
        with traces.span("query"):
            pass

    def send_it(send: Send) -> None:
        token = context.attach(baggage.set_baggage("user", "ada"))
        send(Envelope(queues.kind(invoke), type="mail"))
        context.detach(token)

    queues.run(
        send_it,
        lambda send: send(Envelope(queues.kind(invoke), type="later")),
        stamps=[tracing_stamp(traces.tracer)],
    )
    assert seen == ["ada", None]
    assert {span.parent is not None for span in traces.named("query")} == {True}


def test_the_context_of_the_sender_ends_with_the_call(queues: Threads, traces: Traces) -> None:
    seen: list[object] = []
    mail = Envelope(
        queues.kind(nothing),
        type="mail",
        after_hook=lambda *_: seen.append(trace.get_current_span()),
        success_hook=lambda *_: seen.append(trace.get_current_span()),
    )

    def send_it(send: Send) -> None:
        with traces.span("request"):
            send(mail)

    queues.run(send_it, stamps=[tracing_stamp(traces.tracer)])
    assert seen == [trace.INVALID_SPAN] * 2


def test_an_envelope_may_have_the_stamp_of_its_own(queues: Threads, traces: Traces) -> None:
    mail = Envelope(queues.kind(nothing), type="mail", stamps=[tracing_stamp(traces.tracer)])

    def send_it(send: Send) -> None:
        with traces.span("request"):
            send(mail)

    queues.run(send_it)
    assert traces.parent_of("mail") == "request"


def test_what_runs_within_a_run_is_its_child(traces: Traces) -> None:
    with RateEnvelopeQueue("q", workers=1, stamps=[tracing_stamp(traces.tracer)]) as queue:
        queue.send(Envelope(lambda ctx, envelope: queue.send(Envelope(nothing, type="inner")), type="outer"))
        assert queue.join(LIMIT)
    assert traces.parent_of("inner") == "outer"


def test_a_waiting_envelope_that_is_sent_again_stays_with_its_first_sender(
    queues: Threads, traces: Traces
) -> None:
    mail = Envelope(queues.kind(nothing), type="mail")

    def send_twice(send: Send) -> None:
        with traces.span("first request"):
            send(mail)
        with traces.span("second request"):
            send(mail)
            send(mail, Envelope(queues.kind(nothing), type="other"))

    queues.run(before=send_twice, stamps=[tracing_stamp(traces.tracer)])
    assert traces.parent_of("mail") == "first request"


def test_an_envelope_that_is_sent_again_later_belongs_to_the_new_sender(
    queues: Threads, traces: Traces
) -> None:
    mail = Envelope(queues.kind(nothing), type="mail")

    def send_in(request: str) -> Callable[[Send], None]:
        def send_it(send: Send) -> None:
            with traces.span(request):
                send(mail)

        return send_it

    queues.run(send_in("monday"), send_in("tuesday"), stamps=[tracing_stamp(traces.tracer)])
    requests = [traces.one("monday").context.span_id, traces.one("tuesday").context.span_id]
    assert [span.parent.span_id for span in traces.named("mail") if span.parent] == requests


def test_submitted_work_and_sends_with_a_delay_are_traced(traces: Traces) -> None:
    clock = ManualClock()
    options: Any = {"clock": clock, "stamps": [tracing_stamp(traces.tracer)]}
    with RateEnvelopeQueue("q", workers=1, **options) as queue:
        with traces.span("request"):
            future = queue.submit(int, "7")
            queue.send(Envelope(nothing, type="delayed"), delay=10)
        assert future.result(LIMIT) == 7
        clock.advance(10)
    assert traces.parent_of("envelope") == traces.parent_of("delayed") == "request"


def test_a_send_from_another_thread_to_the_loop_is_traced(traces: Traces) -> None:
    def request(queue: AsyncRateEnvelopeQueue) -> None:
        with traces.span("request"):
            queue.send_threadsafe(Envelope(Coroutines().kind(nothing), type="mail")).result(LIMIT)

    async def main() -> None:
        async with AsyncRateEnvelopeQueue("q", workers=1, stamps=[tracing_stamp(traces.tracer)]) as queue:
            await asyncio.to_thread(request, queue)
            assert await queue.join(LIMIT)

    asyncio.run(main())
    assert traces.parent_of("mail") == "request"


def test_a_send_that_waits_for_room_is_traced(traces: Traces) -> None:
    at_work, go_on = threading.Event(), threading.Event()

    def occupy(ctx: Context, envelope: Envelope[Any]) -> None:
        at_work.set()
        assert go_on.wait(LIMIT)

    with RateEnvelopeQueue("q", workers=1, capacity=1, stamps=[tracing_stamp(traces.tracer)]) as queue:
        queue.send(Envelope(occupy))
        assert at_work.wait(LIMIT)
        with traces.span("request"):
            threading.Timer(0, go_on.set).start()
            queue.send(Envelope(nothing, type="mail"), block=True, timeout=LIMIT)
    assert traces.parent_of("mail") == "request"


def test_a_refused_send_is_refused_as_without_tracing(traces: Traces) -> None:
    queue = RateEnvelopeQueue("q", workers=1, stamps=[tracing_stamp(traces.tracer)])
    with pytest.raises(BadFieldsError):
        queue.send(Envelope(nothing), "mail")  # type: ignore[arg-type]
    assert queue.occupied == 0


def test_nothing_is_kept_of_an_envelope_that_is_gone(collect: Callable[[], None], traces: Traces) -> None:
    class Body:
        pass

    body = Body()
    alive = weakref.ref(body)
    queue = RateEnvelopeQueue("q", workers=1, stamps=[tracing_stamp(traces.tracer)])
    queue.send(Envelope(nothing, payload=body))
    del body
    queue.terminate()
    collect()
    assert alive() is None


# Set-up


def test_without_a_tracer_it_is_that_of_the_global_provider(
    traces: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def get_tracer(name: str) -> trace.Tracer:
        asked.append(name)
        return traces.tracer

    monkeypatch.setattr(trace, "get_tracer", get_tracer)
    Threads().run(lambda send: send(Envelope(nothing, type="mail")), stamps=[tracing_stamp()])
    assert asked == ["rate_envelope_queue"]
    assert traces.parent_of("mail") is None


def test_without_opentelemetry_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, opentelemetry.__name__)
    with pytest.raises(ImportError, match=r"pip install 'rate-envelope-queue\[opentelemetry\]'"):
        importlib.import_module(opentelemetry.__name__)
