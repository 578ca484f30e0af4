"""A rate for the whole queue, with more work than it lets start: is the rate reached, and is it kept to?

Starts are noted by the work itself. The share is that of the starts after the first, in the time from the first on;
one of 100 % never waits longer than the rate asks. The excess is the most by which the starts in any stretch, from one
to a later one, outnumber `burst + rate * seconds`. It may be as much as the rate allows in 5 ms: an alarm that is
late by so much is made up for, or else the pace would fall behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic, sleep
from typing import Any

from rate_envelope_queue import AsyncRateEnvelopeQueue, Context, Envelope, Rate, RateEnvelopeQueue

from .harness import Case, Goal, Shared

_WORKERS = 4
_BURST = 1
_SECONDS = 1.5
_MADE_UP_FOR = 0.005  # seconds

Starts = list[float]


def cases(*, quick: bool) -> list[Case]:
    drivers: dict[str, Callable[[int], Starts]] = {"threads": _on_threads, "asyncio": _on_asyncio}
    return [
        case for limit in (100, 1000) for driver, run in drivers.items() for case in _rate(limit, driver, run)
    ]


def _rate(limit: int, driver: str, run: Callable[[int], Starts]) -> list[Case]:
    starts = Shared(partial(run, limit))
    title = f"{limit:,}/s on {driver}"
    return [
        Case(
            name="rates",
            row=f"{title}, reached",
            shows=f"starts in {_SECONDS:g} s with plenty of work, next to what the rate allows",
            unit="%",
            ours=starts.figure(partial(_share, limit)),
            goals=(Goal(">=", 98, on="ours"),),
        ),
        Case(
            name="rates",
            row=f"{title}, excess",
            shows="starts beyond `burst + rate * seconds`, in the worst stretch from one start to another",
            unit="starts",
            ours=starts.figure(partial(_excess, limit)),
            goals=(Goal("<=", limit * _MADE_UP_FOR, on="ours"),),
        ),
    ]


def _on_threads(limit: int) -> Starts:
    """When each started."""
    starts: Starts = []

    def note_start(ctx: Context, envelope: Envelope[Any]) -> None:
        starts.append(monotonic())

    options: dict[str, Any] = {"workers": _WORKERS, "stop_mode": "stop", "rate": Rate(limit, burst=_BURST)}
    with RateEnvelopeQueue("bench", **options) as queue:
        queue.send(*(Envelope(note_start) for _ in range(_plenty(limit))))
        sleep(_SECONDS * 1.1)
    return starts


def _on_asyncio(limit: int) -> Starts:
    """When each started."""
    starts: Starts = []

    async def note_start(ctx: Context, envelope: Envelope[Any]) -> None:
        starts.append(monotonic())

    async def run() -> None:
        options: dict[str, Any] = {
            "workers": _WORKERS,
            "stop_mode": "stop",
            "rate": Rate(limit, burst=_BURST),
        }
        async with AsyncRateEnvelopeQueue("bench", **options) as queue:
            await queue.send(*(Envelope(note_start) for _ in range(_plenty(limit))))
            await asyncio.sleep(_SECONDS * 1.1)

    asyncio.run(run())
    return starts


def _plenty(limit: int) -> int:
    return int(limit * _SECONDS * 2)


def _share(limit: int, starts: Starts) -> float:
    """Percent of the rate."""
    reached = sum(0 < start - starts[0] <= _SECONDS for start in starts)
    return reached / (limit * _SECONDS) * 100


def _excess(limit: int, starts: Starts) -> float:
    """The most by which a stretch from one start to a later one has more than the rate and the burst allow."""
    worst, least_ahead = 0.0, 0.0
    for number, start in enumerate(sorted(starts)):
        ahead = number - limit * (start - starts[0])  # of an even pace
        least_ahead = min(least_ahead, ahead)
        worst = max(worst, ahead - least_ahead + 1 - _BURST)
    return worst
