"""HeldJob: a job that this process holds, from the claim until it is settled or given back."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from rate_envelope_queue import Envelope

from ..model.job import Progress
from ..model.lease import Claim

if TYPE_CHECKING:
    from ..gateway.tracing import RunSpan
    from ..jobtypes.durable import DurableRun
    from ..jobtypes.jobtype import JobType
    from .run_log import RunLog
    from .slots import Pools

_FIRST = 10_000
"""More than any two priorities of jobs differ."""


class HeldJob:
    """What is known of it here. Who changes one of the flags has the lock of HeldJobs."""

    __slots__ = (
        *("began_at", "claim", "envelope", "is_cancelling", "is_ended", "is_gone", "job_type", "progress"),
        *("begins_before", "held_until", "is_begin_stored", "is_begin_told", "is_limited", "key", "pool"),
        *("durable", "has_child", "is_finishing", "lends", "log", "owner", "result", "seconds", "span"),
        "taken_at",
    )

    envelope: Envelope[HeldJob]

    def __init__(
        self, claim: Claim, job_type: JobType[..., Any], pools: Pools, now: float, held_until: float
    ) -> None:
        self.claim = claim
        self.job_type = job_type
        self.pool = pools.of(claim.queue)
        self.is_limited = job_type.limit is not None or claim.queue in pools.limited
        self.key: str | None = None  # found here, since who put the job in did not know its type
        self.taken_at = now + claim.starts_in
        self.held_until = held_until  # at least, by the runner's clock
        self.begins_before = inf  # or never, as it expires then; by the runner's clock
        self.began_at = 0.0  # 0 until it begins
        self.is_begin_stored = claim.has_begun
        # May it be `running` in the store? Until that answers, nobody knows.
        self.is_begin_told = claim.has_begun
        self.seconds = 0.0  # that its run took, once it has ended
        self.is_ended = False
        self.is_cancelling = False  # somebody wants it cancelled, and it was told
        self.is_gone = False  # given back, or lost: whatever comes of it is not recorded
        self.progress: Progress | None = None
        self.result: bytes | None = None
        self.span: RunSpan | None = None
        self.log: RunLog | None = None  # until it logs something
        self.owner: object = None  # the task, or thread, in which its handler was called
        self.durable: DurableRun | None = None  # until it records something
        self.has_child = False  # it has a slot, and a process of its own that starts for it or runs it
        self.lends = False  # its handler, in a process of its own, writes in a transaction there
        self.is_finishing = False  # it has written its outcome in a transaction of its own

    def expire_by(self, asked_at: float) -> None:
        """Keep to its expiry, if it has one. Why since it was asked for: the store's time was no earlier then."""
        if self.claim.expires_at is not None:
            claimed_at = self.claim.started_at - self.claim.starts_in
            self.begins_before = asked_at + self.claim.expires_at - claimed_at

    @property
    def started_at(self) -> float:
        """When it began, by the clock of the store. Why not to the letter with a limit: it has its place in a rate."""
        late = 0.0 if self.is_limited else self.began_at - self.taken_at
        return self.claim.started_at + late

    @property
    def waited(self) -> float:
        """Seconds from when it could have run to its begin."""
        claim = self.claim
        return max(claim.started_at + self.began_at - self.taken_at - claim.run_at, 0.0)

    @property
    def has_transactions(self) -> bool:
        """Has it recorded anything in a transaction of its handler's own, which may be open?"""
        return self.lends or (self.durable is not None and self.durable.has_transactions)

    @property
    def may_be_locked(self) -> bool:
        """May its row be locked: by a transaction of its handler's own, or by who tells that it has begun?"""
        return self.has_transactions or not self.is_begin_stored

    @property
    def lacks_key(self) -> bool:
        """Is it to be given back with its key, so that the limits of its type hold for it?"""
        limit = self.job_type.limit
        return limit is not None and limit.is_keyed and self.claim.key is None

    @property
    def priority(self) -> int:
        """Among the jobs that wait here: first those that others see running, then those whose time to start has come."""
        ranks = 2 * self.claim.has_begun + self.is_limited
        return self.claim.priority + ranks * _FIRST
