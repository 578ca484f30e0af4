"""Limits: how fast, and how many at once, jobs of a type or queue may run, and the arithmetic of a gate that they pass.

A gate is what a store keeps for one queue, one type, or one key of it: when its next start would be evenly paced
(`next_at`), and which running jobs hold a place in it. The arithmetic is here once; stores in other languages
follow it to the letter.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

LEAD = 0.1
"""A job may be claimed so many seconds before it may start; who claimed it waits for its time. So a rate is kept to
the millisecond, and a fast one does not take a claim for every job."""
INSURANCE = 5.0
"""So many seconds after which a gate that is closed is looked at again, whatever should have opened it."""
MOST_PASSED_OVER = 1_000
"""Jobs that one claim passes over, at the most; then it ends, with `due_in` at 0 if it brings less than it might."""


class Limit(Struct, frozen=True, kw_only=True, gc=False):
    """What a worker knows of the limits of one of its types, or of a queue."""

    type: str = ""
    """Empty for that of a queue."""
    queue: str = ""
    """Empty for that of a type."""
    interval: float = 0.0
    """Seconds between two starts at an even pace; 0 if there is no rate."""
    burst: int = 1
    """So many may start at once after a rest."""
    concurrency: int = 0
    """So many may run at once; 0 for any number."""
    is_keyed: bool = False
    """Is it for each key of the type by itself?"""


def split_limits(limits: Iterable[Limit]) -> tuple[dict[str, Limit], dict[str, Limit]]:
    """Those of types by type, and those of queues by queue: a job passes both."""
    told = list(limits)
    return {each.type: each for each in told if not each.queue}, {
        each.queue: each for each in told if each.queue
    }


class GateState(Struct, frozen=True, kw_only=True):
    """A gate as it was when somebody looked."""

    type: str
    """Empty for the gate of a queue."""
    key: str = ""
    """Empty for the gate of the whole type; the queue for that of a queue."""
    next_at: float = 0.0
    """When the next start would be evenly paced; 0 if that is now."""
    running: int = 0
    """How many running jobs hold a place in it."""
    holders: tuple[str, ...] = ()
    """The ids of the first twenty of them."""


class Limits(Struct, frozen=True):
    """What holds jobs up, by the store's clock."""

    now: float
    gates: list[GateState]
    cooling: dict[str, float]
    """Until when types start nothing at all, by type; only what lies ahead."""
    queues: list[GateState] = []
    """The gates of the queues that were asked for, in their order, idle ones too."""


class Gate:
    """A gate during one claim: lets jobs in, one after the other, as far as its limit goes."""

    __slots__ = ("limit", "next_at", "running")

    def __init__(self, limit: Limit, now: float, next_at: float = 0.0, running: int = 0) -> None:
        self.limit = limit
        # Why bounded: what is further ahead is from a time when the rate was lower.
        self.next_at = next_at if next_at <= now + LEAD + limit.burst * limit.interval else now
        self.running = running

    def starts_at(self, now: float) -> float | None:
        """When one more may start; None while as many run as may."""
        limit = self.limit
        if limit.concurrency and self.running >= limit.concurrency:
            return None
        return max(now, self.next_at - (limit.burst - 1) * limit.interval) if limit.interval else now

    def tokens(self, now: float) -> float:
        """How many may start at once, as far as the rate goes, if there is one."""
        ahead = max(self.next_at - now, 0.0)
        return max(self.limit.burst - ahead / self.limit.interval, 0.0)

    def is_open(self, now: float) -> bool:
        """May one more start soon?"""
        starts_at = self.starts_at(now)
        return starts_at is not None and starts_at <= now + LEAD

    def enter(self, now: float, other: Gate | None = None) -> float | None:
        """Let one more in, if it may start soon: in how many seconds. With another gate, through both or none."""
        starts_at = self.starts_at(now)
        if starts_at is None or starts_at > now + LEAD:
            return None
        if other is not None:
            others = other.starts_at(now)
            if others is None or others > now + LEAD:
                return None
            starts_at = max(starts_at, others)
            other._start(starts_at)
        self._start(starts_at)
        return starts_at - now

    def _start(self, at: float) -> None:
        if self.limit.interval:
            self.next_at = max(self.next_at, at) + self.limit.interval
        self.running += 1

    def room(self, most: int, now: float) -> int:
        """How many more would be let in now, counted up to so many; they are taken to be in."""
        let_in = 0
        while let_in < most and self.enter(now) is not None:
            let_in += 1
        return let_in

    def opens_at(self, now: float) -> float:
        """When to try again. Why half the lead: then the one after is claimed along."""
        starts_at = self.starts_at(now)
        return now + INSURANCE if starts_at is None else min(starts_at - LEAD / 2, now + INSURANCE)
