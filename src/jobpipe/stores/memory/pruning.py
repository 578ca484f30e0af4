"""Deleting jobs that ended long ago. The caller holds the store's lock."""

from __future__ import annotations

from .ledger import Ledger


def prune(ledger: Ledger, keep: float, limit: int, keep_failed: float, now: float) -> int:
    pruned = 0
    for ended, kept in ((ledger.finished, keep), (ledger.failed, keep_failed)):
        while ended and pruned < limit:
            record = next(iter(ended.values()))
            if record.finished_at is None or now - record.finished_at <= kept:
                break
            ledger.remove(record, now)
            pruned += 1
    ledger.tidy()
    ledger.gates.tidy(now)
    if pruned < limit:
        ledger.forget_names()
    return pruned
