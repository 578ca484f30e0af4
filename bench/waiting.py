"""What one claim and one enqueue cost with many jobs waiting in the store, next to the same with 1,000.

A store is filled once, in a process of its own (`python -m bench.waiting memory:// 1000`), which then measures as often as
a line of its input asks. Each measurement leaves as many jobs waiting as it found: what was claimed is
released, what was put in is cancelled and pruned, outside of the clock.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from weakref import finalize

from jobpipe.model.ids import new_id
from jobpipe.stores import open_store
from jobpipe.stores.base import Lease, NewJob, Store

from .disk import scratch
from .harness import Case, Goal, expect, micros_each

Place = Callable[[], AbstractContextManager[str]]
"""Makes an empty place for a store, and tells its URL."""

_ROOT = Path(__file__).parents[1]
_FEW = 1_000
_AT_ONCE = 100  # jobs a call
_CALLS = 5  # a round: no more than the fewest jobs allow
_ROUNDS = 6
_FILL = 10_000  # jobs a call
_TYPE = "noop"
_LEASE = 600.0


def cases(*, quick: bool) -> list[Case]:
    n = 100_000 if quick else 1_000_000
    places: dict[str, Place] = {"SQLite": _sqlite, "memory": _memory}
    return [case for title, place in places.items() for case in rows("waiting", title, place, n)]


@contextmanager
def _sqlite() -> Iterator[str]:
    with scratch() as folder:
        yield f"sqlite:///{folder}/bench.db"


@contextmanager
def _memory() -> Iterator[str]:
    yield "memory://"


def rows(name: str, title: str, place: Place, n: int) -> list[Case]:
    """Those of one store, in the case of that name."""
    many, few = _Filled(place, n), _Filled(place, _FEW)
    return [
        Case(
            name=name,
            row=f"{verb} with {n:,} in {title}",
            shows=f"a job's share of a {verb} of {_AT_ONCE} with so many jobs waiting",
            unit="µs",
            ours=partial(many.measure, verb),
            peer=partial(few.measure, verb),
            peer_name=f"with {_FEW:,}",
            ratio_of="ours/peer",
            goals=(Goal("<=", 1.25),),
        )
        for verb in ("claim", "enqueue")
    ]


class _Filled:
    """A store with so many jobs waiting, in a process that starts when it is first needed and ends with this one."""

    def __init__(self, place: Place, n: int) -> None:
        self._place = place
        self._n = n
        self._process: subprocess.Popen[str] | None = None

    def measure(self, verb: str) -> float:
        """Microseconds a job."""
        if self._process is None:
            self._process = self._start()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(verb, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def _start(self) -> subprocess.Popen[str]:
        stack, pipe = ExitStack(), subprocess.PIPE
        command = (sys.executable, "-m", "bench.waiting", stack.enter_context(self._place()), str(self._n))
        process = subprocess.Popen(command, cwd=_ROOT, stdin=pipe, stdout=pipe, text=True)
        stack.callback(process.communicate)  # closes its input, which ends it, and waits until it has
        finalize(self, stack.close)
        return process


# The process with the store


def answer(url: str, n: int) -> None:
    """Fill the store, and measure what each line of the input names."""
    verbs: dict[str, Callable[[Store], float]] = {"claim": _claim, "enqueue": _enqueue}
    store = open_store(url)
    store.migrate()
    for first in range(0, n, _FILL):
        store.insert([_jobs(min(_FILL, n - first))])
    for verb in verbs.values():
        verb(store)  # Why: the first time opens connections, and reads statements
    for line in sys.stdin:
        gc.collect()
        figure = verbs[line.strip()](store)
        expect(_waiting(store), n, "jobs still waiting")
        print(figure, flush=True)
    store.close()


def _claim(store: Store) -> float:
    took = 0.0
    for _ in range(_ROUNDS):
        leases: list[Lease] = []
        for _ in range(_CALLS):
            began = perf_counter()
            result = store.claim("bench", [_TYPE], _AT_ONCE, _LEASE)
            took += perf_counter() - began
            leases += [claim.lease for claim in result.claims]
        expect(sum(store.release(leases)), _CALLS * _AT_ONCE, "jobs claimed")
    return micros_each(took, _ROUNDS * _CALLS * _AT_ONCE)


def _enqueue(store: Store) -> float:
    took = 0.0
    for _ in range(_ROUNDS):
        batches = [_jobs(_AT_ONCE) for _ in range(_CALLS)]
        for batch in batches:
            began = perf_counter()
            store.insert([batch])
            took += perf_counter() - began
        store.cancel([job.id for batch in batches for job in batch])
        while store.prune(-1.0):
            pass
    return micros_each(took, _ROUNDS * _CALLS * _AT_ONCE)


def _jobs(n: int) -> list[NewJob]:
    return [
        NewJob(
            id=new_id(),
            type=_TYPE,
            queue="default",
            payload=b'{"n":1}',
            max_retries=3,
            priority=0,
            delay=0.0,
            run_at=None,
            deadline=None,
            fingerprint="0" * 32,
        )
        for _ in range(n)
    ]


def _waiting(store: Store) -> int:
    return sum(tally.count for tally in store.counts().tallies if tally.status == "queued")


if __name__ == "__main__":
    answer(sys.argv[1], int(sys.argv[2]))
