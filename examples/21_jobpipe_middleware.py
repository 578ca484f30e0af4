"""Middleware of the job service: a stamp that measures each run, and a hook that is told of jobs that failed for good."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Generator
from typing import Any

from jobpipe import Fail, Job, Jobpipe, current_job
from rate_envelope_queue import Context, Envelope, stamp

runs: Counter[tuple[str, str]] = Counter()
slowest: dict[str, float] = {}


@stamp
def measured(context: Context, envelope: Envelope[Any]) -> Generator[None, Any, None]:
    """A metric: how runs ended, and how long the longest took."""
    began = time.perf_counter()
    outcome = "error"
    try:
        yield
        outcome = "ok"
    finally:
        runs[envelope.type, outcome] += 1
        took = time.perf_counter() - began
        slowest[envelope.type] = max(took, slowest.get(envelope.type, 0.0))


@stamp
def announced(context: Context, envelope: Envelope[Any]) -> Generator[None, Any, None]:
    job = current_job()
    print(f"{job.id}: attempt {job.attempts} with {envelope.payload}")
    yield


pipe = Jobpipe("memory://", stamps=[measured])


@pipe.job(stamps=[announced], base=0, max_retries=3, fail_on=ValueError)
async def charge(customer: str, amount: int = 10) -> str:
    if current_job().attempts == 1:
        raise ConnectionError("the bank is away")
    if amount < 0:
        raise Fail("the amount is negative")
    return f"{customer} paid {amount}"


@pipe.on_failure
def tell(job: Job) -> None:
    """Where a program would call its error tracker."""
    print(f"{job.id} failed: {job.error.message if job.error else 'no error'}")


async def main() -> None:
    logging.getLogger("jobpipe").addHandler(logging.NullHandler())  # it logs failed jobs as well
    async with pipe, pipe.running(workers=1):
        await pipe.enqueue(charge.request("ada"), id="good")
        print((await pipe.wait("good")).result)
        await pipe.enqueue(charge.request("bob", amount=-5), id="bad")
        print((await pipe.wait("bad")).status)
    print(f"runs: {runs['charge', 'ok']} ok, {runs['charge', 'error']} with an error")
    print(f"the slowest took less than a minute: {slowest['charge'] < 60}")


if __name__ == "__main__":
    asyncio.run(main())
