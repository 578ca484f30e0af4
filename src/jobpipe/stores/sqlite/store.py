"""SqliteStore: the verbs, each one transaction of the statements in `sql/`.

Claims and signs of life are not waited for to be on disk: what a power cut takes back of them, happens again.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import unquote

from ...errors import DuplicateError, LeaseLostError, SettingsError, StoreAwayError, StoreRefusedError
from ...failpoints import reach
from ...model.admission import Bounds
from ...model.counts import WorkerInfo
from ...model.durable import DurableState, JobSignal, SignalAnswer, Step
from ...model.gate import Limit, Limits
from ...model.job import JobStatus
from ...model.lease import ClaimResult, Lease, LeaseState, QueueChoice, Rescued, Settlement
from ...model.newjob import Answer, ExportedJob, NewJob, NewPayload, Receipt, Refusal
from ...model.schedule import Schedules
from ...model.text import masked
from ..base import Capabilities, News, Watch
from ..sql_rows import text_of
from . import durable, inspecting, leasing, managing, ticking, transfer
from .choosing import Choice, has_lane
from .claiming import claim_chosen
from .connection import Connections, MappedErrors, guest_cursor
from .group_commit import GroupCommit
from .inserting import Batch, insert_all, insert_one
from .migrate import migrate, refuse_newer
from .statements import sql
from .watch import SqliteWatch

P = ParamSpec("P")
T = TypeVar("T")

_SCHEME = "sqlite:///"
_KEPT_EVENTS = 10_000
_TRIM_AFTER = 2_000
"""So many changes by this handle, and the oldest events are deleted."""


def open_sqlite(url: str) -> SqliteStore:
    """The store at `sqlite:///path`: relative to the working folder, or absolute with a fourth slash."""
    path = unquote(url.removeprefix(_SCHEME).partition("?")[0])
    if not url.startswith(_SCHEME) or not path or path == ":memory:":
        raise SettingsError(
            "JOBPIPE_STORE",
            f"must name a file, as sqlite:///jobs.db does (or use memory://), got {masked(url)}",
        )
    return SqliteStore(Path(path))


def _reads(
    verb: Callable[Concatenate[sqlite3.Cursor, P], T],
) -> Callable[Concatenate[SqliteStore, P], T]:
    """A verb that reads, as a method."""

    @wraps(verb)
    def method(store: SqliteStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with store._reading() as cursor:
            return verb(cursor, *args, **kwargs)

    return method


def _writes(
    verb: Callable[Concatenate[sqlite3.Cursor, float, P], T], *, synced: bool = True
) -> Callable[Concatenate[SqliteStore, P], T]:
    """A verb that writes, as a method: within a transaction, told what time it is."""

    @wraps(verb)
    def method(store: SqliteStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with store._writing(synced=synced) as (cursor, now):
            return verb(cursor, now, *args, **kwargs)

    return method


class SqliteStore:
    """Jobs in a SQLite file."""

    capabilities = Capabilities(durable=True, shared=True, transactional=True, push=False, blocking=True)

    def __init__(self, path: Path | str, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path).absolute()
        self.url = f"{_SCHEME}{path}"
        self._clock = clock
        if not self.path.parent.is_dir():
            raise StoreRefusedError(f"the folder {self.path.parent} of the store does not exist: make it")
        self._connections = Connections(self.path)
        self._group_commit = GroupCommit(self.path)
        self._changes = 0
        self._has_news = False  # was something inserted by this handle since its last claim?

    # Lifecycle

    def migrate(self) -> list[str]:
        self._connections.file.create()
        with MappedErrors(self.path):
            refuse_newer(self._connections.file)
        connection = self._connections.open()
        try:
            with MappedErrors(self.path):
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
    def _writing(self, *, synced: bool = True, due: bool = True) -> Iterator[tuple[sqlite3.Cursor, float]]:
        """A cursor in a transaction, and what time it is; what came due by then is queued, unless that can wait."""
        with self._connections.writing(synced=synced) as cursor:
            now = self._now()
            if due:
                self._come_due(cursor, now)
            yield cursor, now
            if self._changes >= _TRIM_AFTER:
                self._changes = 0
                cursor.execute(sql("trim_events"), (_KEPT_EVENTS,))

    def _now(self) -> float:
        return round(self._clock(), 6)  # Why: read back from the history, it is the same microsecond

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Cursor]:
        """A cursor to read with, after what came due is queued."""
        with self._connections.reading() as cursor:
            (is_due,) = cursor.execute(sql("is_due"), {"now": self._clock()}).fetchone()
            if is_due and not self._connections.is_held_up:
                try:
                    with self._writing():
                        pass
                except StoreAwayError:
                    pass  # Why: a full disk can still be read; then what came due is shown as scheduled
            yield cursor

    def _come_due(self, cursor: sqlite3.Cursor, now: float) -> None:
        (is_due,) = cursor.execute(sql("is_due"), {"now": now}).fetchone()
        if is_due:
            self._changes += cursor.execute(sql("expire"), {"now": now}).rowcount
            self._changes += cursor.execute(sql("come_due"), (now,)).rowcount

    # Enqueue

    def insert(
        self,
        batches: Sequence[Sequence[NewJob]],
        *,
        capacity: int = 0,
        scheduled: int = 0,
        names: int = 0,
    ) -> list[Answer]:
        self._connections.refuse_held_up()  # Why here: another thread may insert them, and this one wait for it
        return self._group_commit.insert(batches, Bounds(capacity, scheduled, names), self._insert_together)

    def _insert_together(self, batches: Sequence[tuple[Batch, Bounds]]) -> list[Answer]:
        """Insert the batches of several callers in one transaction."""
        with self._writing() as (cursor, now):
            answers = insert_all(cursor, batches, now)
            self._changes += sum(len(batch) for batch, _ in batches)
            reach("enqueue-inside")
        self._has_news = True
        return answers

    def insert_in(self, connection: Any, batch: Sequence[NewJob], *, capacity: int = 0) -> Answer:
        with guest_cursor(connection, self._connections.file) as cursor:
            return insert_one(cursor, batch, Bounds(capacity), self._clock())

    # Run

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
        names = text_of(list(types))
        if not self._has_news or limit < 1:
            with self._reading() as cursor:
                # Why first without the lock: most looks find nothing, and must not stand in the way of writers.
                if limit < 1 or not has_lane(cursor, names, queues):
                    # Why no types with queues: what is parked is in others.
                    return ClaimResult([], self._due_in(cursor, names if queues is None else "[]"))
        self._has_news = False
        with self._writing(synced=False) as (cursor, now):
            choice = Choice(cursor, limits, limit, begin, now, queues)
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
            self._changes += len(leases)
            return leasing.begin(cursor, leases, started_at, now)

    def _due_in(self, cursor: sqlite3.Cursor, names: str, sooner: float | None = None) -> float | None:
        """Seconds until the next scheduled job, or the next gate of these types before which jobs are parked."""
        (due_at,) = cursor.execute(sql("next_due")).fetchone()
        (opens_at,) = cursor.execute(sql("next_opening"), (names, self._clock())).fetchone()
        found = [max(at - self._clock(), 0.0) for at in (due_at, opens_at) if at is not None]
        return min(found if sooner is None else [*found, sooner], default=None)

    extend = _writes(leasing.extend, synced=False)
    progress = _writes(leasing.progress, synced=False)
    write_logs = _writes(leasing.write_logs, synced=False)

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        with self._writing() as (cursor, now):
            self._changes += len(settlements)
            return leasing.settle(cursor, settlements, now)

    def settle_in(self, connection: Any, settlement: Settlement) -> None:
        with guest_cursor(connection, self._connections.file, needs_transaction=True) as cursor:
            (is_recorded,) = leasing.settle(cursor, [settlement], self._now())
            if not is_recorded:
                raise LeaseLostError(settlement.lease.id)

    def release(self, leases: Sequence[Lease], keys: Sequence[str | None] = ()) -> list[bool]:
        with self._writing() as (cursor, now):
            self._changes += len(leases)
            return leasing.release(cursor, leases, keys, now)

    def rescue(self, limit: int = 100) -> list[Rescued]:
        with self._reading() as cursor:
            (is_stuck,) = cursor.execute(sql("is_stuck")).fetchone()
            lost = cursor.execute(sql("expired"), {"now": self._clock(), "limit": 1}).fetchone()
            if not lost and not is_stuck:
                return []
        with self._writing() as (cursor, now):
            if is_stuck:
                cursor.execute(sql("unstick"))
            rescued = leasing.rescue(cursor, limit, now)
            self._changes += len(rescued)
            return rescued

    # Manage

    def cancel(self, ids: Sequence[str]) -> list[JobStatus | None]:
        with self._writing() as (cursor, now):
            self._changes += len(ids)
            return managing.cancel(cursor, ids, now)

    def retry(
        self, ids: Sequence[str], renewed: NewPayload | None = None, *, from_start: bool = False
    ) -> list[JobStatus | DuplicateError | None]:
        with self._writing() as (cursor, now):
            self._changes += len(ids)
            return [managing.retry(cursor, id, renewed, now, from_start=from_start) for id in ids]

    delete = _writes(managing.delete)
    pause = _writes(managing.pause)
    resume = _writes(managing.resume)

    # Steps and signals

    def write_steps(self, steps: Sequence[tuple[Lease, Step]]) -> list[bool]:
        # Why not as the others: it looks at no other job, so what came due can wait.
        with self._connections.writing() as cursor:
            return [durable.write_step(cursor, lease, step) for lease, step in steps]

    receive = _writes(durable.receive, synced=False)

    def write_step_in(self, connection: Any, lease: Lease, step: Step) -> None:
        with guest_cursor(connection, self._connections.file, needs_transaction=True) as cursor:
            durable.write_step_once(cursor, lease, step)

    def signal(self, id: str, signal: JobSignal) -> SignalAnswer | None:
        with self._writing() as (cursor, now):
            self._changes += 1
            return durable.send(cursor, id, signal, now)

    def durable(self, id: str) -> DurableState | None:
        # Why without what came due: as in `workers`.
        with self._connections.reading() as cursor:
            return durable.durable(cursor, id)

    # Inspect

    get = _reads(inspecting.get)
    logs = _reads(inspecting.logs)
    page = _reads(inspecting.page)
    counts = _reads(inspecting.counts)
    failures = _reads(inspecting.failures)
    ahead = _reads(inspecting.ahead)
    key_of = _reads(inspecting.key_of)
    running_of = _reads(inspecting.running_of)
    events = _reads(inspecting.events)
    last_event = _reads(inspecting.last_event)

    def limits(
        self, type: str | None = None, key: str | None = None, limit: int = 100, queues: Sequence[str] = ()
    ) -> Limits:
        with self._reading() as cursor:
            return inspecting.limits(cursor, type, key, limit, queues, self._clock())

    def watch(self, news: News) -> Watch:
        return SqliteWatch(self._connections, news)

    # Workers

    beat = _writes(managing.beat, synced=False)

    def workers(self) -> list[WorkerInfo]:
        # Why without what came due: that would have to be written, and the caller's own transaction may have the lock.
        with self._connections.reading() as cursor:
            return inspecting.workers(cursor, self._clock())

    # Schedules

    put_schedule = _writes(ticking.put_schedule)
    drop_schedule = _writes(ticking.drop_schedule)
    pause_schedule = _writes(ticking.pause_schedule)
    resume_schedule = _writes(ticking.resume_schedule)

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

    export = _reads(transfer.export)
    discard = _writes(transfer.discard)

    def adopt(self, exported: Sequence[ExportedJob]) -> int:
        with self._writing() as (cursor, now):
            inserted = transfer.adopt(cursor, exported, now)
            self._changes += inserted
            return inserted

    # Maintain

    prune = _writes(managing.prune)
