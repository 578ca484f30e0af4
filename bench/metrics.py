"""What it costs that a queue measures itself, and what one look at the measures costs.

A scrape is what a metrics endpoint does: ask one queue and write all families as text. It is measured with
prometheus_client, if that is installed.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from itertools import repeat
from time import perf_counter

from rate_envelope_queue import RateEnvelopeQueue

from .harness import Case, Goal, expect, micros_each
from .threads import plain, send_all

_DONE_BEFORE = 1000  # envelopes, so that the histograms are not empty


def cases(*, quick: bool) -> list[Case]:
    n = 20_000 if quick else 100_000
    scrapes = [_scrapes(200 if quick else 1000)] if find_spec("prometheus_client") is not None else []
    return [*(_on_and_off(n, workers) for workers in (1, 8)), *scrapes]


def _on_and_off(n: int, workers: int) -> Case:
    return Case(
        name="metrics",
        row=f"{workers} worker{'s' * (workers > 1)}",
        shows="one-off envelopes on threads with metrics on, next to the same with metrics off",
        unit="µs",
        ours=partial(send_all, plain, n, workers),
        peer=partial(send_all, plain, n, workers, metrics=False),
        peer_name="ours with metrics off",
        ratio_of="ours/peer",
        goals=(Goal("<=", 1.2),),
    )


def _scrapes(n: int) -> Case:
    return Case(
        name="metrics",
        row="scrape",
        shows="one scrape of a queue's Exporter, as text",
        unit="µs",
        ours=partial(_scrape, n),
    )


def _scrape(n: int) -> float:
    """Microseconds a scrape."""
    from prometheus_client import CollectorRegistry, generate_latest

    from rate_envelope_queue.integrations.prometheus import Exporter

    registry, text = CollectorRegistry(), b""
    with RateEnvelopeQueue("bench", workers=1) as queue:
        Exporter(queue, registry=registry)
        queue.send(*(plain() for _ in range(_DONE_BEFORE)))
        queue.join()
        began = perf_counter()
        for _ in repeat(None, n):
            text = generate_latest(registry)
        took = perf_counter() - began
    expect(text.count(b'workqueue_adds_total{name="bench"} %.1f' % _DONE_BEFORE), 1, "right counters")
    return micros_each(took, n)
