"""Isolation: what a run in a warm child process costs beside one in a thread, what two cores bring, and what others pay.

The handlers are in this module, since child processes import it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from time import perf_counter

from jobpipe import Jobpipe, JobStatus

from .harness import Case, Goal, expect, micros_each

_JOBS = 2_000
_PLAIN = 20_000
_CRUNCHING = 60
_NUMBERS = 1_000_000
"""That a CPU-bound job adds up: some 20 ms."""
_QUICKLY = 4
"""What a quick run divides the numbers of jobs by."""
_MOST_MICROS = 500.0
_LEAST_SPEEDUP = 1.8
_LEAST_OF_OTHERS = 0.97


def make(*, has_isolated: bool) -> Jobpipe:
    """A pipe on a memory store, with or without types that are isolated."""
    pipe = Jobpipe("memory://", queue_size=0, job_logs="off")

    @pipe.job("here", max_retries=0)
    def here() -> None:
        """Nothing, in a thread."""

    @pipe.job("plain", max_retries=0)
    async def plain() -> None:
        """Nothing, on the event loop."""

    @pipe.job("child", max_retries=0, isolate=has_isolated, max_jobs_per_child=_JOBS * 2)
    def child() -> None:
        """Nothing, in a child."""

    @pipe.job("crunch", max_retries=0, isolate=has_isolated)
    def crunch() -> int:
        return sum(range(_NUMBERS))

    pipe.address = f"{__name__}:pipe"
    return pipe


pipe = make(has_isolated=True)


def cases(*, quick: bool) -> list[Case]:
    divisor = _QUICKLY if quick else 1
    rate = partial(_rate, n=_CRUNCHING // divisor)
    return [
        Case(
            name="isolation",
            row="warm overhead",
            shows="microseconds that a run in a warm child process takes longer than one in a thread",
            unit="µs",
            ours=partial(_overhead, _JOBS // divisor),
            goals=(Goal("<=", _MOST_MICROS, on="ours"),),
        ),
        Case(
            name="isolation",
            row="two CPU-bound slots",
            shows="CPU-bound jobs a second in two isolated slots, next to one",
            unit="/s",
            ours=lambda: rate("crunch", workers=2),
            peer=lambda: rate("crunch", workers=1),
            peer_name="one slot",
            ratio_of="ours/peer",
            goals=(Goal(">=", _LEAST_SPEEDUP),),
        ),
        Case(
            name="isolation",
            row="types that are not isolated",
            shows="no-op jobs a second of a type that is not isolated, in a program with types that are and without",
            unit="/s",
            ours=lambda: _rate("plain", n=_PLAIN // divisor, workers=4),
            peer=lambda: _rate("plain", n=_PLAIN // divisor, workers=4, has_isolated=False),
            peer_name="without isolated types",
            ratio_of="ours/peer",
            goals=(Goal(">=", _LEAST_OF_OTHERS),),
        ),
    ]


def _overhead(n: int) -> float:
    return micros_each(n / _rate("child", n=n, workers=1), n) - micros_each(
        n / _rate("here", n=n, workers=1), n
    )


def _rate(type: str, *, n: int, workers: int, has_isolated: bool = True) -> float:
    """Jobs a second, from when children are warm to the end of the last."""
    return asyncio.run(_run(make(has_isolated=has_isolated), type, n, workers))


async def _run(pipe: Jobpipe, type: str, n: int, workers: int) -> float:
    async with pipe, pipe.running(workers=workers):
        warm = [await pipe.enqueue(type) for _ in range(2 * workers)]
        for receipt in warm:
            await pipe.wait(receipt.id, 60)
        requests = [pipe.types[type].request() for _ in range(n)]
        began = perf_counter()
        receipts = await pipe.enqueue_many(requests)
        for receipt in receipts[-workers:]:
            job = await pipe.wait(receipt.id, 300)
            expect(int(job.status is JobStatus.DONE), 1, "jobs are done")
        return n / (perf_counter() - began)
