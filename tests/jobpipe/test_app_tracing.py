"""Traces: a span for each job that is enqueued and for each run, and how they belong together."""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from typer.testing import CliRunner

from jobpipe import Cancel, Client, JobConflictError, Jobpipe, JobRequest, JobStatus, SettingsError, Snooze
from jobpipe.cli.main import app
from jobpipe.model.job import Move
from jobpipe.testing.tools import finish, new_job, put, take
from rate_envelope_queue import stamp

from ..support.jobs import finished, reached
from ..support.waiting import run
from .web.conftest import calling

REMOTE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


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

    def of(self, name: str, id: str) -> list[ReadableSpan]:
        return [span for span in self.named(name) if attributes(span)["messaging.message.id"] == id]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    return (
        span.parent is not None
        and span.parent.span_id == parent.context.span_id
        and span.context.trace_id == parent.context.trace_id
    )


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Traces:
    made = Traces()
    monkeypatch.setattr(trace, "get_tracer", lambda name: made.tracer)
    return made


@pytest.fixture
def pipe(url: str, traces: Traces) -> Jobpipe:
    return Jobpipe(url, queue_size=0, tracing=True)


@pytest.fixture
def memory(away_from_home: Path, traces: Traces) -> Jobpipe:
    return Jobpipe("memory://", queue_size=0, tracing=True)


def play(pipe: Jobpipe, *ids: str, enqueue: Callable[[], Any]) -> None:
    """Have jobs enqueued and run to their ends."""

    async def scenario() -> None:
        async with pipe:
            await enqueue()
            async with pipe.running():
                for id in ids:
                    await finished(pipe, id)

    run(scenario())


# Parents and children


def test_jobs_of_a_test_have_spans_too(memory: Jobpipe, traces: Traces) -> None:
    with memory.testing() as jobs:
        memory.enqueue_sync("echo", 1, queue="mail")
        jobs.drain_sync()
    assert is_child(traces.one("run mail"), traces.one("enqueue mail"))


def test_a_job_is_a_producer_span_and_its_run_a_consumer_span_below_it(pipe: Jobpipe, traces: Traces) -> None:
    async def enqueue() -> None:
        with traces.span("request"):
            await pipe.enqueue("echo", 1, id="x", queue="mail")

    play(pipe, "x", enqueue=enqueue)
    sent, ran = traces.one("enqueue mail"), traces.one("run mail")
    common = {
        "messaging.system": "jobpipe",
        "messaging.destination.name": "mail",
        "messaging.message.id": "x",
        "jobpipe.job.type": "echo",
    }
    assert sent.kind is SpanKind.PRODUCER
    assert attributes(sent) == {
        **common,
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
    }
    assert ran.kind is SpanKind.CONSUMER
    worker = attributes(ran)["messaging.client.id"]
    assert ":" in worker
    assert attributes(ran) == {
        **common,
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.client.id": worker,
        "jobpipe.job.attempt": 1,
        "jobpipe.job.outcome": "done",
    }
    assert is_child(sent, traces.one("request"))
    assert is_child(ran, sent)
    assert not ran.links
    assert (ran.status.status_code, ran.events) == (StatusCode.UNSET, ())


def test_a_batch_has_a_producer_span_for_each_job(pipe: Jobpipe, traces: Traces) -> None:
    ids = [f"j{number}" for number in range(3)]

    async def enqueue() -> None:
        with traces.span("request"):
            await pipe.enqueue_many(JobRequest(id=id) for id in ids)

    play(pipe, *ids, enqueue=enqueue)
    for id in ids:
        (sent,), (ran,) = traces.of("enqueue default", id), traces.of("run default", id)
        assert attributes(sent)["messaging.operation.type"] == "create"
        assert is_child(sent, traces.one("request"))
        assert is_child(ran, sent)


def test_jobs_that_are_inserted_together_keep_their_own_traces(pipe: Jobpipe, traces: Traces) -> None:
    ids = [f"j{number}" for number in range(10)]

    async def request(id: str) -> None:
        with traces.span(f"request {id}"):
            await pipe.enqueue("echo", id=id)

    async def enqueue() -> None:
        await asyncio.gather(*map(request, ids))

    play(pipe, *ids, enqueue=enqueue)
    for id in ids:
        (sent,), (ran,) = traces.of("enqueue default", id), traces.of("run default", id)
        assert is_child(sent, traces.one(f"request {id}"))
        assert is_child(ran, sent)


def test_a_twin_and_a_callers_transaction_are_traced(sqlite_url: str, traces: Traces) -> None:
    pipe = Jobpipe(sqlite_url, tracing=True)

    async def enqueue() -> None:
        with traces.span("request"):
            pipe.enqueue_sync("echo", id="a")
            with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as own, own:
                await pipe.enqueue("echo", id="b", connection=own)

    play(pipe, "a", "b", enqueue=enqueue)
    for id in "ab":
        (sent,), (ran,) = traces.of("enqueue default", id), traces.of("run default", id)
        assert is_child(sent, traces.one("request"))
        assert is_child(ran, sent)


def test_spans_of_a_handler_are_children_of_its_run(memory: Jobpipe, traces: Traces) -> None:
    @stamp
    def around(ctx: Any, envelope: Any) -> Any:
        with traces.span("stamp"):
            yield

    def work() -> None:
        with traces.span(f"query {trace.get_current_span().get_span_context().span_id}"):
            pass

    async def work_async() -> None:
        await asyncio.gather(asyncio.create_task(asyncio.sleep(0)), asyncio.to_thread(work))

    memory.job("sync")(work)
    memory.job("async")(work_async)
    memory.job("stamped", stamps=[around])(work)

    async def enqueue() -> None:
        for type in ("sync", "async", "stamped"):
            await memory.enqueue(type, id=type)

    play(memory, "sync", "async", "stamped", enqueue=enqueue)
    for type in ("sync", "async"):
        (ran,) = traces.of("run default", type)
        assert is_child(traces.one(f"query {ran.context.span_id}"), ran)
    (ran,) = traces.of("run default", "stamped")
    assert is_child(stamped := traces.one("stamp"), ran)
    assert is_child(traces.one(f"query {stamped.context.span_id}"), stamped)
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_what_a_handler_enqueues_belongs_to_its_trace(memory: Jobpipe, traces: Traces) -> None:
    @memory.job
    async def outer() -> None:
        await memory.enqueue("echo", id="inner")

    async def scenario() -> None:
        async with memory, memory.running():
            await finished(memory, (await outer.enqueue(id="outer")).id)
            await finished(memory, "inner")

    run(scenario())
    (sent,), (ran,) = traces.of("enqueue default", "inner"), traces.of("run default", "outer")
    assert is_child(sent, ran)


# Later runs


def test_a_retry_is_a_root_with_a_link_to_the_enqueue(pipe: Jobpipe, traces: Traces) -> None:
    @pipe.job(max_retries=2, base=0)
    async def unlucky() -> None:
        raise ConnectionError("no route")

    play(pipe, "x", enqueue=lambda: unlucky.enqueue(id="x"))
    sent = traces.one("enqueue default")
    first, *later = traces.named("run default")
    assert is_child(first, sent)
    assert not first.links
    for span in later:
        assert span.parent is None
        assert span.context.trace_id != sent.context.trace_id
        assert [link.context.span_id for link in span.links] == [sent.context.span_id]
    seen = [attributes(span) for span in (first, *later)]
    assert [each["jobpipe.job.outcome"] for each in seen] == ["retried", "retried", "failed"]
    assert [each["jobpipe.job.attempt"] for each in seen] == [1, 2, 3]
    for span in (first, *later):
        assert attributes(span)["error.type"] == "ConnectionError"
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "no route")
        assert [event.name for event in span.events] == ["exception"]
    assert len({span.context.trace_id for span in (first, *later)}) == 3


def test_a_run_after_a_snooze_is_linked_and_no_error(pipe: Jobpipe, traces: Traces) -> None:
    runs: list[int] = []

    @pipe.job
    async def later() -> None:
        runs.append(1)
        raise Snooze(0) if len(runs) == 1 else Cancel("enough")

    play(pipe, "x", enqueue=lambda: later.enqueue(id="x"))
    first, second = traces.named("run default")
    assert is_child(first, traces.one("enqueue default"))
    assert second.parent is None
    assert [link.context.span_id for link in second.links] == [traces.one("enqueue default").context.span_id]
    for span, outcome in ((first, "snoozed"), (second, "cancelled")):
        assert (attributes(span)["jobpipe.job.outcome"], attributes(span)["jobpipe.job.attempt"]) == (
            outcome,
            1,
        )
        assert (span.status.status_code, "error.type" in attributes(span)) == (StatusCode.UNSET, False)


def test_a_run_that_is_given_back_is_interrupted(memory: Jobpipe, traces: Traces) -> None:
    @memory.job
    async def long() -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with memory:
            service = memory.make_service()
            await service.start()
            await reached(memory, (await long.enqueue(id="x")).id, JobStatus.RUNNING)
            await service.stop(0)

    run(scenario())
    span = traces.one("run default")
    assert attributes(span)["jobpipe.job.outcome"] == "interrupted"
    assert span.status.status_code is StatusCode.UNSET


# What is odd


def test_a_job_that_is_refused_is_an_error_of_its_span(memory: Jobpipe, traces: Traces) -> None:
    async def scenario() -> None:
        async with memory:
            await memory.enqueue("echo", 1, id="x")
            with pytest.raises(JobConflictError):
                await memory.enqueue("echo", 2, id="x")

    run(scenario())
    fine, refused = traces.named("enqueue default")
    assert fine.status.status_code is StatusCode.UNSET
    assert attributes(refused)["error.type"] == "jobpipe.errors.JobConflictError"
    assert refused.status.status_code is StatusCode.ERROR


@pytest.mark.parametrize("stored", [None, "nonsense", f"{REMOTE} \0\x1b,=,a=b"])
def test_a_job_with_no_trace_or_a_broken_one_runs_all_the_same(
    memory: Jobpipe, traces: Traces, stored: str | None
) -> None:
    async def enqueue() -> None:
        put(memory.store, replace(new_job("x", type="echo"), trace=stored))

    play(memory, "x", enqueue=enqueue)
    span = traces.one("run default")
    assert (span.parent is None) is (stored is None or not stored.startswith("00-"))
    assert not span.links


def test_a_later_run_of_a_job_without_a_trace_is_a_root(memory: Jobpipe, traces: Traces) -> None:
    async def enqueue() -> None:
        put(memory.store, new_job("x", type="echo"))
        finish(memory.store, take(memory.store, types=["echo"])[0], Move.SNOOZE)

    play(memory, "x", enqueue=enqueue)
    assert (traces.one("run default").parent, traces.one("run default").links) == (None, ())


def test_an_error_whose_text_cannot_be_made_is_on_the_span(memory: Jobpipe, traces: Traces) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    @memory.job(max_retries=0)
    async def mute() -> None:
        raise Mute

    play(memory, "x", enqueue=lambda: mute.enqueue(id="x"))
    span = traces.one("run default")
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"].endswith("Mute")


# Over HTTP


@pytest.mark.parametrize("path", ["/enqueue", "/enqueue/batch"])
def test_the_trace_of_a_caller_over_http_is_taken_over(memory: Jobpipe, traces: Traces, path: str) -> None:
    async def scenario() -> None:
        async with calling(memory) as call:
            job = {"id": "x"}
            headers = {"traceparent": REMOTE, "tracestate": "vendor=1"}
            answer = await call(
                "POST", path, json=job if path == "/enqueue" else {"jobs": [job]}, headers=headers
            )
            assert answer.status_code == 202
            with traces.span("server"):  # as of a server that is traced itself
                await call("POST", "/enqueue", json={"id": "y"}, headers=headers)
            await call("POST", "/enqueue", json={"id": "z"}, headers={"traceparent": "nonsense"})
            assert take(memory.store, types=["echo"])[0].trace == (
                f"00-{REMOTE[3:35]}-{traces.of('enqueue default', 'x')[0].context.span_id:016x}-01 vendor=1"
            )

    run(scenario())
    (first,), (second,), (third,) = (traces.of("enqueue default", id) for id in "xyz")
    assert first.parent is not None
    assert (f"{first.context.trace_id:032x}", f"{first.parent.span_id:016x}") == (REMOTE[3:35], REMOTE[36:52])
    assert is_child(second, traces.one("server"))
    assert third.parent is None


# Set-up


def test_without_tracing_nothing_is_traced(away_from_home: Path, traces: Traces) -> None:
    pipe = Jobpipe("memory://")
    play(pipe, "x", enqueue=lambda: pipe.enqueue("echo", id="x"))
    assert pipe.tracing is None
    assert traces.named("run default") == traces.named("enqueue default") == []


def test_without_opentelemetry_one_line_says_what_to_install(
    away_from_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    for name in ("jobpipe.gateway.tracing", "opentelemetry.trace", "opentelemetry.context"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr(importlib.import_module("jobpipe.gateway"), "tracing", raising=False)
    says = r"needs opentelemetry: pip install 'rate-envelope-queue\[opentelemetry\]'"
    with pytest.raises(SettingsError, match=says):
        Jobpipe("memory://", tracing=True).enqueue_sync("echo")
    with pytest.raises(SettingsError, match=says):
        Jobpipe("memory://", tracing=True).make_service()
    with pytest.raises(SettingsError, match=says):
        Client("http://localhost", tracing=True)
    monkeypatch.setenv("JOBPIPE_TRACING", "on")
    result = CliRunner().invoke(app, ["enqueue", "echo", "--store", "sqlite:///jobs.db"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: tracing (JOBPIPE_TRACING) needs opentelemetry: pip install")


class BrokenProcessor(SpanProcessor):
    """One that fails when the span of a run ends."""

    def on_end(self, span: ReadableSpan) -> None:
        if span.name.startswith("run "):
            raise RuntimeError("the collector is away")


def test_a_span_processor_that_raises_costs_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TracerProvider()
    provider.add_span_processor(BrokenProcessor())
    monkeypatch.setattr(trace, "get_tracer", lambda name: provider.get_tracer("tests"))
    pipe = Jobpipe("memory://", tracing=True)

    @pipe.job(max_retries=0)
    async def work(fails: bool) -> None:
        if fails:
            raise ValueError("broken")

    async def scenario() -> None:
        async with pipe, pipe.running():
            for fails, status in ((False, JobStatus.DONE), (True, JobStatus.FAILED)):
                await pipe.enqueue("work", fails, id=str(status))
                assert (await finished(pipe, str(status))).status is status

    run(scenario())
