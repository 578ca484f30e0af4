"""Jobs on Redis and on PostgreSQL, with one process that runs them and with two: ours next to the peers.

In each repeat all are measured one after the other, on the same server and by the same clock: see `serving`. Each peer is
at its best setting, of which its module tells. The slower ones get fewer jobs, so that none takes much more than a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TypeVar

from .crew import Latencies
from .harness import Case, Goal, Measure, Shared
from .pickup import RATE, WARM_UP, within
from .processing import BATCH
from .servers import empty_postgres, empty_redis
from .serving import enqueued, picked_up, processed
from .waiting import Place, rows

K = TypeVar("K")
T = TypeVar("T")

_OURS = "jobpipe"
_WAITING = "jobpipe, waiting"
"""Why also these: two processes that do nothing but no-ops, one that puts in and a server share two cores."""
_QUICKLY = 4
"""What a quick run divides the numbers of jobs by."""
_SCALES = 1.6
"""What two processes have to do of what one does."""


@dataclass(frozen=True, slots=True)
class _Engine:
    """A kind of server, who is measured on it, and what is expected of us."""

    name: str
    title: str
    place: Place
    jobs: Mapping[str, int]
    """How many each processes in one measurement, and enqueues at least."""
    times: float
    """The best peer's figure."""
    nearest: str
    """The peer that picks up fastest."""
    p50: float  # milliseconds, in one process


_ENGINES = (
    _Engine(
        name="redis",
        title="Redis",
        place=empty_redis,
        jobs={_OURS: 16_000, "dramatiq": 2_000, "huey": 2_000, "taskiq": 2_000},
        times=4,
        nearest="huey",
        p50=2,
    ),
    _Engine(
        name="postgres",
        title="PostgreSQL",
        place=empty_postgres,
        jobs={_OURS: 12_000, "pgqueuer": 8_000, "chancy": 1_000, "procrastinate": 400},
        times=1.3,
        nearest="pgqueuer",
        p50=4,
    ),
)


def cases(*, quick: bool) -> list[Case]:
    return [case for engine in _ENGINES for case in _rows(engine, quick=quick)]


def _rows(engine: _Engine, *, quick: bool) -> Iterator[Case]:
    jobs = {kind: n // _QUICKLY if quick else n for kind, n in engine.jobs.items()}
    yield from _processed_rows(engine, jobs)
    yield from _enqueued_rows(engine, jobs)
    yield from _pickup_rows(engine, WARM_UP + (100 if quick else 200))
    yield from rows(engine.name, engine.title, engine.place, 20_000 if quick else 1_000_000)


def _processed_rows(engine: _Engine, jobs: Mapping[str, int]) -> Iterator[Case]:
    found = _measured_together(
        {
            (kind, size): partial(processed, engine.place, kind, n, size)
            for kind, n in jobs.items()
            for size in (1, 2)
        }
    )
    row = partial(
        _row, engine, shows=f"no-op jobs a second on {engine.title}, until nothing is outstanding in it"
    )
    for size in (1, 2):
        for peer in list(jobs)[1:]:
            yield row(
                f"processed by {size}, next to {peer}",
                ours=found.figure(itemgetter((_OURS, size))),
                peer=found.figure(itemgetter((peer, size))),
                peer_name=peer,
                goals=(Goal(">=", engine.times),) if size == 1 else (),
            )
    waiting = _measured_together(
        {(_WAITING, size): partial(processed, engine.place, _WAITING, 3_000, size) for size in (1, 2)}
    )
    for kind, shared, what in ((_OURS, found, "no-op jobs"), (_WAITING, waiting, "jobs of 10 ms")):
        yield row(
            f"processed by 2, next to 1, {what}",
            ours=shared.figure(itemgetter((kind, 2))),
            peer=shared.figure(itemgetter((kind, 1))),
            peer_name="1 process",
            goals=(Goal(">=", _SCALES),),
        )


def _enqueued_rows(engine: _Engine, jobs: Mapping[str, int]) -> Iterator[Case]:
    found = _measured_together(
        {kind: partial(enqueued, engine.place, kind, max(n, BATCH)) for kind, n in jobs.items()}
    )
    for peer in list(jobs)[1:]:
        yield _row(
            engine,
            f"enqueued, next to {peer}",
            shows=f"jobs a second put into {engine.title} in batches of {BATCH:,}",
            ours=found.figure(itemgetter(_OURS)),
            peer=found.figure(itemgetter(peer)),
            peer_name=peer,
            goals=(Goal(">=", 1),),
        )


def _row(
    engine: _Engine,
    row: str,
    *,
    shows: str,
    ours: Measure,
    peer: Measure,
    peer_name: str,
    goals: tuple[Goal, ...],
) -> Case:
    return Case(
        name=engine.name,
        row=row,
        shows=shows,
        unit="/s",
        ours=ours,
        peer=peer,
        peer_name=peer_name,
        ratio_of="ours/peer",
        goals=goals,
    )


def _pickup_rows(engine: _Engine, n: int) -> Iterator[Case]:
    for size, p50 in ((1, engine.p50), (2, 4)):
        found = _measured_together(
            {kind: partial(picked_up, engine.place, kind, n, size) for kind in (_OURS, engine.nearest)}
        )
        for percent, goal in ((50, p50), (99, 10)):
            yield Case(
                name=engine.name,
                row=f"picked up in {size}, p{percent}",
                shows=f"from enqueue to the handler's beginning at {RATE} jobs/s, {percent} % of jobs within",
                unit="ms",
                ours=found.figure(partial(_within, percent, _OURS)),
                peer=found.figure(partial(_within, percent, engine.nearest)),
                peer_name=engine.nearest,
                goals=(Goal("<=", goal, on="ours"),),
            )


def _within(percent: int, kind: str, found: Mapping[str, Latencies]) -> float:
    return within(percent, found[kind])


def _measured_together(measures: Mapping[K, Callable[[], T]]) -> Shared[dict[K, T]]:
    """One after the other in each repeat, so that a busy moment of the machine hits no row alone."""
    return Shared(lambda: {key: measure() for key, measure in measures.items()})
