"""What the tests of the contract have in common: making jobs, running them, and bringing them to a status.

Only verbs of the Store are used here, so that everything holds for a store on another machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..model.gate import Limit
from ..model.job import JobError, JobStatus, Move
from ..model.json import encode, fingerprints
from ..model.lease import Claim, Outcome, Rescued, Settlement
from ..model.newjob import NewJob, Receipt
from ..stores.base import Store
from ..stores.memory import MemoryStore
from .harness import StoreHarness
from .reading import tally

T = TypeVar("T")


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
    name: str | None = None,
) -> bool:
    """Settle one run."""
    raw = encode(result) if move is Move.SUCCEED else None
    outcome = Outcome(move=move, result=raw, error=error, delay=delay, cools=cools, name=name)
    (is_recorded,) = store.settle([Settlement(claim.lease, outcome)])
    return is_recorded


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
    if status is JobStatus.WAITING:
        assert finish(store, claim, Move.WAIT, name="go", delay=3600)
    if status is JobStatus.FAILED:
        assert finish(store, claim, Move.FAIL, error=BOOM)
    return claim


def bring_one_to_each(store: Store, prefix: str = "") -> list[str]:
    """A job in every status; their ids, in the order of JobStatus."""
    # Why the queued one last: it must not be in the way of those to be claimed. The expired one ends with the call after it.
    others = [status for status in reversed(JobStatus) if status is not JobStatus.QUEUED]
    for status in (*others, JobStatus.QUEUED):
        bring_to(store, f"{prefix}{status.value}", status)
    return [f"{prefix}{status.value}" for status in JobStatus]


def move_away_and_back(store: Store, *ids: str) -> None:
    """Move all jobs to a memory store and back again."""
    between = MemoryStore()
    between.adopt(store.export(100))
    assert store.discard(ids) == len(ids)
    assert tally(store) == {}
    store.adopt(between.export(100))
