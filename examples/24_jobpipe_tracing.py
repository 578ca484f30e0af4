"""Traces of the job service: a request enqueues a job, and all of it, down to the handler's own spans, is one trace.

Needs the extra `opentelemetry` and the SDK: pip install opentelemetry-sdk.
"""

import asyncio
import logging

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from jobpipe import Jobpipe

exporter = InMemorySpanExporter()  # a real program exports to its tracing system, with a BatchSpanProcessor
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("shop")

pipe = Jobpipe("memory://", tracing=True)


@pipe.job("email", max_retries=1, base=0.01)
def send_email(to: str) -> None:
    with tracer.start_as_current_span("smtp") as span:
        span.set_attribute("to", to)
        if len([each for each in exporter.get_finished_spans() if each.name == "smtp"]) == 0:
            raise ConnectionError("the mail server is away")


def show(span: ReadableSpan, depth: int = 0) -> None:
    """A span and those below it."""
    outcome = (span.attributes or {}).get("jobpipe.job.outcome")
    links = f", linked to {len(span.links)} span" if span.links else ""
    print(f"{'  ' * depth}{span.name}{f': {outcome}' if outcome else ''}{links}")
    for each in exporter.get_finished_spans():
        if each.parent is not None and each.parent.span_id == span.context.span_id:
            show(each, depth + 1)


async def main() -> None:
    logging.getLogger("jobpipe").addHandler(logging.NullHandler())  # it logs failed attempts as well
    async with pipe, pipe.running():
        with tracer.start_as_current_span("POST /orders"):
            receipt = await pipe.enqueue("email", "ada@example.org", queue="mail")
        await pipe.wait(receipt.id)
    for span in exporter.get_finished_spans():
        if span.parent is None:
            show(span)


if __name__ == "__main__":
    asyncio.run(main())
