"""Simulation: what would have become of a day's envelopes with other workers, rates and capacity?

The rules are those of the queue, because its core is asked: what is admitted, what is next, and when a rate
lets it start. Only the time is not real. One loop goes from instant to instant; at each, what has ended
leaves first, then what arrives is admitted or rejected, and then free workers take.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil, fsum, inf
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from ._checks import Seconds, duration
from .core.entry import Entry
from .core.lifecycle import Event
from .envelope import Envelope
from .errors import BadFieldsError, CapacityExceededError
from .threads import RateEnvelopeQueue

if TYPE_CHECKING:
    from .context import Context
    from .core.run import Run
    from .core.workqueue import WorkQueue

_OPTIONS = ("workers", "capacity", "rate", "rates", "concurrency")


class Arrival(NamedTuple):
    """An envelope of the trace: when it is sent, in seconds, its type and its priority."""

    at: float
    type: str = ""
    priority: int = 0


ServiceTime = Seconds | Callable[[Arrival], Seconds] | Callable[[Arrival, Random], Seconds]
"""How long a run takes: always so long, or by its arrival, or at random."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds from arrival to start. A percentile is a wait that did occur; all are 0 if nothing was served."""

    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    max: float = 0.0
    mean: float = 0.0

    @classmethod
    def of(cls, waits: Iterable[float]) -> Waits:
        """The summary of these waits."""
        ordered = sorted(waits)
        if not ordered:
            return cls()
        p50, p95, p99 = (ordered[ceil(len(ordered) * percent / 100) - 1] for percent in (50, 95, 99))
        return cls(p50, p95, p99, ordered[-1], fsum(ordered) / len(ordered))


@dataclass(frozen=True, slots=True)
class Share:
    """What became of the envelopes of one type."""

    arrived: int
    served: int
    rejected: int
    waits: Waits


@dataclass(frozen=True, slots=True)
class Simulation:
    """What became of the trace; as a text, a table."""

    arrived: int
    served: int
    rejected: int
    """Those that found no room."""
    waits: Waits
    """Of those that were served."""
    utilisation: float
    """Which part of the workers' time was work, from the first arrival to the last end."""
    makespan: float
    """Seconds from the first arrival to the last end."""
    longest_line: int
    """The most that waited at once, when the free workers had taken theirs."""
    per_type: Mapping[str, Share]
    """The same for each type, in order of their names."""

    @property
    def waits_by_type(self) -> dict[str, Waits]:
        """The waits of each type."""
        return {type: share.waits for type, share in self.per_type.items()}

    def __str__(self) -> str:
        types = [_row(name or "(none)", share) for name, share in self.per_type.items()]
        rows = [_HEADINGS, *(types if len(types) > 1 else ()), _row("all", self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
        summary = (
            f"waits in seconds; utilisation {self.utilisation:.1%}, "
            f"longest line {self.longest_line:,}, makespan {self.makespan:,.3f} s"
        )
        return "\n".join([*lines, summary])


_HEADINGS = ("type", "arrived", "served", "rejected", "wait p50", "p95", "p99", "max", "mean")


def _row(name: str, share: Share | Simulation) -> tuple[str, ...]:
    waits = share.waits
    counts = (share.arrived, share.served, share.rejected)
    seconds = (waits.p50, waits.p95, waits.p99, waits.max, waits.mean)
    return name, *(f"{count:,}" for count in counts), *(f"{wait:,.3f}" for wait in seconds)


def simulate(
    queue_options: Mapping[str, Any],
    arrivals: Iterable[Seconds | Arrival],
    service_time: ServiceTime,
    *,
    seed: int = 0,
) -> Simulation:
    """Replay a trace of arrivals against a queue with these options, in no real time.

    The options are the queue's: `workers`, and `capacity`, `rate`, `rates` and `concurrency` if wanted. Random
    service times are drawn in order of arrival: with the same seed each arrival takes as long whatever the
    options are, so that two sets of options can be compared.
    """
    workers, core = _queue_of(queue_options)
    trace = _trace_of(arrivals)
    # Why a text: arrivals drawn with Random(seed) must not share its numbers.
    rng = Random(f"service times {seed}")  # noqa: S311
    replay = _Replay(core, workers, trace, _service_times(service_time, trace, rng))
    replay.run()
    return replay.result()


class _Replay:
    """One pass over the trace."""

    def __init__(self, core: WorkQueue, workers: int, trace: list[Arrival], services: list[float]) -> None:
        self._core = core
        self._workers = workers
        self._trace = trace
        self._services = services
        self._waits: defaultdict[str, list[float]] = defaultdict(list)
        self._rejected: defaultdict[str, int] = defaultdict(int)
        self._busy = 0.0  # worker-seconds
        self._longest_line = 0
        self._ended_at = 0.0

    def run(self) -> None:
        """Go from instant to instant until all have arrived and ended."""
        core, trace, services, waits_of = self._core, self._trace, self._services, self._waits
        running: list[tuple[float, int, Run]] = []  # a heap, by the instant of the end
        idle, waiting, coming = self._workers, 0, 0
        now = arrives_at = trace[0].at if trace else inf
        while now < inf:
            ended: Run | None = None  # the last that has; `take` settles it on the way
            while running and running[0][0] == now:
                if ended is not None:
                    core.finish(ended, now)
                ended = heappop(running)[2]
                idle += 1
            if arrives_at == now:
                if ended is not None:
                    core.finish(ended, now)
                    ended = None
                while arrives_at == now:
                    waiting += self._admit(coming, now)
                    coming += 1
                    arrives_at = trace[coming].at if coming < len(trace) else inf
            while ended is not None or (idle and waiting):
                started = core.take(now, ended)
                ended = None
                if started is None:
                    break
                index = started.envelope.payload
                waits_of[started.envelope._type].append(now - trace[index].at)
                heappush(running, (now + services[index], index, started))
                self._busy += services[index]
                idle -= 1
                waiting -= 1
            if waiting > self._longest_line:
                self._longest_line = waiting
            self._ended_at = now
            now = arrives_at
            if running and running[0][0] < now:
                now = running[0][0]
            if idle and waiting and core.next_due < now:
                now = core.next_due  # a rate lets the next one start

    def _admit(self, index: int, now: float) -> bool:
        """Send the envelope of an arrival; was there room?"""
        _, type, priority = self._trace[index]
        envelope = Envelope(_nothing, type=type, priority=priority, payload=index)
        try:
            if priority:
                self._core.add((Entry(envelope),), now)
            else:
                self._core.add_one(envelope, now)
        except CapacityExceededError:
            self._rejected[type] += 1
            return False
        return True

    def result(self) -> Simulation:
        """What became of the trace."""
        shares = {}
        for type in sorted({arrival.type for arrival in self._trace}):
            waits, rejected = self._waits[type], self._rejected[type]
            shares[type] = Share(len(waits) + rejected, len(waits), rejected, Waits.of(waits))
        makespan = self._ended_at - self._trace[0].at if self._trace else 0.0
        return Simulation(
            arrived=len(self._trace),
            served=sum(share.served for share in shares.values()),
            rejected=sum(share.rejected for share in shares.values()),
            waits=Waits.of(wait for waits in self._waits.values() for wait in waits),
            utilisation=self._busy / (self._workers * makespan) if makespan else 0.0,
            makespan=makespan,
            longest_line=self._longest_line,
            per_type=shares,
        )


def _nothing(ctx: Context, envelope: Envelope[int]) -> None:
    """The work of a simulated envelope."""


def _queue_of(options: Mapping[str, Any]) -> tuple[int, WorkQueue]:
    """How many workers, and the core of a queue with these options, running."""
    if not isinstance(options, Mapping):
        raise BadFieldsError(f"queue_options must be a mapping, got {options!r}")
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise BadFieldsError(
            f"queue_options may be {', '.join(_OPTIONS)}, got {', '.join(map(repr, unknown))}"
        )
    if "workers" not in options:
        raise BadFieldsError("queue_options must have 'workers'")
    # Why a queue that never starts: it checks its options, and makes its core of them, as any queue does.
    core = RateEnvelopeQueue("simulation", metrics=False, **options)._core
    core.apply(Event.START)
    return options["workers"], core


def _trace_of(arrivals: Iterable[Seconds | Arrival]) -> list[Arrival]:
    """The arrivals in order of time, those of the same instant as given."""
    try:
        given = list(arrivals)
    except TypeError:
        raise BadFieldsError(f"arrivals must be instants or Arrivals, got {arrivals!r}") from None
    trace = [_arrival(index, arrival) for index, arrival in enumerate(given)]
    trace.sort(key=lambda arrival: arrival.at)
    return trace


def _arrival(index: int, given: Seconds | Arrival) -> Arrival:
    if not isinstance(given, Arrival):
        return Arrival(_seconds("arrivals[{}]", index, given))
    at, type, priority = given
    if not isinstance(type, str):
        raise BadFieldsError(f"arrivals[{index}].type must be a string, got {type!r}")
    if priority.__class__ is not int:
        raise BadFieldsError(f"arrivals[{index}].priority must be an integer, got {priority!r}")
    return Arrival(_seconds("arrivals[{}].at", index, at), type, priority)


def _service_times(service_time: ServiceTime, trace: list[Arrival], rng: Random) -> list[float]:
    """How long the run of each arrival takes."""
    if not callable(service_time):
        return [duration("service_time", service_time)] * len(trace)
    call: Callable[..., Seconds] = service_time
    extra = (rng,) if _takes_rng(call) else ()
    return [_seconds("service_time of {}", arrival, call(arrival, *extra)) for arrival in trace]


def _seconds(field: str, where: object, value: Seconds) -> float:
    """`duration`, by a shorter way for what is right already; there are many."""
    if isinstance(value, float) and 0.0 <= value < inf:
        return value
    return duration(field.format(where), value)


def _takes_rng(call: Callable[..., Any]) -> bool:
    """Does it want the random generator, too: is the arrival not enough?"""
    try:
        inspect.signature(call).bind(None)
    except TypeError:
        return True
    except ValueError:
        return False  # a builtin that does not say what it takes
    return False
