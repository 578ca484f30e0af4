"""What Prometheus gets: the store's numbers, this process' timings, and those of the queue that runs its jobs.

Numbers of jobs are the store's, so that they are the same whichever process is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from rate_envelope_queue.integrations.prometheus import Exporter

from ..model.counts import Counts
from ..worker.meters import BUCKETS, Histogram

if TYPE_CHECKING:
    from ..worker.runner import Runner
    from .site import Site

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = [*map(floatToGoString, BUCKETS), "+Inf"]


class MetricsPage:
    """The text of a scrape, made with a registry of its own."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._exporter = Exporter(registry=self._registry)
        self._counts = Counts([], frozenset())
        self._runner: Runner | None = None

    async def render(self) -> bytes:
        """Everything there is to tell, as text."""
        pipe, service = self._site.pipe, self._site.service
        self._counts = await pipe.async_store.call(pipe.store.counts)
        runner = None if service is None else service.runner
        if runner is not self._runner:
            self._exporter.close()
            self._exporter.add(*(() if runner is None else (runner.queue,)))
            self._runner = runner
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        """The names only; asked when it is registered."""
        return _families(Counter(), Counter(), {}, {})

    def collect(self) -> Iterable[Metric]:
        """The families, with samples."""
        now: Counter[tuple[str, str]] = Counter()
        ever: Counter[tuple[str, str]] = Counter(self._counts.retired)
        for tally in self._counts.tallies:
            now[tally.queue, tally.status] += tally.count
            ever[tally.type, tally.status] += tally.total
        meters = None if self._site.service is None else self._site.service.meters
        return _families(
            ever, now, meters.run_seconds if meters else {}, meters.wait_seconds if meters else {}
        )


def _families(
    ever: Counter[tuple[str, str]],
    now: Counter[tuple[str, str]],
    run_seconds: Mapping[str, Histogram],
    wait_seconds: Mapping[str, Histogram],
) -> list[Metric]:
    total = CounterMetricFamily(
        "jobpipe_jobs", "Jobs that ever reached the status", labels=["type", "status"]
    )
    for labels, number in sorted(ever.items()):
        total.add_metric(labels, number)
    present = GaugeMetricFamily("jobpipe_jobs", "Jobs that have the status", labels=["queue", "status"])
    for labels, number in sorted(now.items()):
        present.add_metric(labels, number)
    return [
        total,
        present,
        _histograms("jobpipe_run_seconds", "Seconds of a run, in this process", "type", run_seconds),
        _histograms(
            "jobpipe_wait_seconds", "Seconds from due to begun, in this process", "queue", wait_seconds
        ),
    ]


def _histograms(name: str, help: str, label: str, found: Mapping[str, Histogram]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, help, labels=[label])
    for value, histogram in sorted(found.items()):
        family.add_metric(
            [value], list(zip(_BOUNDS, accumulate(histogram.counts), strict=True)), histogram.sum
        )
    return family
