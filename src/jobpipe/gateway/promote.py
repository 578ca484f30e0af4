"""Promote: move what is unfinished, and the schedules, from one stopped store to another.

Each batch is put into the target before it is deleted from the source, so that an interrupted move can be done again:
what is in both by then is known by its id. Finished jobs stay where they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import uuid4

from ..errors import DuplicateError, JobConflictError, StoreRefusedError
from ..model.counts import WorkerInfo
from ..model.durable import DurableState
from ..model.job import PENDING, JobStatus
from ..model.newjob import ExportedJob
from ..model.text import counted
from ..stores.base import JobStore, Store, WatchStore

_FEWEST, _MOST = 20, 1_000
"""Jobs that move together: few at first, as each may have megabytes of logs, results of steps and signals."""
_LARGE = 16 * 1_048_576
"""Bytes that are to move together, about."""
_LOOK_EVERY = 0.25
_PROBED_FOR = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """How far it has come."""

    jobs: int
    of: int
    already: int
    """So many of the jobs were in the target already, from a move that was interrupted."""
    schedules: int = 0


def promote(
    source: Store,
    target: Store,
    report: Callable[[Moved], None] = lambda _: None,
    wait_for: Callable[[str], None] = lambda _: None,
) -> Moved:
    """Move everything that waits; tells of every batch, and what it waits for before it can begin.

    StoreRefusedError if the source is in use, if it is the target itself, or if not everything was moved.
    """
    target.check()
    if _is_same(source, target):
        raise StoreRefusedError(f"the source and the target are the same store, {target.url}")
    _come_to_rest(source, wait_for)
    for queue in sorted(source.counts().paused):
        target.pause(queue)
    moved = _move_jobs(source, target, report)
    entries = source.schedules().entries
    for entry in entries:
        target.put_schedule(entry)
        source.drop_schedule(entry.name)
    left = _count(source, *PENDING)
    if left or moved.jobs != moved.of:
        raise StoreRefusedError(
            f"{moved.jobs} of {counted(moved.of, 'job', 'was', 'were')} moved and {left} "
            f"{'is' if left == 1 else 'are'} still in {source.url}: jobs were enqueued or changed during the move; "
            "stop everything that uses the store, then promote again"
        )
    return replace(moved, schedules=len(entries))


def _is_same(source: WatchStore, target: WatchStore) -> bool:
    """Does what is put into one appear in the other? Why not by their URLs: a store has many."""
    probe = WorkerInfo(name=f"promote:{uuid4()}", types=(), slots=0, running=(), started_at=0.0)
    target.beat(probe, _PROBED_FOR)
    try:
        return any(worker.name == probe.name for worker in source.workers())
    finally:
        target.beat(probe, 0)


def _move_jobs(source: Store, target: Store, report: Callable[[Moved], None]) -> Moved:
    moved = Moved(jobs=0, of=_count(source, *PENDING), already=0)
    after, limit = 0, _FEWEST
    report(moved)
    while exported := source.export(limit, after):
        limit = max(_FEWEST, min(_MOST, len(exported) * _LARGE // max(sum(map(_size, exported)), 1)))
        after = exported[-1].number
        try:
            new = target.adopt(exported)
        except DuplicateError as error:
            raise StoreRefusedError(
                f"not all jobs of {source.url} can move to {target.url}: {error}"
            ) from None
        except JobConflictError as error:
            raise StoreRefusedError(
                f"the job {error.id!r} of {source.url} cannot move: {target.url} has a different job with that id; "
                "cancel one of them (jobpipe cancel), then promote again"
            ) from None
        gone = source.discard([job.job.id for job in exported])
        moved = replace(moved, jobs=moved.jobs + gone, already=moved.already + len(exported) - new)
        report(moved)
    return moved


def _size(exported: ExportedJob) -> int:
    """Bytes that it takes, about."""
    state = exported.durable or DurableState()
    recorded = sum(len(step.result) for step in state.steps) + sum(
        len(each.payload) for each in state.signals
    )
    return len(exported.job.payload) + recorded + sum(chunk.size for chunk in exported.logs) + 1


def _come_to_rest(source: Store, wait_for: Callable[[str], None]) -> None:
    """Wait until workers that died are forgotten and their jobs rescued; one that lives is a reason to refuse."""
    seen_at = {worker.name: worker.seen_at for worker in source.workers()}
    told = ""
    while True:
        workers = source.workers()
        alive = [worker.name for worker in workers if worker.seen_at != seen_at.get(worker.name)]
        if alive:
            raise StoreRefusedError(
                f"{source.url} is in use by the worker {alive[0]}: stop everything that uses it first"
            )
        source.rescue()
        running = _count(source, JobStatus.RUNNING)
        if not running and not workers:
            return
        if workers:
            reason = f"{counted(len(workers), 'worker')} to expire or to send a heartbeat"
        else:
            reason = counted(
                running, "job", "to be rescued from a lost worker", "to be rescued from lost workers"
            )
        if reason != told:
            wait_for(reason)
            told = reason
        time.sleep(_LOOK_EVERY)


def _count(store: JobStore, *statuses: JobStatus) -> int:
    return sum(tally.count for tally in store.counts().tallies if tally.status in statuses)
