"""Store: where jobs live, as small atomic verbs in five protocols, and the values that go in and out.

Every verb is one atomic step and may be called from any thread. What `insert` and `settle` have answered is on disk
(as far as the store has one). The store's own clock decides what is due and which lease has run out: callers give
durations, never instants of their own. A verb raises StoreAwayError when the store cannot be reached or
cannot write; then nothing of the call was done, or it was done whole and only the reply was lost, and it
may be called again: `insert`, `settle` and `extend` of the same arguments come to the same.

`protocols/` describes the verbs by noun; code that needs one noun asks for that protocol, not for the whole Store.
Authors of stores find everything here, the values of `model/` too.
"""

from __future__ import annotations

from typing import Protocol, Self

from msgspec import Struct

from ..model.counts import Counts as Counts
from ..model.counts import Failures as Failures
from ..model.counts import Filter as Filter
from ..model.counts import JobEvent as JobEvent
from ..model.counts import Page as Page
from ..model.counts import Tally as Tally
from ..model.counts import WorkerInfo as WorkerInfo
from ..model.durable import DurableState as DurableState
from ..model.durable import JobSignal as JobSignal
from ..model.durable import Received as Received
from ..model.durable import SignalAnswer as SignalAnswer
from ..model.durable import Sleep as Sleep
from ..model.durable import Step as Step
from ..model.durable import Wait as Wait
from ..model.gate import Limit as Limit
from ..model.gate import Limits as Limits
from ..model.job import Job as Job
from ..model.job import JobStatus as JobStatus
from ..model.job import Progress as Progress
from ..model.lease import Claim as Claim
from ..model.lease import ClaimResult as ClaimResult
from ..model.lease import Lease as Lease
from ..model.lease import LeaseState as LeaseState
from ..model.lease import Outcome as Outcome
from ..model.lease import QueueChoice as QueueChoice
from ..model.lease import Rescued as Rescued
from ..model.lease import Room as Room
from ..model.lease import Settlement as Settlement
from ..model.logs import JobLogs as JobLogs
from ..model.logs import LogChunk as LogChunk
from ..model.logs import StoredChunk as StoredChunk
from ..model.newjob import Answer as Answer
from ..model.newjob import ExportedJob as ExportedJob
from ..model.newjob import NewJob as NewJob
from ..model.newjob import NewPayload as NewPayload
from ..model.newjob import Receipt as Receipt
from ..model.newjob import Refusal as Refusal
from ..model.schedule import Missed as Missed
from ..model.schedule import ScheduleEntry as ScheduleEntry
from ..model.schedule import Schedules as Schedules
from .protocols.durable import DurableStore as DurableStore
from .protocols.jobs import JobStore as JobStore
from .protocols.schedules import ScheduleStore as ScheduleStore
from .protocols.transfer import TransferStore as TransferStore
from .protocols.watch import News as News
from .protocols.watch import Watch as Watch
from .protocols.watch import WatchStore as WatchStore


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


class Store(JobStore, DurableStore, ScheduleStore, TransferStore, WatchStore, Protocol):
    """A whole store: the five, and how it is opened and closed."""

    url: str
    """Without its secrets."""
    capabilities: Capabilities

    def migrate(self) -> list[str]:
        """Bring the schema up to date, locked against others that do; the names of the steps that it took.

        StoreRefusedError, before anything is changed, if the schema is newer than the program.
        """

    def check(self) -> list[str]:
        """Remarks about how well it keeps the promises; StoreRefusedError if it cannot."""

    def sibling(self) -> Self:
        """The same store with connections of its own, for a thread that no other may hold up."""

    def close(self) -> None:
        """Let go of all connections; a second call does nothing."""
