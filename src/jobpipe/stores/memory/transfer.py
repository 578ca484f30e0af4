"""Jobs that come from another store, or go to one. The caller holds the store's lock."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice

from ...errors import JobConflictError
from ...model.job import PENDING
from ...model.newjob import ExportedJob
from ...model.unique import refuse_second
from .ledger import Ledger


def export(ledger: Ledger, limit: int, after: int) -> list[ExportedJob]:
    begin = bisect_right(ledger.order, after, key=lambda each: each.number)
    waiting = (
        record
        for record in islice(ledger.order, begin, None)
        if record.status in PENDING and ledger.jobs.get(record.new.id) is record
    )
    return [record.pack() for record in islice(waiting, limit)]


def adopt(ledger: Ledger, exported: Sequence[ExportedJob], now: float) -> int:
    for job in exported:
        known = ledger.jobs.get(job.job.id)
        if known and not job.job.is_same(known.new.fingerprint):
            raise JobConflictError(job.job.id)
    new = [job for job in exported if job.job.id not in ledger.jobs]
    refuse_second(new, ledger.names.look)
    for job in new:
        ledger.add(job.job, now, job)
    return len(new)


def discard(ledger: Ledger, ids: Sequence[str], now: float) -> int:
    found = [record for id in set(ids) if (record := ledger.jobs.get(id))]
    waiting = [record for record in found if record.status in PENDING]
    for record in waiting:
        ledger.remove(record, now)
    ledger.tidy()
    return len(waiting)
