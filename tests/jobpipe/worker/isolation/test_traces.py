"""A trace goes through an isolated run: what it enqueues belongs to it."""

from __future__ import annotations

from opentelemetry.sdk.trace import ReadableSpan

from jobpipe.gateway.tracing import Tracing

from ...test_app_tracing import Traces
from .conftest import pipe_on, working


def run_of(traces: Traces, id: str) -> ReadableSpan:
    (span,) = traces.of("run default", id)
    return span


def test_a_job_that_is_enqueued_in_a_child_is_in_the_trace_of_its_run() -> None:
    traces = Traces()
    pipe = pipe_on("memory://", tracing=True)
    pipe.__dict__["tracing"] = Tracing(traces.tracer)
    with working(pipe) as lab:
        outer = lab.job("passes-on")
        lab.run(lab.pipe.wait(outer.result, 60))
    first, second = run_of(traces, outer.id), run_of(traces, outer.result)
    assert second.context.trace_id == first.context.trace_id
    assert second.parent is not None
    assert second.parent.span_id == first.context.span_id, "the child has no tracer of its own"
