"""RedisStore: the verbs, each one script in `lua/` that runs on the server as one atomic step.

The server's clock decides. A verb whose reply was lost may be asked again; only a claim is not asked twice, since a
second one would take other jobs.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import msgspec

from ...errors import BadInputError, DuplicateError, JobConflictError, StoreRefusedError
from ...model.admission import Bounds
from ...model.counts import MOST_FAILURES, Counts, Failures, Filter, JobEvent, Page, WorkerInfo
from ...model.gate import Limit, Limits, split_limits
from ...model.job import Job, JobError, JobStatus, Progress
from ...model.lease import ClaimResult, Lease, LeaseState, QueueChoice, Rescued, Settlement
from ...model.logs import JobLogs, LogChunk
from ...model.newjob import Answer, ExportedJob, NewJob, NewPayload, Receipt, Refusal
from ...model.schedule import ScheduleEntry, Schedules
from ...model.unique import move_refusal, retry_refusal
from ..base import Capabilities, News, Watch
from ..failures import Failed, error_start, failed_of, failures_of
from ..stored import counts_of
from .address import Address, address_of
from .checking import refuse_unfit, remarks
from .records import (
    answer_of,
    choice_values,
    chunk_values,
    claims_of,
    exported_of,
    jobs_of,
    kept_values,
    key_of,
    key_text,
    logs_in,
    new_values,
    outcome_values,
    pack,
    text_of,
    whole_job_of,
)
from .scripts import script
from .server import Server
from .values import entry_values, events_of, limits_of, schedule_of, schedules_of, workers_of
from .watch import RedisWatch

_STEPS = ("0001_jobs", "0002_claimed_ahead", "0003_admission", "0004_unique_expiry_tags", "0005_logs")
"""Of the schema. The second and the fourth rewrite no record: who reads one of the first sees that it is not claimed ahead,
and one that ends early has no expiry, unique name or tags. An older program than the fifth would leave logs behind."""
_SCHEMA = len(_STEPS)
_MOST_AT_ONCE = 1_000
"""Jobs that one claim brings, at the most: while a script runs, the server does nothing else."""
_MOST_INSERTED = 2_000
_MOST_BYTES = 16 * 2**20
"""Jobs, and bytes of payload, in one script. A call with more takes several, each with whole batches."""
_MOST_FAILED = 1_000
"""Failed jobs that one script tells of."""
_LARGEST_BATCH = 10_000
"""Jobs in one batch, which cannot be split."""
_LOST = text_of(JobError(type="WorkerLost", message="worker lost"))
_read = msgspec.msgpack.Decoder().decode


def open_redis(url: str) -> RedisStore:
    """The store at `redis://…`, `rediss://…` or `unix://…`."""
    return RedisStore(url)


class RedisStore:
    """Jobs on a Redis server."""

    capabilities = Capabilities(durable=True, shared=True, transactional=False, push=True, blocking=True)

    def __init__(self, url: str | Address, *, clock: Callable[[], float] | None = None) -> None:
        """A clock is for tests, which cannot wait; all handles must have the same."""
        self._address = address_of(url) if isinstance(url, str) else url
        self.url = self._address.url
        self._clock = clock
        self._server = Server(self._address)

    def _run(self, verb: str, told: Any = None, *, may_repeat: bool = True) -> Any:
        now = "" if self._clock is None else repr(self._clock())
        return self._server.run(script(verb), now, pack(told), may_repeat=may_repeat)

    # Being there

    def migrate(self) -> list[str]:
        refuse_unfit(self._server)
        version = self._run("migrate", _SCHEMA)
        if version > _SCHEMA:
            raise StoreRefusedError(
                f"the store {self.url} has the schema {version}, this program knows {_SCHEMA} at most: "
                "use a newer program"
            )
        return list(_STEPS[version:])

    def check(self) -> list[str]:
        return remarks(self._server)

    def sibling(self) -> Self:
        return type(self)(self._address, clock=self._clock)

    def close(self) -> None:
        self._server.close()

    # Putting in

    def insert(
        self,
        batches: Sequence[Sequence[NewJob]],
        *,
        capacity: int = 0,
        scheduled: int = 0,
        names: int = 0,
    ) -> list[Answer]:
        bounds = Bounds(capacity, scheduled, names)
        largest = max(map(len, batches), default=0)
        if largest > _LARGEST_BATCH:
            raise BadInputError(
                "jobs",
                f"may be at most {_LARGEST_BATCH:,} in one batch on Redis, got {largest:,}: send several",
            )
        answers: list[Answer] = []
        rest = iter(batches)
        while some := list(_some_of(rest)):
            values = [list(map(new_values, batch)) for batch in some]
            found = _read(self._run("insert", (bounds, values)))
            answers += [answer_of(each, bounds) for each in found]
        return answers

    def insert_in(self, connection: Any, batch: Sequence[NewJob], *, capacity: int = 0) -> Answer:
        raise BadInputError("connection", f"cannot be used with {self.url}, which has no transactions")

    # Running

    def claim(
        self,
        worker: str,
        types: Sequence[str],
        limit: int,
        lease: float,
        limits: Sequence[Limit] = (),
        begin: int | None = None,
        queues: QueueChoice | None = None,
    ) -> ClaimResult:
        bounds, of_queues = (
            {name: (each.interval, each.burst, each.concurrency, each.is_keyed) for name, each in own.items()}
            for own in split_limits(limits)
        )
        told = (
            worker,
            secrets.token_hex(8),
            list(dict.fromkeys(types)),
            min(limit, _MOST_AT_ONCE),
            lease,
            bounds,
            False if begin is None else begin,
            queues is not None and choice_values(queues),
            of_queues,
        )
        packed, delays, pasts, now, due_in, has_more = self._run("claim", told, may_repeat=False)
        claims = claims_of(packed, delays, pasts, float(now))
        return ClaimResult(claims, None if due_in is None else float(due_in), bool(has_more))

    def begin(self, leases: Sequence[Lease], started_at: Sequence[float]) -> list[LeaseState]:
        states = self._run("begin", (*_split(leases), list(started_at)))
        return [LeaseState(state.decode()) for state in states]

    def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
        states = self._run("extend", (seconds, *_split(leases)))
        return [LeaseState(state.decode()) for state in states]

    def progress(self, reports: Sequence[tuple[Lease, Progress]]) -> None:
        told = [text_of(progress) for _, progress in reports]
        self._run("progress", (*_split([lease for lease, _ in reports]), told))

    def write_logs(self, chunks: Sequence[tuple[Lease, LogChunk]]) -> None:
        told = [[chunk_values(chunk)] for _, chunk in chunks]
        self._run("write_logs", (*_split([lease for lease, _ in chunks]), told))

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        ids = [settlement.lease.id for settlement in settlements]
        return list(map(bool, self._run("settle", (ids, list(map(outcome_values, settlements))))))

    def release(self, leases: Sequence[Lease], keys: Sequence[str | None] = ()) -> list[bool]:
        new = [key_text(key) or False for key in keys]
        return list(map(bool, self._run("release", (*_split(leases), new))))

    def rescue(self, limit: int = 100) -> list[Rescued]:
        found = [value.decode() for value in self._run("rescue", (limit, _LOST))]
        return [
            Rescued(id, worker, JobStatus(status), type, int(attempts))
            for id, worker, status, type, attempts in zip(
                *(found[place::5] for place in range(5)), strict=True
            )
        ]

    # Steering

    def cancel(self, ids: Sequence[str]) -> list[JobStatus | None]:
        return self._manage("cancel", ids)

    def retry(
        self, ids: Sequence[str], renewed: NewPayload | None = None
    ) -> list[JobStatus | DuplicateError | None]:
        payload = False if renewed is None else renewed.payload.decode()
        told = (list(ids), payload, key_text(renewed.key if renewed else None))
        return [
            retry_refusal(*(value.decode() for value in found))
            if isinstance(found, list)
            else JobStatus(found.decode())
            if found
            else None
            for found in self._run("retry", told)
        ]

    def delete(self, ids: Sequence[str]) -> list[JobStatus | None]:
        return self._manage("delete", ids)

    def _manage(self, verb: str, ids: Sequence[str]) -> list[JobStatus | None]:
        return [JobStatus(status.decode()) if status else None for status in self._run(verb, list(ids))]

    def pause(self, queue: str) -> None:
        self._run("pause", (queue, True))

    def resume(self, queue: str) -> None:
        self._run("pause", (queue, False))

    # Looking

    def get(self, id: str) -> Job | None:
        packed = self._run("get", id)
        return None if packed is None else whole_job_of(packed)

    def logs(self, id: str, after: int = 0) -> JobLogs | None:
        packed = self._run("logs_of", (id, after))
        return None if packed is None else logs_in(packed, after)

    def page(self, filter: Filter, limit: int, before: int | None = None) -> Page:
        statuses = list(JobStatus) if filter.status is None else [filter.status]
        named = (filter.type or False, filter.queue or False, filter.tag or False)
        if "" in (filter.type, filter.queue, filter.tag):
            return Page([], None)
        start = False if filter.error is None else error_start(filter.error)
        jobs: list[Job] = []
        while True:
            told = (statuses, *named, before or False, limit - len(jobs), start)
            packed, following = self._run("page", told)
            jobs += jobs_of(packed)
            before = None if following is None else int(following)
            if before is None or len(jobs) == limit:
                return Page(jobs, before)

    def counts(self) -> Counts:
        now, ever, paused = self._run("counts")
        count = {field: int(value) for field, value in zip(now[::2], now[1::2], strict=True)}
        rows = (
            (*field.decode().split("/"), count.get(field, 0), int(total))
            for field, total in zip(ever[::2], ever[1::2], strict=True)
        )
        return counts_of(rows, (queue.decode() for queue in paused))

    def failures(self, limit: int = MOST_FAILURES) -> Failures:
        return failures_of(self._failed(limit + 1), limit)

    def _failed(self, limit: int) -> Iterator[Failed]:
        """Those that failed last, step by step, so that no other call has to wait for all."""
        seen: set[str] = set()
        for first in range(0, limit, _MOST_FAILED):
            rows = _read(self._run("failures", (first, min(limit - first, _MOST_FAILED))))
            new = [
                row for row in rows if row[3] not in seen
            ]  # Why: others that failed meanwhile move them on
            seen.update(row[3] for row in new)
            yield from map(failed_of, new)
            if len(rows) < _MOST_FAILED:
                return

    def ahead(self, id: str) -> int:
        return int(self._run("ahead", id))

    def key_of(self, id: str) -> str | None:
        return key_of(self._run("key_of", id).decode())

    def running_of(self, unique: str) -> str | None:
        found = self._run("running_of", unique)
        return None if found is None else str(found.decode())

    def limits(
        self, type: str | None = None, key: str | None = None, limit: int = 100, queues: Sequence[str] = ()
    ) -> Limits:
        told = (False if type is None else type, False if key is None else key, limit, list(queues))
        return limits_of(self._run("limits", told))

    def events(self, after: int, limit: int) -> list[JobEvent]:
        numbers, packed = self._run("events", (after, limit))
        return events_of(numbers, packed, after, limit)

    def last_event(self) -> int:
        return int(self._run("last_event"))

    def watch(self, news: News) -> Watch:
        return RedisWatch(self._server, news)

    # Workers

    def beat(self, worker: WorkerInfo, seconds: float) -> None:
        self._run("beat", (worker.name, text_of(worker), seconds))

    def workers(self) -> list[WorkerInfo]:
        return workers_of(self._run("workers"))

    # Schedules

    def put_schedule(self, entry: ScheduleEntry) -> ScheduleEntry:
        return schedule_of(self._run("put_schedule", (entry.name, entry_values(entry))))

    def drop_schedule(self, name: str) -> bool:
        return bool(self._run("drop_schedule", name))

    def pause_schedule(self, name: str) -> bool:
        return bool(self._run("pause_schedule", name))

    def resume_schedule(self, name: str, tick_at: float, next_at: float) -> bool:
        return bool(self._run("resume_schedule", (name, tick_at, next_at)))

    def schedules(self) -> Schedules:
        now, packed = self._run("schedules")
        return Schedules(float(now), schedules_of(packed))

    def fire_tick(
        self, name: str, tick_at: float, next_at: float, job: NewJob | None, *, capacity: int = 0
    ) -> Receipt | Refusal | None:
        bounds = Bounds(capacity)
        told = (name, tick_at, next_at, new_values(job) if job else False, bounds)
        # Why not twice: the second time would find the next tick, and say that somebody else was first.
        packed = self._run("fire_tick", told, may_repeat=False)
        if packed is None or job is None:
            return None
        answer = answer_of(_read(packed), bounds)
        return answer[0] if isinstance(answer, list) else answer

    # Moving to another store

    def export(self, limit: int, after: int = 0) -> list[ExportedJob]:
        return exported_of(*self._run("export", (limit, after)))

    def adopt(self, exported: Sequence[ExportedJob]) -> int:
        told = ([new_values(job.job) for job in exported], list(map(kept_values, exported)))
        answer = self._run("adopt", told)
        if isinstance(answer, bytes):
            raise JobConflictError(answer.decode())
        if isinstance(answer, list):
            raise move_refusal(*(value.decode() for value in answer))
        return int(answer)

    def discard(self, ids: Sequence[str]) -> int:
        return int(self._run("discard", list(ids)))

    # Tidying

    def prune(self, keep: float, limit: int = 1_000, keep_failed: float | None = None) -> int:
        return int(self._run("prune", (keep, keep if keep_failed is None else keep_failed, limit)))


def _split(leases: Sequence[Lease]) -> tuple[list[str], list[str]]:
    return [lease.id for lease in leases], [lease.token for lease in leases]


def _some_of(batches: Iterator[Sequence[NewJob]]) -> Iterator[Sequence[NewJob]]:
    """The next batches, until they are as much as one script should have."""
    jobs = size = 0
    for batch in batches:
        jobs += len(batch)
        size += sum(len(job.payload) for job in batch)
        yield batch
        if jobs >= _MOST_INSERTED or size >= _MOST_BYTES:
            return
