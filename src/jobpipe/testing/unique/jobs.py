"""Jobs with unique names, and what is done to them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ...errors import JobConflictError
from ...model.job import Move, OnDuplicate
from ...model.lease import Claim
from ...model.newjob import NewJob
from ...stores.base import Store
from ..harness import StoreHarness
from ..tools import BOOM, finish, new_job, put, rescue_after, take, take_one

NAME = "report:17"
KEEP, REPLACE, RESTART = OnDuplicate


def unique_job(
    id: str,
    payload: Any = None,
    on_duplicate: OnDuplicate = KEEP,
    *,
    name: str = NAME,
    max_wait: float | None = None,
    **more: Any,
) -> NewJob:
    """A job with a unique name."""
    return replace(new_job(id, payload, **more), unique=name, on_duplicate=on_duplicate, max_wait=max_wait)


def refused(store: Store, *jobs: NewJob) -> JobConflictError:
    """Insert one batch, which must be refused."""
    (answer,) = store.insert([jobs])
    assert isinstance(answer, JobConflictError), answer
    return answer


def started_unique(store: Store, id: str, **options: Any) -> Claim:
    """Insert a job with the unique name and claim it."""
    put(store, unique_job(id, **options))
    return take_one(store)


def is_claimed(store: Store, id: str) -> bool:
    return [claim.id for claim in take(store, 9)] == [id]


def begin_another(store: Store, claim: Claim, harness: StoreHarness, how: str) -> None:
    """Bring a job that runs to a place between two runs."""
    match how:
        case "retry":
            assert finish(store, claim, Move.RETRY, error=BOOM, delay=10)
        case "snooze":
            assert finish(store, claim, Move.SNOOZE, delay=10)
        case "release":
            assert store.release([claim.lease]) == [True]
        case _:
            assert [each.id for each in rescue_after(store, harness, 100)] == [claim.id]
