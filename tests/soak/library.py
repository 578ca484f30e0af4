"""Fault 7: millions of sends through the library, of every kind, in a process of their own: nothing of them stays."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    Context,
    Decision,
    Envelope,
    RateEnvelopeQueue,
    drop,
    retry_now,
)

from .gauges import Gauges

ROUND = 500
"""Envelopes of each kind in a round."""
_KINDS = 5
_FAR = 3600.0


def _noop(context: Context, envelope: Envelope[Any]) -> None:
    pass


def _fail(context: Context, envelope: Envelope[Any]) -> None:
    raise ValueError("as told")


async def _anoop(context: Context, envelope: Envelope[Any]) -> None:
    pass


async def _afail(context: Context, envelope: Envelope[Any]) -> None:
    raise ValueError("as told")


def _once_more(context: Context, envelope: Envelope[Any], error: BaseException) -> Decision:
    return retry_now() if context.attempt < 2 else drop()


def _kinds(work: Callable[..., Any], fail: Callable[..., Any]) -> list[list[Envelope[Any]]]:
    """Plain ones, keyed ones, such that fail and are tried again, such that are due soon, and such that never are."""
    return [
        [Envelope(work) for _ in range(ROUND)],
        [Envelope(work, key=n % 50, priority=n % 3) for n in range(ROUND)],
        [Envelope(fail, failure_hook=_once_more) for _ in range(ROUND)],
        [Envelope(work) for _ in range(ROUND)],
        [Envelope(work, id=n) for n in range(ROUND)],
    ]


def soak_threads(sends: int, look: Callable[[int], object]) -> None:
    """Through the queue for threads; it looks after each round."""
    with RateEnvelopeQueue("soak", workers=4, capacity=_KINDS * ROUND) as queue:
        for number in range(0, sends, _KINDS * ROUND):
            plain, keyed, failing, soon, never = _kinds(_noop, _fail)
            queue.send(*plain)
            queue.send(*keyed)
            queue.send(*failing)
            queue.send(*soon, delay=0.001)
            queue.send(*never, delay=_FAR)
            for envelope in never:
                queue.cancel(envelope)
            assert queue.join(60)
            assert queue.occupied == 0
            look(number)


async def soak_asyncio(sends: int, look: Callable[[int], object]) -> None:
    """The same through the queue for asyncio."""
    async with AsyncRateEnvelopeQueue("soak", workers=4, capacity=_KINDS * ROUND) as queue:
        for number in range(0, sends, _KINDS * ROUND):
            plain, keyed, failing, soon, never = _kinds(_anoop, _afail)
            await queue.send(*plain)
            await queue.send(*keyed)
            await queue.send(*failing)
            await queue.send(*soon, delay=0.001)
            await queue.send(*never, delay=_FAR)
            for envelope in never:
                queue.cancel(envelope)
            assert await queue.join(60)
            assert queue.occupied == 0
            look(number)


def soak(sends: int, say: Callable[[str], object] = lambda _: None) -> Gauges:
    """Half of them through each queue."""
    gauges = Gauges()
    every = max(sends // 2 // (_KINDS * ROUND) // 40, 1) * _KINDS * ROUND

    def looker(name: str) -> Callable[[int], None]:
        def look(number: int) -> None:
            if number % every == 0:
                gc.collect()
                gauges.read_process(name, os.getpid())
                gauges.read(f"{name}: objects", "objects", len(gc.get_objects()))
                if number % (8 * every) == 0:
                    say(f"{name}: {number:,} of {sends // 2:,}")

        return look

    soak_threads(sends // 2, looker("threads"))
    asyncio.run(soak_asyncio(sends // 2, looker("asyncio")))
    return gauges


def soak_in_own_process(sends: int) -> int:
    """The exit code: 1 if anything grows. Why: nothing else is to be counted along."""
    return subprocess.run([sys.executable, "-m", "tests.soak.library", str(sends)]).returncode


if __name__ == "__main__":
    found = soak(int(sys.argv[1]), lambda text: print(text, flush=True))
    print(found.table(), flush=True)
    sys.exit(bool(found.growing()))
