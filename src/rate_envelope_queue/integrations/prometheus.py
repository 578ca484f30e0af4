"""Exporter: what queues measure, for prometheus_client, under the names that client-go gives it.

Nothing is counted here: each scrape asks the queues, so what they counted before they were added, or before
a restart, is in it. A queue that cannot be asked is left out of the scrape rather than spoil the others'.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from ..aio import AsyncRateEnvelopeQueue
from ..drivers.driver import Driver
from ..drivers.log import describe, log
from ..errors import BadFieldsError
from ..metrics import HistogramSnapshot, Metrics

try:
    from prometheus_client import REGISTRY, CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
    from prometheus_client.utils import floatToGoString
except ImportError as error:
    raise ImportError(
        "Exporter needs prometheus_client: pip install 'rate-envelope-queue[prometheus]'",
        name="prometheus_client",
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily

PATIENCE = 1.0
"""Seconds that a scrape waits for the event loops of all its queues together."""


class _Measure(NamedTuple):
    """One metric family: what it is called, and which field of Metrics it shows."""

    kind: type[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]
    name: str
    field: str
    help: str


_COUNTER, _GAUGE, _HISTOGRAM = CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
_OWN = "rate_envelope_queue_"

MEASURES = (
    _Measure(
        _COUNTER, "workqueue_adds", "adds", "Envelopes that became ready: sent, by a tick or for a retry"
    ),
    _Measure(_GAUGE, "workqueue_depth", "depth", "Envelopes that are ready"),
    _Measure(
        _HISTOGRAM, "workqueue_queue_duration_seconds", "queue_duration", "Seconds from ready to running"
    ),
    _Measure(_HISTOGRAM, "workqueue_work_duration_seconds", "work_duration", "Seconds of a run"),
    _Measure(
        _GAUGE,
        "workqueue_unfinished_work_seconds",
        "unfinished_seconds",
        "Seconds that all runs under way have taken so far; what is stuck makes it grow steadily",
    ),
    _Measure(
        _GAUGE,
        "workqueue_longest_running_processor_seconds",
        "longest_running_seconds",
        "Seconds that the longest run under way has taken so far",
    ),
    _Measure(
        _COUNTER, "workqueue_retries", "retries", "Retries and back-offs after an error, no plain ticks"
    ),
    _Measure(_GAUGE, _OWN + "capacity", "capacity", "Envelopes that may be in the queue; 0 is no limit"),
    _Measure(_GAUGE, _OWN + "occupied", "occupied", "Envelopes in the queue: ready, running or delayed"),
    _Measure(_COUNTER, _OWN + "dropped", "dropped", "Envelopes that were given up"),
    _Measure(_GAUGE, _OWN + "stuck", "stuck", "Workers that overran a deadline, were replaced and still run"),
    _Measure(_COUNTER, _OWN + "panics", "panics", "Runs that ended in a BaseException that is no Exception"),
    _Measure(
        _COUNTER, _OWN + "throttled", "throttled", "Envelopes held back by a rate or a concurrency limit"
    ),
)
"""Every metric family; prometheus_client appends `_total` to the names of the counters."""


class Exporter:
    """Exports what the queues measure, to a registry of prometheus_client, until it is closed.

    There may be any number of exporters on a registry; the names of all queues on it must differ. A queue
    is kept, and exported, also when it has stopped.
    """

    def __init__(self, *queues: Driver[Any], registry: CollectorRegistry = REGISTRY) -> None:
        self._registry = registry
        self._queues: list[Driver[Any]] = []
        self.add(*queues)

    def add(self, *queues: Driver[Any]) -> None:
        """Export these, too: all, or none and BadFieldsError."""
        with _SHARING:
            collector = _COLLECTORS.get(self._registry) or _Collector()
            together = collector.queues | _by_name(queues, collector.queues)
            if together and not collector.queues:
                self._registry.register(collector)
                _COLLECTORS[self._registry] = collector
            collector.queues = together
            self._queues += queues

    def close(self) -> None:
        """Export none of its queues any more."""
        with _SHARING:
            collector = _COLLECTORS.get(self._registry)
            if collector is None or not self._queues:
                return
            ours = {queue.name for queue in self._queues}
            collector.queues = {name: queue for name, queue in collector.queues.items() if name not in ours}
            self._queues.clear()
            if not collector.queues:
                del _COLLECTORS[self._registry]
                self._registry.unregister(collector)


class _Collector:
    """What a registry asks. It is registered while it has queues."""

    def __init__(self) -> None:
        self.queues: dict[str, Driver[Any]] = {}  # by name; replaced, never changed, as a scrape may read it

    def describe(self) -> list[Family]:
        """The families without samples: what this collector will come up with."""
        return [measure.kind(measure.name, measure.help, labels=["name"]) for measure in MEASURES]

    def collect(self) -> list[Family]:
        """The families, with samples for each queue."""
        families = self.describe()
        for name, metrics in _ask_all(self.queues.values()):
            for family, measure in zip(families, MEASURES, strict=True):
                _add_sample(family, name, getattr(metrics, measure.field))
        return families


_SHARING = threading.Lock()
_COLLECTORS: WeakKeyDictionary[CollectorRegistry, _Collector] = WeakKeyDictionary()
"""The collector of each registry. Why shared: a registry takes a metric name from one collector only."""


def _by_name(queues: Iterable[Driver[Any]], others: dict[str, Driver[Any]]) -> dict[str, Driver[Any]]:
    """The queues by name; BadFieldsError unless each can be exported besides the others."""
    named: dict[str, Driver[Any]] = {}
    for queue in queues:
        if not isinstance(queue, Driver):
            raise BadFieldsError(f"queues must be queues of this package, got {queue!r}")
        if queue._core._waits is None:
            raise BadFieldsError(f"queue {queue.name!r} was made with metrics=False and measures nothing")
        if queue.name in named or queue.name in others:
            raise BadFieldsError(
                f"queues must have different names in one registry, got {queue.name!r} again; "
                "give this one another name, or close() the exporter of the other"
            )
        named[queue.name] = queue
    return named


def _add_sample(family: Family, name: str, value: float | HistogramSnapshot) -> None:
    if isinstance(family, HistogramMetricFamily):
        assert isinstance(value, HistogramSnapshot)
        buckets = [*zip(map(floatToGoString, value.bounds), value.counts, strict=True), ("+Inf", value.count)]
        family.add_metric([name], buckets, value.sum)
    else:
        assert not isinstance(value, HistogramSnapshot)
        family.add_metric([name], value)


# Asking a queue, from whatever thread the scrape is made in


def _ask_all(queues: Iterable[Driver[Any]]) -> Iterator[tuple[str, Metrics]]:
    """What each has measured; without those that cannot be asked."""
    asked = [(queue.name, _ask(queue)) for queue in queues]
    until = monotonic() + PATIENCE
    for name, answer in asked:
        try:
            metrics = answer.result(max(until - monotonic(), 0.0))
        except TimeoutError:
            answer.cancel()
            log(logging.WARNING, name, f"left out of a scrape: no answer from its loop within {PATIENCE:g} s")
        except Exception as error:
            log(logging.WARNING, name, f"left out of a scrape: {describe(error)}", error)
        else:
            yield name, metrics


def _ask(queue: Driver[Any]) -> Future[Metrics]:
    """Have the queue measured: here and now, or else on its event loop."""
    answer: Future[Metrics] = Future()

    def measure() -> None:
        if answer.set_running_or_notify_cancel():
            try:
                answer.set_result(queue.metrics())
            except Exception as error:
                answer.set_exception(error)

    loop = _loop_of(queue)
    if loop is None:
        measure()
        return answer
    try:
        loop.call_soon_threadsafe(measure)
    except RuntimeError as error:  # the loop is closed
        answer.set_exception(error)
    return answer


def _loop_of(queue: Driver[Any]) -> asyncio.AbstractEventLoop | None:
    """The loop on which alone a queue may be asked; None where it may be asked here."""
    # Why: an asyncio queue has no lock. What happens on its loop cannot happen while another thread reads it.
    loop: asyncio.AbstractEventLoop | None = getattr(queue, "_loop", None)
    if not isinstance(queue, AsyncRateEnvelopeQueue) or loop is asyncio._get_running_loop():
        return None
    if loop is not None and not queue._pool.workers and not loop.is_running():
        return None  # it has stopped, and so has its loop
    return loop
