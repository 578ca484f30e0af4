"""Reading jobs, pages and counts, as the tests of the contract do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ..model.counts import Filter
from ..model.job import Job, JobStatus
from ..stores.base import Store


def ids(found: Iterable[Any]) -> list[str]:
    """Of claims, jobs, events or what was rescued."""
    return [each.id for each in found]


def look(store: Store, id: str) -> Job:
    job = store.get(id)
    assert job is not None, f"there is no job {id}"
    return job


def seconds_between(earlier: Any, later: Any) -> float:
    """Between two instants that the store told."""
    assert earlier is not None
    assert later is not None
    return float((later - earlier).total_seconds())


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
