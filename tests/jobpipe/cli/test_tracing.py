"""A trace over three programs: one calls the service, which enqueues, and a worker runs the job."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from jobpipe import Client

from ...support.waiting import LIMIT
from .conftest import Start

pytestmark = pytest.mark.real

APP = """
import json, os
from pathlib import Path
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from jobpipe import Jobpipe

class ToFile(SpanExporter):
    def export(self, spans):
        with Path(f"spans-{os.getpid()}.jsonl").open("a") as file:
            for span in spans:
                file.write(span.to_json(indent=None) + "\\n")
        return SpanExportResult.SUCCESS

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ToFile(), schedule_delay_millis=3_600_000))
trace.set_tracer_provider(provider)
pipe = Jobpipe("sqlite:///jobs.db", port=0, tracing=True)

@pipe.job("work", max_retries=1, base=0)
def work():
    with trace.get_tracer("shop").start_as_current_span("query"):
        raise OSError("no route")
"""


def test_a_trace_goes_through_the_client_the_service_and_a_worker(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text(APP)
    service = start("serve", "shop:pipe", "--workers", "0")
    worker = start("worker", "shop:pipe")
    worker.line("working")
    url = service.line(r"API only; listening on (http://127\.0\.0\.1:\d+)$")[1]
    with Client(url, patience=LIMIT, tracing=True) as client:
        with TracerProvider().get_tracer("tests").start_as_current_span("request") as request:
            client.enqueue_sync("work", id="x")
        assert client.wait_sync("x", LIMIT).status == "failed"
    for program in (service, worker):  # what is kept to be exported later is exported at the stop
        program.kill(signal.SIGTERM)
        assert program.code() == 0
    spans = {path.name: read(path) for path in folder.glob("spans-*.jsonl")}
    ((sent,), (query, first, other, second)) = sorted(spans.values(), key=len)
    assert [each["name"] for each in (sent, query, first, other, second)] == [
        *("enqueue default", "query", "run default", "query", "run default")
    ]
    context = request.get_span_context()
    assert (trace_of(sent), sent["parent_id"]) == (context.trace_id, f"0x{context.span_id:016x}")
    assert (trace_of(first), first["parent_id"]) == (context.trace_id, sent["context"]["span_id"])
    assert (trace_of(query), query["parent_id"]) == (context.trace_id, first["context"]["span_id"])
    assert second["parent_id"] is None
    assert trace_of(second) != context.trace_id
    assert [link["context"]["span_id"] for link in second["links"]] == [sent["context"]["span_id"]]
    assert trace.get_current_span() is trace.INVALID_SPAN


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def trace_of(span: dict[str, Any]) -> int:
    return int(span["context"]["trace_id"], 16)
