"""Store: where jobs live, as a Protocol of small atomic verbs, and the values that go in and out.

Every verb is one atomic step and may be called from any thread. What `insert` and `settle` have answered is on disk
(as far as the store has one). The store's own clock decides what is due and which lease has run out: callers give
durations, never instants of their own. A verb raises StoreAwayError when the store cannot be reached or
cannot write; then nothing of the call was done, or it was done whole and only the reply was lost, and it
may be called again: `insert`, `settle` and `extend` of the same arguments come to the same.

Values that there are many of have gc=False: they hold nothing that could lead back to them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from enum import StrEnum
from typing import Any, Protocol, Self

from msgspec import Struct

from ..errors import JobConflictError, QueueFullError, TooManyNamesError
from ..job import TRANSITIONS, WAITING, Attempt, Job, JobError, JobStatus, Move, Progress
from .limits import Limit, Limits
from .schedules import Missed as Missed
from .schedules import ScheduleEntry as ScheduleEntry
from .schedules import Schedules as Schedules


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


class NewJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job to be inserted, checked and with its defaults filled in."""

    id: str
    type: str
    queue: str
    payload: bytes
    """JSON."""
    max_retries: int
    priority: int
    delay: float
    """Seconds from now, by the store's clock; not used where there is a run_at."""
    run_at: float | None
    """Seconds since the epoch."""
    deadline: float | None
    fingerprint: str
    """Of everything that was sent: two jobs with one id and one fingerprint are the same job."""
    key: str | None = None
    """For the limits of its type that hold for each key by itself; None where it is not known (yet)."""
    former: tuple[str, ...] = ()
    """The fingerprints that it had under former defaults: a stored job with one of these is the same job, too."""

    def is_same(self, fingerprint: str) -> bool:
        """Is the stored job of its id, with that fingerprint, this very job?"""
        return fingerprint == self.fingerprint or fingerprint in self.former


class Receipt(Struct, frozen=True, gc=False):
    """What became of a new job: inserted, or the same was there already."""

    id: str
    status: JobStatus
    is_new: bool


Refusal = JobConflictError | QueueFullError | TooManyNamesError
"""Why a batch was not inserted."""
Answer = list[Receipt] | Refusal


class Lease(Struct, frozen=True, gc=False):
    """The right to run a job and to say what came of it; the token is new for every claim."""

    id: str
    attempt: int
    worker: str
    token: str


class Claim(Struct, frozen=True, kw_only=True, gc=False):
    """A job that was claimed, with all that running it takes."""

    lease: Lease
    type: str
    queue: str
    payload: bytes
    attempts: int
    """Runs begun, the one that it is claimed for included."""
    max_retries: int
    priority: int
    deadline: float | None
    run_at: float
    """Since when it could have been claimed."""
    created_at: float
    started_at: float
    """When it was claimed, or may start if that is later."""
    starts_in: float = 0.0
    """So many seconds after the claim it may start, and not before: its type has a rate."""
    key: str | None = None
    has_begun: bool = True
    """Did it begin with the claim? Otherwise it was claimed ahead, and is queued until it begins."""
    problem: str | None = None
    """What is wrong with its stored values, which no call let in: it must not be run, but settled as failed."""

    @property
    def id(self) -> str:
        return self.lease.id


class Haul(Struct, frozen=True):
    """What a claim brought."""

    claims: list[Claim]
    due_in: float | None
    """Seconds until it is worth to ask again: the next scheduled job comes due, or a rate lets the next one start;
    None if nothing is in sight."""
    has_more: bool = False
    """May there be more that could be claimed now? True wherever the claim ended before it had seen all."""


class LeaseState(StrEnum):
    """What an extension found."""

    HELD = "held"
    CANCELLING = "cancelling"
    """Held, but somebody wants the job cancelled."""
    LOST = "lost"


class Outcome(Struct, frozen=True, kw_only=True, gc=False):
    """What a run came to: one of the moves SUCCEED, FAIL, RETRY, SNOOZE and CANCEL."""

    move: Move
    result: bytes | None = None
    """JSON; of SUCCEED only."""
    error: JobError | None = None
    delay: float = 0.0
    """Seconds until the next run; of RETRY and SNOOZE only."""
    progress: Progress | None = None
    """The last that the run reported, if it was not noted before."""
    cools: float = 0.0
    """For so many seconds no job of the type is to start."""

    @property
    def waits_again(self) -> bool:
        """Is the job to run once more?"""
        return TRANSITIONS[JobStatus.RUNNING][self.move] in WAITING


class Settlement(Struct, frozen=True, gc=False):
    """The outcome of the run that has the lease."""

    lease: Lease
    outcome: Outcome
    started_at: float = 0.0
    """When the run began, for a job that was claimed ahead and whose begin was not stored; 0 for now."""


class Rescued(Struct, frozen=True):
    """A job whose worker was lost, and what it is now: queued, failed, or cancelled if somebody had asked for it."""

    id: str
    worker: str
    status: JobStatus


class Filter(Struct, frozen=True, kw_only=True):
    """Which jobs; what is None does not matter."""

    status: JobStatus | None = None
    type: str | None = None
    queue: str | None = None


class Page(Struct, frozen=True):
    """Jobs, newest first, without payload, result and history."""

    jobs: list[Job]
    next: int | None
    """`before` of the next page; None on the last."""


class Tally(Struct, frozen=True, gc=False):
    """How many jobs of a type are in a queue with a status."""

    queue: str
    type: str
    status: JobStatus
    count: int
    """Now; rows with 0 may be there."""
    total: int
    """How often a job came to have it, since the queue and the type have jobs; see `Store.prune`."""


class Counts(Struct, frozen=True):
    """All tallies, and the queues that are paused (also those without jobs)."""

    tallies: list[Tally]
    paused: frozenset[str]
    retired: dict[tuple[str, JobStatus], int] = {}
    """Totals, by type and status, of tallies that were forgotten while their type has jobs in another queue: with
    these, the totals of a type never shrink as long as it has jobs."""


class JobEvent(Struct, frozen=True, gc=False):
    """One change of a job's status; an insert is one. Numbers grow, without promise of no gaps."""

    number: int
    id: str
    type: str
    queue: str
    status: JobStatus
    attempts: int


class WorkerInfo(Struct, frozen=True, kw_only=True):
    """A process that runs jobs."""

    name: str
    types: tuple[str, ...]
    slots: int
    """How many jobs it runs at once."""
    running: tuple[str, ...]
    """The ids of the jobs that it runs."""
    started_at: float
    limits: tuple[Limit, ...] = ()
    """Those of its types."""
    seen_at: float = 0.0
    """By the store's clock; set by it."""


class Parcel(Struct, frozen=True, kw_only=True):
    """A job that waits, with all that is to be kept of it when it moves to another store."""

    number: int
    """Its place in the order of insertion, in the store that it comes from."""
    job: NewJob
    """With the run_at that it has now."""
    attempts: int
    runs: int
    """Runs ever begun: the numbers in the history go on from it."""
    created_at: float
    started_at: float | None
    error: JobError | None
    progress: Progress | None
    history: tuple[Attempt, ...]


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
    ) -> Haul:
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

    def export(self, limit: int, after: int = 0) -> list[Parcel]:
        """The first jobs that wait (scheduled or queued) after that number, in the order of insertion."""

    def adopt(self, parcels: Sequence[Parcel]) -> int:
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
