"""JobStore: jobs are inserted, leased, settled, managed and inspected."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from ...errors import DuplicateError
from ...model.counts import MOST_FAILURES, Counts, Failures, Filter, Page
from ...model.gate import Limit, Limits
from ...model.job import Job, JobStatus, Progress
from ...model.lease import ClaimResult, Lease, LeaseState, QueueChoice, Rescued, Settlement
from ...model.logs import JobLogs, LogChunk
from ...model.newjob import Answer, NewJob, NewPayload


class JobStore(Protocol):
    """The jobs. Statuses change only as TRANSITIONS says.

    A job that has an `expires_at` and never began ends as expired from that time on: every verb sees to that first, as
    it does to what came due. One that is claimed ahead does so in `begin`, or once its lease has ended.
    """

    # Enqueue

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
        Of a new job with a unique name becomes what `model.unique` says: of the jobs of a name that are not finished,
        at most one has not begun, and at most one has.
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
        """Lease up to `limit` queued jobs of these types for `lease` seconds; the first `begin` of them begin.

        To begin is to be `running`, with the attempt counted. The others are claimed ahead: they stay `queued` until
        `begin` or `settle`, and to lose them costs no attempt. Without `begin` all begin. No suspect (see `rescue`)
        is claimed ahead, and none with a unique name: the claim ends before it.

        By priority, highest first, then by run_at, then in the order of insertion; none of a paused queue, none of
        a type that is cooling. A job whose type has a limit is passed over unless its gate lets it in (`Gate.enter`):
        the gate of the type, or of the job's own key if the limit is keyed. A job without a key is not held up
        by a keyed limit: the worker that claims it has to find its key, and release it with that. Where its queue has a
        limit, too, it passes both gates or none. A job holds its slot in a gate until it leaves the status running. A
        job whose unique name is that of another which has begun is passed over until that one is finished. Jobs that
        are passed over cost other claims nothing.

        With `queues`, only jobs of these are claimed. Where they have rooms, each has `most` and `begin` of its own
        instead of `begin`, and a suspect ends the claim for its queue only.
        """

    def begin(self, leases: Sequence[Lease], started_at: Sequence[float]) -> list[LeaseState]:
        """Note that jobs which were claimed ahead have begun, and when.

        By the clock of this store, as their claims told it; 0 for now. What has begun already is left as it is.
        One that had expired by then ends so, and its lease is lost. BUSY for one that is locked, such as by its own
        handler's transaction: nobody waits for that.
        """

    def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
        """Let each lease that is still held run out `seconds` from now."""

    def progress(self, reports: Sequence[tuple[Lease, Progress]]) -> None:
        """Note how far runs are; those that lost their lease, or have not begun, change nothing.

        Cleared when the next run begins.
        """

    def write_logs(self, chunks: Sequence[tuple[Lease, LogChunk]]) -> None:
        """Store what runs have logged, in this order; those that lost their lease store nothing.

        The same chunk of a run again changes nothing. Of each attempt, and of the job, as much is kept as `model.logs` says.
        """

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        """Record outcomes; False for each whose lease is not held any more. What has not begun begins first.

        What a run has logged is stored with its outcome, as `write_logs` does, or not at all.

        The same settlement again is True and changes nothing. If the job was asked to be cancelled, it is
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

    # Manage

    def cancel(self, ids: Sequence[str]) -> list[JobStatus | None]:
        """Cancel jobs: at once those that wait; those that run are told by `extend`, and end cancelled.

        The lease of one that was claimed ahead is void.
        The status in which each was found; None for an unknown one.
        """

    def retry(
        self, ids: Sequence[str], renewed: NewPayload | None = None, *, from_start: bool = False
    ) -> list[JobStatus | DuplicateError | None]:
        """Run failed and cancelled jobs again, from now on, with attempts at 0; the history is kept.

        Steps, sleeps and signals are kept, waits are forgotten; from the start, so are steps, sleeps and used signals.

        Those that run again have the new payload and its key, if one is given; the fingerprint stays that of the
        first, which is what the id stands for.

        The status in which each was found (others than those two are left as they are); None for an unknown one,
        and a DuplicateError for one that is left as it is since another of its unique name waits.
        """

    def delete(self, ids: Sequence[str]) -> list[JobStatus | None]:
        """Delete finished jobs: their ids are free again.

        The status in which each was found (unfinished ones are left as they are); None for an unknown one.
        """

    def pause(self, queue: str) -> None:
        """Let no job of the queue be claimed, until it is resumed."""

    def resume(self, queue: str) -> None:
        """Undo a pause."""

    # Inspect

    def get(self, id: str) -> Job | None:
        """The whole job, with its history."""

    def logs(self, id: str, after: int = 0) -> JobLogs | None:
        """What the runs of a job have logged, only the lines after that number; None for an unknown job."""

    def page(self, filter: Filter, limit: int, before: int | None = None) -> Page:
        """The newest jobs, or those that come after a page whose `next` was `before`."""

    def counts(self) -> Counts:
        """How many jobs there are."""

    def failures(self, limit: int = MOST_FAILURES) -> Failures:
        """The failed jobs by type and type of error: of those that failed last, up to `limit`.

        A store may read them in several steps: a job that fails or leaves meanwhile may be missed.
        """

    def key_of(self, id: str) -> str | None:
        """The key of a job; None if it has none, or is unknown."""

    def running_of(self, unique: str) -> str | None:
        """The id of the job of that unique name that has begun and is not finished; None if there is none."""

    def limits(
        self, type: str | None = None, key: str | None = None, limit: int = 100, queues: Sequence[str] = ()
    ) -> Limits:
        """The gates, by type and key, of all types or of one, of all keys or of one, and the types that are cooling.

        Only gates with `next_at` ahead, or with jobs that hold a slot; and those of the queues that are asked for.
        """

    def ahead(self, id: str) -> int:
        """How many queued jobs of the same queue would be claimed before this one."""

    # Maintain

    def prune(self, keep: float, limit: int = 1_000, keep_failed: float | None = None) -> int:
        """Delete up to `limit` jobs that finished more than `keep` seconds ago; returns their number.

        Failed ones after `keep_failed` seconds instead, if that is given.
        When nothing is left to delete, the tallies of queues and types that have no job any more are forgotten.
        """
