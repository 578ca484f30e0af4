"""What can be read of many jobs: pages, counts, positions and events. The caller holds the store's lock."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from ...model.counts import Counts, Failures, Filter, JobEvent, Page, Tally
from ...model.job import Job, JobStatus
from ..failures import failures_of
from .ledger import Ledger
from .record import Record


def page(ledger: Ledger, filter: Filter, limit: int, before: int | None) -> Page:
    jobs: list[Job] = []
    last = 0
    for record in _newest(ledger, filter.tag, before):
        if ledger.jobs.get(record.new.id) is not record or not _fits(record, filter):
            continue
        if len(jobs) == limit:
            return Page(jobs, last)
        jobs.append(record.look())
        last = record.number
    return Page(jobs, None)


def _newest(ledger: Ledger, tag: str | None, before: int | None) -> Iterator[Record]:
    """All jobs, or those of a tag, from that number back."""
    if tag is not None:
        tagged = reversed(ledger.tagged.get(tag, {}).values())
        yield from (record for record in tagged if before is None or record.number < before)
        return
    order = ledger.order
    end = len(order) if before is None else bisect_left(order, before, key=lambda each: each.number)
    for index in range(end - 1, -1, -1):
        yield order[index]


def _fits(record: Record, filter: Filter) -> bool:
    return (
        filter.status in (None, record.status)
        and filter.type in (None, record.new.type)
        and filter.queue in (None, record.new.queue)
        and filter.error in (None, record.error.type if record.error else None)
    )


def failures(ledger: Ledger, limit: int) -> Failures:
    last = reversed(ledger.failed.values())
    return failures_of(
        (
            (each.new.type, each.error.type if each.error else None, each.finished_at or 0.0, each.new.id)
            for each in last
        ),
        limit,
    )


def counts(ledger: Ledger, paused: Iterable[str]) -> Counts:
    tallies = [
        Tally(lane.queue, lane.type, status, lane.counts[status], total)
        for lanes in ledger.lanes.values()
        for lane in lanes.values()
        for status, total in lane.totals.items()
        if total
    ]
    return Counts(tallies, frozenset(paused), dict(ledger.retired))


def ahead(ledger: Ledger, id: str) -> int:
    record = ledger.jobs.get(id)
    if record is None or record.status is not JobStatus.QUEUED:
        return 0
    own = record.precedence()
    lanes = [lanes[record.new.queue] for lanes in ledger.lanes.values() if record.new.queue in lanes]
    ready = sum(other.precedence() < own for lane in lanes for other in lane.ready)
    return ready + ledger.gates.parked_before(own, record.new.queue)


def events(ledger: Ledger, after: int, limit: int) -> list[JobEvent]:
    kept = ledger.events
    # Why counted from the end: numbers have no gaps here, and those who follow ask for the last few only.
    first = max(len(kept) - max(ledger.last_event - after, 0), 0)
    return [kept[at] for at in range(first, min(first + limit, len(kept)))]
