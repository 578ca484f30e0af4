"""SqliteStore: the verbs, each one transaction of the statements in `sql/`.

Concurrent inserts share a transaction: whoever gets the lock takes along what others have put down meanwhile.
Claims and signs of life are not waited for to be on disk: what a power cut takes back of them, happens again.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import msgspec

from ...errors import BadInputError, JobConflictError, SettingsError, StoreAwayError, StoreRefusedError
from ...failpoints import reach
from ...model.admission import Bounds
from ...model.counts import Counts, Filter, JobEvent, Page, WorkerInfo
from ...model.gate import Limit, Limits
from ...model.job import KEPT_HISTORY, TRANSITIONS, Job, JobError, JobStatus, Move, Progress
from ...model.lease import ClaimResult, Lease, LeaseState, Rescued, Settlement
from ...model.newjob import Answer, ExportedJob, NewJob, Receipt, Refusal
from ...model.schedule import ScheduleEntry, Schedules
from ...model.text import masked
from ..base import Capabilities, News, Watch
from ..stored import counts_of, status_of
from . import ticking
from .choosing import Choice
from .claiming import claim_chosen
from .connection import Connections, begins_by_itself, check_own, mapped_errors, plain_cursor
from .inserting import Ticket, insert_all, insert_one
from .migrate import migrate, refuse_newer
from .paging import page_statement
from .rows import adopted_row, exported_of, gate_of, job_of, settled_row, text_of
from .statements import sql
from .watch import SqliteWatch

_SCHEME = "sqlite:///"
_KEPT_EVENTS = 10_000
_TRIM_AFTER = 2_000
"""So many changes by this handle, and the oldest events are deleted."""
_NEWEST = 2**62
_LOST = text_of(JobError(type="WorkerLost", message="worker lost"))


def open_sqlite(url: str) -> SqliteStore:
    """The store at `sqlite:///path`: relative to the working folder, or absolute with a fourth slash."""
    path = unquote(url.removeprefix(_SCHEME).partition("?")[0])
    if not url.startswith(_SCHEME) or not path or path == ":memory:":
        raise SettingsError(
            "JOBPIPE_STORE",
            f"must name a file, as sqlite:///jobs.db does (or use memory://), got {masked(url)}",
        )
    return SqliteStore(Path(path))


class SqliteStore:
    """Jobs in a SQLite file."""

    capabilities = Capabilities(durable=True, shared=True, transactional=True, push=False, blocking=True)

    def __init__(self, path: Path | str, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path).absolute()
        self.url = f"{_SCHEME}{path}"
        self._clock = clock
        if not self.path.parent.is_dir():
            raise StoreRefusedError(
                f"the folder {self.path.parent} of the store does not exist: make it first"
            )
        self._connections = Connections(self.path)
        self._tickets: deque[Ticket] = deque()
        self._inserting = threading.Lock()
        self._changes = 0
        self._has_news = False  # was something inserted by this handle since its last claim?

    # Being there

    def migrate(self) -> list[str]:
        self._connections.file.create()
        with mapped_errors(self.path):
            refuse_newer(self._connections.file)
        connection = self._connections.open()
        try:
            with mapped_errors(self.path):
                return migrate(connection, self.path)
        finally:
            connection.close()

    def check(self) -> list[str]:
        with self._connections.reading() as cursor:
            (answer,) = cursor.execute("PRAGMA quick_check(1)").fetchone()
        if answer != "ok":
            raise StoreRefusedError(f"the store {self.path} is broken: {answer}")
        return [
            "every accepted job and every outcome is on disk before it is acknowledged (WAL, synchronous=FULL)"
        ]

    def sibling(self) -> Self:
        return type(self)(self.path, clock=self._clock)

    def close(self) -> None:
        self._connections.close()

    @contextmanager
    def _writing(self, *, synced: bool = True) -> Iterator[tuple[sqlite3.Cursor, float]]:
        """A cursor in a transaction, and what time it is; what came due by then is queued."""
        with self._connections.writing(synced=synced) as cursor:
            now = round(self._clock(), 6)  # Why: read back from the history, it is the same microsecond
            self._come_due(cursor, now)
            yield cursor, now
            if self._changes >= _TRIM_AFTER:
                self._changes = 0
                cursor.execute(sql("trim_events"), (_KEPT_EVENTS,))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Cursor]:
        """A cursor to read with, after what came due is queued."""
        with self._connections.reading() as cursor:
            (is_due,) = cursor.execute(sql("is_due"), (self._clock(),)).fetchone()
            if is_due:
                try:
                    with self._writing():
                        pass
                except StoreAwayError:
                    pass  # Why: a full disk can still be read; then what came due is shown as scheduled
            yield cursor

    def _come_due(self, cursor: sqlite3.Cursor, now: float) -> None:
        (is_due,) = cursor.execute(sql("is_due"), (now,)).fetchone()
        if is_due:
            self._changes += cursor.execute(sql("come_due"), (now,)).rowcount

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
        ticket = Ticket([(batch, bounds) for batch in batches])
        self._tickets.append(ticket)
        with self._inserting:
            if ticket.answers is None and ticket.error is None:
                self._insert_waiting()
        if ticket.error is not None:
            raise ticket.error
        assert ticket.answers is not None
        return ticket.answers

    def _insert_waiting(self) -> None:
        """Insert what all have put down, in one transaction."""
        tickets = []
        while self._tickets:
            tickets.append(self._tickets.popleft())
        batches = [batch for ticket in tickets for batch in ticket.batches]
        try:
            with self._writing() as (cursor, now):
                answers = iter(insert_all(cursor, batches, now))
                self._changes += sum(len(batch) for batch, _ in batches)
                reach("enqueue-inside")
        except BaseException as error:
            for ticket in tickets:
                ticket.error = (
                    error
                    if isinstance(error, Exception)
                    else StoreAwayError(
                        f"the store {self.path} was interrupted: it may have been done, or not; ask again"
                    )
                )
            if not isinstance(error, Exception):
                raise  # it is meant for this thread alone
            return
        self._has_news = True
        for ticket in tickets:
            ticket.answers = list(islice(answers, len(ticket.batches)))

    def insert_in(self, connection: Any, batch: Sequence[NewJob], *, capacity: int = 0) -> Answer:
        if not isinstance(connection, sqlite3.Connection):
            raise BadInputError(
                "connection", f"must be a sqlite3.Connection for this store, got {connection!r}"
            )
        self._connections.file.look()
        with mapped_errors(self.path), plain_cursor(connection) as cursor:
            check_own(cursor, self.path)
            if begins_by_itself(connection):
                cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("SAVEPOINT jobpipe")
            try:
                return insert_one(cursor, batch, Bounds(capacity), self._clock())
            except BaseException:
                cursor.execute("ROLLBACK TO jobpipe")
                raise
            finally:
                cursor.execute("RELEASE jobpipe")

    # Running

    def claim(
        self,
        worker: str,
        types: Sequence[str],
        limit: int,
        lease: float,
        limits: Sequence[Limit] = (),
        begin: int | None = None,
    ) -> ClaimResult:
        names = text_of(list(types))
        if not self._has_news or limit < 1:
            with self._reading() as cursor:
                # Why first without the lock: most looks find nothing, and must not stand in the way of writers.
                if limit < 1 or not cursor.execute(sql("lanes"), (names,)).fetchone():
                    return ClaimResult([], self._due_in(cursor, names))
        self._has_news = False
        with self._writing(synced=False) as (cursor, now):
            choice = Choice(cursor, limits, limit, begin, now)
            choice.take(cursor.execute(sql("lanes"), (names,)).fetchall())
            claims = claim_chosen(cursor, choice, worker, lease, now)
            self._changes += len(claims)
            if claims:
                reach("claim-inside")
            due_in = self._due_in(cursor, names, choice.selection.due_in)
            return ClaimResult(
                claims, due_in, has_more=len(claims) == limit or due_in == 0 or choice.selection.is_cut
            )

    def begin(self, leases: Sequence[Lease], started_at: Sequence[float]) -> list[LeaseState]:
        with self._writing(synced=False) as (cursor, now):
            told = [(lease.id, lease.token, at or now) for lease, at in zip(leases, started_at, strict=True)]
            self._changes += cursor.execute(sql("begin"), (text_of(told),)).rowcount
            held = [cursor.execute(sql("held"), (lease.id, lease.token)).fetchone() for lease in leases]
            return [_LEASE_STATE[row[0]] if row else LeaseState.LOST for row in held]

    def _due_in(self, cursor: sqlite3.Cursor, names: str, sooner: float | None = None) -> float | None:
        """Seconds until the next scheduled job, or the next gate of these types before which jobs are parked."""
        (due_at,) = cursor.execute(sql("next_due")).fetchone()
        (opens_at,) = cursor.execute(sql("next_opening"), (names, self._clock())).fetchone()
        found = [max(at - self._clock(), 0.0) for at in (due_at, opens_at) if at is not None]
        return min(found if sooner is None else [*found, sooner], default=None)

    def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
        with self._writing(synced=False) as (cursor, now):
            states = []
            for lease in leases:
                values = {"id": lease.id, "token": lease.token, "until": now + seconds}
                found = cursor.execute(sql("extend"), values).fetchall()
                states.append(_LEASE_STATE[found[0][0]] if found else LeaseState.LOST)
            return states

    @staticmethod
    def _cool(cursor: sqlite3.Cursor, settlements: Sequence[Settlement], now: float) -> None:
        for each in settlements:
            if each.outcome.cools:
                until = now + each.outcome.cools
                cursor.execute(sql("cool"), {"id": each.lease.id, "token": each.lease.token, "until": until})

    def progress(self, reports: Sequence[tuple[Lease, Progress]]) -> None:
        values = [
            {"id": lease.id, "token": lease.token, "progress": text_of(progress)}
            for lease, progress in reports
        ]
        with self._writing(synced=False) as (cursor, _):
            cursor.executemany(sql("progress"), values)

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        with self._writing() as (cursor, now):
            told = text_of(list(map(settled_row, settlements)))
            values = {"settlements": told, "now": now, "at": f"{now:.6f}", "kept": KEPT_HISTORY}
            self._cool(cursor, settlements, now)
            recorded = cursor.execute(sql("settle"), values).rowcount
            cursor.execute(sql("leave_gates"))
            cursor.execute(sql("clear_suspects"), (told,))
            self._changes += recorded
            reach("settle-inside")
            if recorded == len(settlements):
                return [True] * recorded
            # Some were settled before, or lost: those that still have this token are, or were, settled by it.
            found = [cursor.execute(sql("token"), (each.lease.id,)).fetchone() for each in settlements]
            return [
                row is not None and row[0] == each.lease.token
                for row, each in zip(found, settlements, strict=True)
            ]

    def release(self, leases: Sequence[Lease], keys: Sequence[str | None] = ()) -> list[bool]:
        with self._writing() as (cursor, now):
            self._changes += len(leases)
            released = []
            for lease, key in zip(leases, keys or [None] * len(leases), strict=True):
                values = {"id": lease.id, "token": lease.token, "now": now, "key": key}
                released.append(cursor.execute(sql("release"), values).rowcount == 1)
            return released

    def rescue(self, limit: int = 100) -> list[Rescued]:
        with self._reading() as cursor:
            if not cursor.execute(sql("expired"), {"now": self._clock(), "limit": 1}).fetchone():
                return []
        with self._writing() as (cursor, now):
            rescued = []
            found = cursor.execute(sql("expired"), {"now": now, "limit": limit}).fetchall()
            for seq, id, worker, status in found:
                if status == JobStatus.QUEUED:
                    cursor.execute(sql("lose_ahead"), (seq,))
                    rescued.append(Rescued(id, worker, JobStatus.QUEUED))
                    continue
                values = {"seq": seq, "now": now, "error": _LOST, "kept": KEPT_HISTORY}
                ((status,),) = cursor.execute(sql("rescue"), values).fetchall()
                rescued.append(Rescued(id, worker, JobStatus(status)))
            self._changes += len(rescued)
            reach("rescue-inside")
            return rescued

    # Steering

    def cancel(self, ids: Sequence[str]) -> list[JobStatus | None]:
        statement = {
            JobStatus.SCHEDULED: sql("cancel_waiting"),
            JobStatus.QUEUED: sql("cancel_waiting"),
            JobStatus.RUNNING: sql("cancel_running"),
        }
        return self._steer(ids, statement)

    def retry(self, ids: Sequence[str]) -> list[JobStatus | None]:
        return self._steer(
            ids, {status: sql("revive") for status in TRANSITIONS if Move.REVIVE in TRANSITIONS[status]}
        )

    def _steer(self, ids: Sequence[str], statement: dict[JobStatus, str]) -> list[JobStatus | None]:
        """Do to each job what its status asks for; the status in which it was found."""
        with self._writing() as (cursor, now):
            found: list[JobStatus | None] = []
            for id in ids:
                row = cursor.execute(sql("status"), (id,)).fetchone()
                found.append(None if row is None else status_of(row[0]))
                if row is not None and row[0] in statement:
                    cursor.execute(statement[row[0]], {"id": id, "now": now})
            self._changes += len(ids)
            return found

    def pause(self, queue: str) -> None:
        with self._writing() as (cursor, _):
            cursor.execute(sql("pause"), (queue,))

    def resume(self, queue: str) -> None:
        with self._writing() as (cursor, _):
            cursor.execute(sql("resume"), (queue,))
            cursor.execute(sql("look_again"))

    # Looking

    def get(self, id: str) -> Job | None:
        with self._reading() as cursor:
            row = cursor.execute(sql("get"), (id,)).fetchone()
            return None if row is None else job_of(row)

    def page(self, filter: Filter, limit: int, before: int | None = None) -> Page:
        statement, values = page_statement(filter)
        with self._reading() as cursor:
            rows = cursor.execute(
                statement, {**values, "before": _NEWEST if before is None else before, "limit": limit + 1}
            ).fetchall()
        shown = rows[:limit]
        return Page(list(map(job_of, shown)), shown[-1][0] if len(rows) > limit else None)

    def counts(self) -> Counts:
        with self._reading() as cursor:
            rows = cursor.execute(sql("tallies")).fetchall()
            return counts_of(rows, (queue for (queue,) in cursor.execute(sql("paused"))))

    def ahead(self, id: str) -> int:
        with self._reading() as cursor:
            (count,) = cursor.execute(sql("ahead"), (id,)).fetchone()
            return int(count)

    def key_of(self, id: str) -> str | None:
        with self._reading() as cursor:
            row = cursor.execute(sql("key_of"), (id,)).fetchone()
            return None if row is None else row[0]

    def limits(self, type: str | None = None, key: str | None = None, limit: int = 100) -> Limits:
        with self._reading() as cursor:
            now = self._clock()
            values = {"type": type, "key": key, "limit": limit, "now": now}
            gates = list(map(gate_of, cursor.execute(sql("gates"), values)))
            return Limits(now, gates, dict(cursor.execute(sql("cooling"), (now,))))

    def events(self, after: int, limit: int) -> list[JobEvent]:
        with self._reading() as cursor:
            return [
                JobEvent(number, id, type, queue, status_of(status), attempts)
                for number, id, type, queue, status, attempts in cursor.execute(sql("events"), (after, limit))
            ]

    def last_event(self) -> int:
        with self._reading() as cursor:
            (number,) = cursor.execute(sql("last_event")).fetchone()
            return int(number)

    def watch(self, news: News) -> Watch:
        return SqliteWatch(self._connections)

    # Workers

    def beat(self, worker: WorkerInfo, seconds: float) -> None:
        with self._writing(synced=False) as (cursor, now):
            cursor.execute(sql("forget"), {"name": worker.name, "now": now})
            if seconds > 0:
                info = msgspec.json.encode(worker)
                cursor.execute(
                    sql("beat"), {"name": worker.name, "info": info, "now": now, "until": now + seconds}
                )

    def workers(self) -> list[WorkerInfo]:
        with self._reading() as cursor:
            return [
                msgspec.structs.replace(msgspec.json.decode(info, type=WorkerInfo), seen_at=seen_at)
                for info, seen_at in cursor.execute(sql("workers"), (self._clock(),))
            ]

    # Schedules

    def put_schedule(self, entry: ScheduleEntry) -> ScheduleEntry:
        with self._writing() as (cursor, _):
            return ticking.put(cursor, entry)

    def drop_schedule(self, name: str) -> bool:
        with self._writing() as (cursor, _):
            return cursor.execute(sql("drop_schedule"), (name,)).rowcount == 1

    def pause_schedule(self, name: str) -> bool:
        with self._writing() as (cursor, _):
            return cursor.execute(sql("pause_schedule"), (name,)).rowcount == 1

    def resume_schedule(self, name: str, tick_at: float, next_at: float) -> bool:
        values = {"name": name, "tick_at": tick_at, "next_at": next_at}
        with self._writing() as (cursor, _):
            return cursor.execute(sql("resume_schedule"), values).rowcount == 1

    def schedules(self) -> Schedules:
        with self._reading() as cursor:
            return Schedules(self._clock(), ticking.entries(cursor))

    def fire_tick(
        self, name: str, tick_at: float, next_at: float, job: NewJob | None, *, capacity: int = 0
    ) -> Receipt | Refusal | None:
        with self._writing() as (cursor, now):
            receipt = ticking.fire(cursor, name, tick_at, next_at, job, capacity, now)
            self._changes += receipt is not None
            return receipt

    # Moving to another store

    def export(self, limit: int, after: int = 0) -> list[ExportedJob]:
        with self._reading() as cursor:
            return list(map(exported_of, cursor.execute(sql("export"), (after, limit))))

    def adopt(self, exported: Sequence[ExportedJob]) -> int:
        with self._writing() as (cursor, now):
            rows = [adopted_row(job, now) for job in exported]
            inserted = cursor.execute(sql("adopt"), {"jobs": text_of(rows)}).rowcount
            for job in exported if inserted < len(exported) else ():
                (fingerprint, _) = cursor.execute(sql("known"), (job.job.id,)).fetchone()
                if not job.job.is_same(fingerprint):
                    raise JobConflictError(job.job.id)
            self._changes += inserted
            return inserted

    def discard(self, ids: Sequence[str]) -> int:
        with self._writing() as (cursor, _):
            return cursor.execute(sql("discard"), (text_of(list(ids)),)).rowcount

    # Tidying

    def prune(self, keep: float, limit: int = 1_000) -> int:
        with self._writing() as (cursor, now):
            cursor.execute(sql("forget_gates"), (now,))
            cursor.execute(sql("forget_cooling"), (now,))
            pruned = cursor.execute(sql("prune"), (now - keep, limit)).rowcount
            for statement in ("retire_totals", "forget_lanes", "forget_types") if pruned < limit else ():
                cursor.execute(sql(statement))
            return pruned


_LEASE_STATE = (LeaseState.HELD, LeaseState.CANCELLING)
"""By the column is_cancelling."""
