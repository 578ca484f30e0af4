"""What one gets to see of jobs and queues as a whole, and how one says which jobs are meant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypedDict

from msgspec import Struct

from ..errors import BadInputError
from ..model.counts import ChildInfo, Counts, Filter, WorkerInfo
from ..model.ids import check_name
from ..model.job import FINISHED, Job, JobStatus, instant
from ..model.request import check_search, check_tag, convert


class JobPage(Struct, frozen=True):
    """Jobs, newest first, without payload, result and history."""

    jobs: list[Job]
    next_cursor: str | None


class QueueInfo(Struct, frozen=True, kw_only=True):
    """A queue, and the number of its unfinished jobs by status."""

    name: str
    paused: bool
    scheduled: int = 0
    waiting: int = 0
    queued: int = 0
    running: int = 0


class Stats(Struct, frozen=True, kw_only=True):
    """The number of jobs with each status, and how many per second reached it recently."""

    scheduled: int
    waiting: int
    queued: int
    running: int
    done: int
    failed: int
    cancelled: int
    expired: int
    per_second: dict[str, float]


class Worker(Struct, frozen=True, kw_only=True):
    """A process that runs jobs, the ids of these jobs, and its last heartbeat."""

    name: str
    types: tuple[str, ...]
    slots: int
    running: tuple[str, ...]
    started_at: datetime
    seen_at: datetime
    queues: tuple[str, ...] | None = None
    """The only queues that it serves; None for all but the excepted."""
    except_queues: tuple[str, ...] = ()
    slots_by_queue: dict[str, int] = {}
    """Of queues that have slots of their own."""
    running_by_queue: dict[str, int] = {}
    children: dict[str, ChildInfo] = {}
    """The child processes of isolated jobs, by the id of the job."""


def worker_of(info: WorkerInfo) -> Worker:
    """The worker as it is shown."""
    told = {name: getattr(info, name) for name in Worker.__struct_fields__}
    return Worker(**told | {name: instant(told[name]) for name in ("started_at", "seen_at")})


def queues_text(worker: Worker) -> str:
    """Which queues it serves, in words."""
    if worker.slots_by_queue:
        taken = worker.running_by_queue
        return ", ".join(f"{name} {taken.get(name, 0)}/{own}" for name, own in worker.slots_by_queue.items())
    if worker.queues is not None:
        return ", ".join(worker.queues)
    return f"all but {', '.join(worker.except_queues)}" if worker.except_queues else "all"


class JobFilter(TypedDict, total=False):
    """Which jobs, as keywords of a call; None counts as not given."""

    status: JobStatus | str | None
    type: str | None
    queue: str | None
    tag: str | None
    error: str | None


def filter_of(
    *,
    status: JobStatus | str | None = None,
    type: str | None = None,
    queue: str | None = None,
    tag: str | None = None,
    error: str | None = None,
) -> Filter:
    """What a caller gave as a filter, checked."""
    return Filter(
        status=None if status is None else convert({"status": status}, _StatusOnly).status,
        type=None if type is None else check_name("type", type),
        queue=None if queue is None else check_name("queue", queue),
        tag=None if tag is None else check_tag("tag", tag),
        error=None if error is None else check_search("error", error),
    )


def chosen_of(all: bool, filters: JobFilter) -> Filter:
    """What a caller gave for a change of many jobs: at least one filter, or all of them and none."""
    if not isinstance(all, bool):
        raise BadInputError("all", f"must be true or false, got {all!r}")
    filter = filter_of(**filters)
    if all == (filter != Filter()):
        names = "status, type, queue, tag and error"
        raise BadInputError("all", f"must be true, or at least one of {names} must be given, but not both")
    return filter


class _StatusOnly(Struct):
    status: JobStatus


def read_cursor(cursor: str | None) -> int | None:
    """What a caller gave as the cursor of a page, checked."""
    if cursor is None:
        return None
    if not (isinstance(cursor, str) and cursor.isascii() and cursor.isdigit() and len(cursor) <= 18):
        raise BadInputError("cursor", "must be the next_cursor of a page")
    return int(cursor)


def queues_of(counts: Counts) -> list[QueueInfo]:
    """The queues in the counts, by name."""
    found: dict[str, dict[str, int]] = {name: {} for name in counts.paused}
    for tally in counts.tallies:
        numbers = found.setdefault(tally.queue, {})
        if tally.status not in FINISHED:
            numbers[tally.status] = numbers.get(tally.status, 0) + tally.count
    return [
        QueueInfo(name=name, paused=name in counts.paused, **numbers)
        for name, numbers in sorted(found.items())
    ]


def stats_of(counts: Counts, per_second: Mapping[JobStatus, float]) -> Stats:
    """The counts of all queues together."""
    found = dict.fromkeys(map(str, JobStatus), 0)
    for tally in counts.tallies:
        found[tally.status] += tally.count
    return Stats(**found, per_second={str(status): round(pace, 3) for status, pace in per_second.items()})
