"""Many delayed envelopes, measured for real: by the system clock, each with a delay of its own.

Insert: `send(envelope, delay=…)`, one by one, to a queue that has not been started. The delays are random, so
that the order of arrival is not that of time, and spread over about as long as the inserting takes.

Fire: once all of them are due, the queue is started with one worker. `join()` would not do to wait for the end,
since it waits only for what is ready or running, and what is due need not be ready yet. But one worker runs them in
order of time, so a last envelope, due after all others, tells when they have finished. So this is the cost of taking
one out in order and running it, when the queue is never idle; how punctual it is, is another question.

Both stand next to the same with 10,000: the cost of one may grow with the logarithm of their number, and no more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from math import log
from random import Random
from time import perf_counter, sleep
from typing import Any

from rate_envelope_queue import Context, Envelope, RateEnvelopeQueue

from .harness import Case, Goal, Measure, expect, micros_each
from .threads import plain

_FEW = 10_000
_ROUNDS = 5  # Why: so few are over in an instant, which a single hiccup would spoil
_SPREAD = 5e-6  # seconds an envelope: about the time that it takes to insert one
_SOONEST = 0.05  # seconds


def cases(*, quick: bool) -> list[Case]:
    n = 200_000 if quick else 1_000_000
    growth = Goal("<=", round(log(n) / log(_FEW), 2))
    return [
        Case(
            name="delayed",
            row=f"insert {n:,}",
            shows="send with a delay of its own, to a queue with so many",
            unit="µs",
            ours=partial(_insert, n),
            peer=_averaged(_insert),
            peer_name=f"ours with {_FEW:,}",
            ratio_of="ours/peer",
            goals=(Goal("<=", 1.5, on="ours"), growth),
        ),
        Case(
            name="delayed",
            row=f"fire {n:,}",
            shows="run them when all are due, one worker, until the last has finished",
            unit="µs",
            ours=partial(_fire, n),
            peer=_averaged(_fire),
            peer_name=f"ours with {_FEW:,}",
            ratio_of="ours/peer",
            goals=(Goal("<=", 4, on="ours"), growth),
        ),
    ]


def _averaged(one: Callable[[int], float]) -> Measure:
    return lambda: sum(one(_FEW) for _ in range(_ROUNDS)) / _ROUNDS


def _insert(n: int) -> float:
    """Microseconds an insert."""
    queue = RateEnvelopeQueue("bench", workers=1)
    took = _send_delayed(queue, n)
    queue.terminate()
    return micros_each(took, n)


def _fire(n: int) -> float:
    """Microseconds a firing."""
    queue = RateEnvelopeQueue("bench", workers=1)
    _send_delayed(queue, n)
    finished = threading.Event()

    def tell(ctx: Context, envelope: Envelope[Any]) -> None:
        finished.set()

    last = _SOONEST + n * _SPREAD
    queue.send(Envelope(tell), delay=last)
    sleep(last)
    began = perf_counter()
    queue.start()
    finished.wait()
    took = perf_counter() - began
    queue.stop()
    expect(queue.stats().done, n + 1, "envelopes done")
    return micros_each(took, n)


def _send_delayed(queue: RateEnvelopeQueue, n: int) -> float:
    """Seconds to send so many, all delayed."""
    random = Random(n)
    envelopes = [plain() for _ in range(n)]
    delays = [_SOONEST + random.random() * n * _SPREAD for _ in range(n)]
    send = queue.send
    began = perf_counter()
    for envelope, delay in zip(envelopes, delays, strict=True):
        send(envelope, delay=delay)
    took = perf_counter() - began
    expect(queue.stats().delayed, n, "envelopes delayed")
    return took
