"""What the tests of the contract have in common: making jobs, running them, looking at them, and threads.

Only verbs of the Store are used here, so that everything holds for a store on another machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from threading import Barrier
from typing import Any, TypeVar

from ..model.counts import Filter
from ..model.gate import Limit
from ..model.job import Job, JobError, JobStatus, Move
from ..model.json import encode, fingerprints
from ..model.lease import Claim, Outcome, Rescued, Settlement
from ..model.newjob import NewJob, Receipt
from ..stores.base import Store
from ..stores.memory import MemoryStore
from .harness import StoreHarness

T = TypeVar("T")

THREADS = 16

BOOM = JobError(type="Boom", message="it broke", traceback="Traceback: line 1")
LOST = JobError(type="WorkerLost", message="worker lost")


def new_job(
    id: str,
    payload: Any = None,
    *,
    type: str = "work",
    queue: str = "default",
    max_retries: int = 3,
    priority: int = 0,
    delay: float = 0.0,
    run_at: float | None = None,
    deadline: float | None = None,
    key: str | None = None,
    former_retries: Sequence[int] = (),
    **more: Any,
) -> NewJob:
    """A job as the enqueue API would make it; max_retries had these defaults before. More: expiry, unique name, tags."""
    raw = encode(payload)
    fingerprint, *former = fingerprints(
        raw,
        *(
            (type, queue, retries, priority, delay, run_at, deadline, *([more] if more else []))
            for retries in (max_retries, *former_retries)
        ),
    )
    return NewJob(
        id=id,
        type=type,
        queue=queue,
        payload=raw,
        max_retries=max_retries,
        priority=priority,
        delay=delay,
        run_at=run_at,
        deadline=deadline,
        fingerprint=fingerprint,
        key=key,
        former=tuple(former),
        **more,
    )


def put(store: Store, *jobs: NewJob) -> list[Receipt]:
    """Insert one batch, which must be accepted."""
    (answer,) = store.insert([jobs])
    assert isinstance(answer, list), answer
    return answer


def take(
    store: Store,
    limit: int = 1,
    *,
    worker: str = "w1",
    types: Sequence[str] = ("work",),
    lease: float = 60,
    limits: Sequence[Limit] = (),
    **options: Any,
) -> list[Claim]:
    return store.claim(worker, types, limit, lease, limits, **options).claims


def take_one(store: Store, *, worker: str = "w1", lease: float = 60) -> Claim:
    (claim,) = take(store, worker=worker, lease=lease)
    return claim


def ids(found: Iterable[Any]) -> list[str]:
    """Of claims, jobs, events or what was rescued."""
    return [each.id for each in found]


def started(
    store: Store, id: str, payload: Any = None, *, worker: str = "w1", lease: float = 60, **options: Any
) -> Claim:
    """Insert a job and claim it."""
    put(store, new_job(id, payload, **options))
    return take_one(store, worker=worker, lease=lease)


def rescue_after(store: Store, harness: StoreHarness, seconds: float = 61) -> list[Rescued]:
    """Take back what has not been extended for so long."""
    harness.elapse(seconds)
    return store.rescue()


def finish(
    store: Store,
    claim: Claim,
    move: Move = Move.SUCCEED,
    *,
    result: Any = None,
    error: JobError | None = None,
    delay: float = 0.0,
    cools: float = 0.0,
) -> bool:
    """Settle one run."""
    raw = encode(result) if move is Move.SUCCEED else None
    outcome = Outcome(move=move, result=raw, error=error, delay=delay, cools=cools)
    (is_recorded,) = store.settle([Settlement(claim.lease, outcome)])
    return is_recorded


def look(store: Store, id: str) -> Job:
    job = store.get(id)
    assert job is not None, f"there is no job {id}"
    return job


def seconds_between(earlier: Any, later: Any) -> float:
    """Between two instants that the store told."""
    assert earlier is not None
    assert later is not None
    return float((later - earlier).total_seconds())


def bring_to(store: Store, id: str, status: JobStatus) -> Claim | None:
    """Insert a job and lead it to that status; its last claim, if it had one."""
    if status is JobStatus.EXPIRED:
        put(store, new_job(id, delay=0, expires_at=1.0))
        return None
    put(store, new_job(id, delay=3600 if status is JobStatus.SCHEDULED else 0))
    if status in (JobStatus.SCHEDULED, JobStatus.QUEUED):
        return None
    if status is JobStatus.CANCELLED:
        store.cancel([id])
        return None
    claim = take_one(store)
    assert claim.id == id
    if status is JobStatus.DONE:
        assert finish(store, claim, result={"answer": 42})
    if status is JobStatus.FAILED:
        assert finish(store, claim, Move.FAIL, error=BOOM)
    return claim


def bring_one_to_each(store: Store, prefix: str = "") -> list[str]:
    """A job in every status; their ids, in the order of JobStatus."""
    # Why reversed: a queued one must not be in the way of those to be claimed.
    for status in reversed(JobStatus):
        bring_to(store, f"{prefix}{status.value}", status)
    return [f"{prefix}{status.value}" for status in JobStatus]


def move_away_and_back(store: Store, *ids: str) -> None:
    """Move all jobs to a memory store and back again."""
    between = MemoryStore()
    between.adopt(store.export(100))
    assert store.discard(ids) == len(ids)
    assert tally(store) == {}
    store.adopt(between.export(100))


def pages(store: Store, filter: Filter | None = None, limit: int = 500) -> Iterator[list[Job]]:
    """The jobs that fit, newest first, page by page."""
    before: int | None = None
    while True:
        page = store.page(filter or Filter(), limit, before)
        yield page.jobs
        if page.next is None:
            return
        before = page.next


def page_ids(store: Store, filter: Filter | None = None, limit: int = 500) -> list[str]:
    """The ids of all jobs that fit, newest first."""
    return [job.id for jobs in pages(store, filter, limit) for job in jobs]


def tally(store: Store) -> dict[JobStatus, int]:
    """How many jobs have each status, without the zeros."""
    return _by_status((row.status, row.count) for row in store.counts().tallies)


def totals(store: Store) -> dict[JobStatus, int]:
    """How often a job came to have each status, without the zeros."""
    return _by_status((row.status, row.total) for row in store.counts().tallies)


def _by_status(numbers: Iterable[tuple[JobStatus, int]]) -> dict[JobStatus, int]:
    found: Counter[JobStatus] = Counter()
    for status, number in numbers:
        found[status] += number
    return dict(+found)


def assert_counts_are_exact(store: Store) -> None:
    """Hold the tallies against the jobs themselves."""
    tallies = store.counts().tallies
    counted = Counter({(row.queue, row.type, row.status): row.count for row in tallies})
    assert +counted == Counter((job.queue, job.type, job.status) for jobs in pages(store) for job in jobs)
    assert all(row.total >= row.count >= 0 for row in tallies)


@contextmanager
def handles(harness: StoreHarness, number: int | None = None) -> Iterator[list[Store]]:
    """Several handles on the same data."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(closing(harness.open()))
            for _ in range(harness.handles if number is None else number)
        ]


def together(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run all calls at the same time, each in a thread; what they return, in their order."""
    start = Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        start.wait(30)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def from_all_sides(harness: StoreHarness, call: Callable[[Store, int], T], number: int = THREADS) -> list[T]:
    """Call it so often at the same time, spread over the handles; what the calls return, in their order."""
    with handles(harness) as several:
        return together([partial(call, several[n % len(several)], n) for n in range(number)])
