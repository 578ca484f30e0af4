"""Store: where jobs live, as a Protocol of small atomic verbs, and the values that go in and out.

Every verb is one atomic step and may be called from any thread. What `insert` and `settle` have answered is on disk
(as far as the store has one). The store's own clock decides what is due and which lease has run out: callers give
durations, never instants of their own. A verb raises StoreAwayError when the store cannot be reached or
cannot write; then nothing of the call was done, or it was done whole and only the reply was lost, and it
may be called again: `insert`, `settle` and `extend` of the same arguments come to the same.

The values are those of `model/`; authors of stores find them here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from enum import StrEnum
from typing import Any, Protocol, Self

from msgspec import Struct

from ..model.counts import Counts as Counts
from ..model.counts import Filter as Filter
from ..model.counts import JobEvent as JobEvent
from ..model.counts import Page as Page
from ..model.counts import Tally as Tally
from ..model.counts import WorkerInfo as WorkerInfo
from ..model.gate import Limit, Limits
from ..model.job import Job, JobStatus, Progress
from ..model.lease import Claim as Claim
from ..model.lease import ClaimResult as ClaimResult
from ..model.lease import Lease as Lease
from ..model.lease import LeaseState as LeaseState
from ..model.lease import Outcome as Outcome
from ..model.lease import Rescued as Rescued
from ..model.lease import Settlement as Settlement
from ..model.newjob import Answer as Answer
from ..model.newjob import ExportedJob as ExportedJob
from ..model.newjob import NewJob as NewJob
from ..model.newjob import Receipt as Receipt
from ..model.newjob import Refusal as Refusal
from ..model.schedule import Missed as Missed
from ..model.schedule import ScheduleEntry as ScheduleEntry
from ..model.schedule import Schedules as Schedules


class Capabilities(Struct, frozen=True, kw_only=True):
    """What differs between stores."""

    durable: bool
    """Does what was accepted outlive the process?"""
    shared: bool
    """May several processes use it at once?"""
    transactional: bool
    """Is there `insert_in`, which enqueues within the caller's own transaction?"""
    push: bool
    """Does it tell of changes by itself, so that `Watch.wait` need not look for them?"""
    blocking: bool
    """May a verb take long enough to be called in a thread rather than on an event loop?"""


class News(StrEnum):
    """What a watch waits for."""

    WORK = "work"
    """A claim may find what it did not find before. Why apart: who runs jobs need not wake up for all that happens."""
    CHANGES = "changes"
    """Anything that changes jobs or queues, too."""


class Watch(Protocol):
    """Waits for what others do; a hint, never the only way to learn of it. It may wake up for nothing."""

    def wait(self, timeout: float) -> bool:
        """Block until there may be news since the last call (True), or the time is over."""

    def close(self) -> None:
        """Let go of what it holds; a `wait` under way in another thread returns."""


class Store(Protocol):
    """The verbs. Statuses change only as TRANSITIONS says."""

    url: str
    """Without its secrets."""
    capabilities: Capabilities

    # Being there

    def migrate(self) -> list[str]:
        """Bring the schema up to date, locked against others that do; the names of the steps that it took.

        StoreRefusedError, before anything is changed, if the schema is newer than the program.
        """

    def check(self) -> list[str]:
        """Remarks about how well it keeps the promises; StoreRefusedError if it cannot."""

    def sibling(self) -> Self:
        """The same store with connections of its own, for a thread that nobody may hold up."""

    def close(self) -> None:
        """Let go of all connections; a second call does nothing."""

    # Putting in

    def insert(
        self,
        batches: Sequence[Sequence[NewJob]],
        *,
        capacity: int = 0,
        scheduled: int = 0,
        names: int = 0,
    ) -> list[Answer]:
        """Insert each batch whole or not at all; the answers in the order of the batches.

        A job of the same id and fingerprint (or a former one) counts as inserted. Batches see those before them.
        With a `capacity`, no insert brings a queue to more queued jobs than that; with `scheduled`, the store to more
        scheduled ones; with `names`, to more pairs of queue and type that have jobs. The last need not be exact
        where several insert at the same time.
        """

    def insert_in(
        self, connection: Any, batch: Sequence[NewJob], *, capacity: int = 0
    ) -> Answer | Awaitable[Answer]:
        """`insert` of one batch in the caller's own transaction; BadInputError for a foreign connection.

        An awaitable of the answer where the connection is one that is awaited.
        """

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
        """Lease up to so many queued jobs of these types for so many seconds; the first `begin` of them begin.

        To begin is to be `running`, with the attempt counted. The others are claimed ahead: they stay `queued` until
        `begin` or `settle`, and to lose them costs no attempt. Without `begin` all begin. No suspect (see `rescue`)
        is claimed ahead: the claim ends before it.

        By priority, highest first, then by run_at, then in the order of insertion; none of a paused queue, none of
        a type that is cooling. A job whose type has a limit is passed over unless its gate lets it in (`Gate.enter`):
        the gate of the type, or of the job's own key if the limit is keyed. A job without a key is not held up
        by a keyed limit: who claims it has to find its key, and release it with that. A job holds its
        place in a gate until it leaves the status running. Jobs that are passed over cost other claims nothing.
        """

    def begin(self, leases: Sequence[Lease], started_at: Sequence[float]) -> list[LeaseState]:
        """Note that jobs which were claimed ahead have begun, and when.

        By the clock of this store, as their claims told it; 0 for now. What has begun already is left as it is.
        """

    def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
        """Let each lease that is still held run out so many seconds from now."""

    def progress(self, reports: Sequence[tuple[Lease, Progress]]) -> None:
        """Note how far runs are; those that lost their lease, or have not begun, change nothing.

        Cleared when the next run begins.
        """

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        """Record outcomes; False for each whose lease is not held any more. What has not begun begins first.

        The same settlement again is True and changes nothing. If somebody asked to cancel the job, it is
        cancelled, whatever the outcome. SNOOZE gives the attempt back and leaves no trace in the history. An
        outcome that cools does so for all jobs of the type; the longest counts.
        A RETRY is recorded as it is told: the caller has seen to it that a retry is left.
        """

    def release(self, leases: Sequence[Lease], keys: Sequence[str | None] = ()) -> list[bool]:
        """Put jobs back into their queues, where they were before; True where it was held.

        Those that have begun get their attempts back.
        With keys, one for each lease, jobs have these from now on; None leaves the key as it is.
        """

    def rescue(self, limit: int = 100) -> list[Rescued]:
        """Take back jobs whose lease has run out.

        They are queued again, or failed where no attempt is left, with the error WorkerLost in the history.
        One that was claimed ahead loses nothing but is a suspect from now on, until it is settled: it may have begun
        before this was stored, and a job that kills its worker must not be run without end.
        """

    # Steering

    def cancel(self, ids: Sequence[str]) -> list[JobStatus | None]:
        """Cancel jobs: at once those that wait; those that run are told by `extend`, and end cancelled.

        The lease of one that was claimed ahead is void.
        The status in which each was found; None for an unknown one.
        """

    def retry(self, ids: Sequence[str]) -> list[JobStatus | None]:
        """Run failed and cancelled jobs again, from now on, with attempts at 0; the history is kept.

        The status in which each was found (others than those two are left as they are); None for an unknown one.
        """

    def pause(self, queue: str) -> None:
        """Let no job of the queue be claimed, until it is resumed."""

    def resume(self, queue: str) -> None:
        """Undo a pause."""

    # Looking

    def get(self, id: str) -> Job | None:
        """The whole job, with its history."""

    def page(self, filter: Filter, limit: int, before: int | None = None) -> Page:
        """The newest jobs, or those that come after a page whose `next` was `before`."""

    def counts(self) -> Counts:
        """How many jobs there are."""

    def key_of(self, id: str) -> str | None:
        """The key of a job; None if it has none, or is unknown."""

    def limits(self, type: str | None = None, key: str | None = None, limit: int = 100) -> Limits:
        """The gates, by type and key, of all types or of one, of all keys or of one, and the types that are cooling.

        Only gates with `next_at` ahead, or with jobs that hold a place.
        """

    def ahead(self, id: str) -> int:
        """How many queued jobs of the same queue would be claimed before this one."""

    def events(self, after: int, limit: int) -> list[JobEvent]:
        """The events after that number, oldest first. At least the last 1,000 are kept."""

    def last_event(self) -> int:
        """The number of the newest event; 0 if there was none."""

    def watch(self, news: News) -> Watch:
        """A new watch of its own; also to be closed by its owner."""

    # Workers

    def beat(self, worker: WorkerInfo, seconds: float) -> None:
        """Be known for so many seconds from now; for 0, be forgotten."""

    def workers(self) -> list[WorkerInfo]:
        """The workers that are known, by name."""

    # Schedules

    def put_schedule(self, entry: ScheduleEntry) -> ScheduleEntry:
        """Make or change a schedule; what it is now.

        One whose timing stays the same keeps its ticks; one that is paused stays so, and becomes so if the entry is.
        """

    def drop_schedule(self, name: str) -> bool:
        """Forget a schedule; was it there?"""

    def pause_schedule(self, name: str) -> bool:
        """Let no tick of a schedule fire, until it is resumed; is it there?"""

    def resume_schedule(self, name: str, tick_at: float, next_at: float) -> bool:
        """Undo a pause, and go on with another tick in place of the one at which it stood.

        False, and nothing is changed, if it is not paused at that one (any more).
        """

    def schedules(self) -> Schedules:
        """All schedules."""

    def fire_tick(
        self, name: str, tick_at: float, next_at: float, job: NewJob | None, *, capacity: int = 0
    ) -> Receipt | Refusal | None:
        """Put in the job of a tick, if there is one, and go on to the next: both, and only the first to ask.

        None if the schedule's next tick is not that one (any more), or it is paused, or there was no job to put in.
        What keeps the job from being inserted leaves the tick due.
        """

    # Moving to another store

    def export(self, limit: int, after: int = 0) -> list[ExportedJob]:
        """The first jobs that wait (scheduled or queued) after that number, in the order of insertion."""

    def adopt(self, exported: Sequence[ExportedJob]) -> int:
        """Insert jobs that come from another store as they were there, all or none; how many were new.

        A job of the same id and fingerprint is there already; another of that id is a JobConflictError.
        """

    def discard(self, ids: Sequence[str]) -> int:
        """Delete those of the jobs that wait; how many it were."""

    # Tidying

    def prune(self, keep: float, limit: int = 1_000) -> int:
        """Delete up to so many jobs that finished longer than so many seconds ago; how many it were.

        When nothing is left to delete, the tallies of queues and types that have no job any more are forgotten.
        """
