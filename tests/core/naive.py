"""The contract of the work queue as lists that are searched and sorted: slow, and plain enough to be believed.

It knows nothing of the real one. Who is ready or delayed is written down in order of arrival; what comes next is found
by looking at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from rate_envelope_queue.core.verdict import Ending
from rate_envelope_queue.decision import Choice
from rate_envelope_queue.errors import (
    CapacityExceededError,
    EnvelopeBlacklistedError,
    QueueNotRunningError,
    QueueTerminatedError,
    RateEnvelopeQueueError,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from rate_envelope_queue.envelope import Envelope
    from rate_envelope_queue.rates import Rate

COUNTERS = ("added", "done", "failed", "retried", "dropped", "panicked")


def name_of(envelope: Envelope[Any]) -> Hashable:
    """What makes two envelopes the same work."""
    return envelope if envelope.key is None else envelope.key


@dataclass
class Running:
    """A run under way."""

    envelope: Envelope[Any]
    again: Envelope[Any] | None = None
    again_at: float = inf
    is_last: bool = False


class Bucket:
    """A bucket of tokens that fills at a rate; one start takes one."""

    def __init__(self, rate: Rate | None) -> None:
        self.rate = rate
        self.tokens = float(rate.burst) if rate else inf
        self.at = 0.0
        self.cool_until = -inf

    def fill(self, now: float) -> None:
        if self.rate:
            self.tokens = min(self.rate.burst, self.tokens + (now - self.at) / self.rate.interval)
            self.at = now

    def opens_at(self, now: float) -> float:
        """When the next may start; `now` or before if at once."""
        self.fill(now)
        missing = max(1 - self.tokens, 0)
        return max(now + missing * self.rate.interval if self.rate and missing else now, self.cool_until)


@dataclass
class Limits:
    """The options of a queue that throttle it."""

    rate: Rate | None = None
    rates: dict[str, Rate] = field(default_factory=dict)
    concurrency: dict[str, int] = field(default_factory=dict)


@dataclass
class NaiveQueue:
    """What a work queue promises."""

    capacity: int
    limits: Limits = field(default_factory=Limits)
    state: str = "init"
    is_paused: bool = False
    drains: bool = True
    keeps: bool = True
    ready: list[Envelope[Any]] = field(default_factory=list)  # in order of arrival
    delayed: list[tuple[float, Envelope[Any]]] = field(default_factory=list)  # in order of arrival
    running: list[Running] = field(default_factory=list)
    failures: dict[Hashable, int] = field(default_factory=dict)
    beats: dict[Hashable, float | None] = field(default_factory=dict)
    blacklist: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0))
    readied: int = 0  # how often one became ready

    def __post_init__(self) -> None:
        self.whole = Bucket(self.limits.rate)
        self.buckets = {name: Bucket(rate) for name, rate in self.limits.rates.items()}

    def names(self) -> list[Hashable]:
        """Of all that occupy a place."""
        waiting = [*self.ready, *(envelope for _, envelope in self.delayed)]
        return [name_of(each) for each in (*waiting, *(run.envelope for run in self.running))]

    def is_dispatching(self) -> bool:
        return not self.is_paused and (self.state == "running" or (self.state == "stopping" and self.drains))

    # Waiting

    def make_ready(self, envelope: Envelope[Any]) -> None:
        self.ready.append(envelope)
        self.readied += 1

    def come_due(self, now: float) -> None:
        """A running queue makes ready what is due, in order of time."""
        if self.state == "running":
            due = [entry for entry in self.delayed if entry[0] <= now]
            self.delayed = [entry for entry in self.delayed if entry[0] > now]
            for _, envelope in sorted(due, key=lambda entry: entry[0]):
                self.make_ready(envelope)

    def wait(self, envelope: Envelope[Any], at: float, now: float) -> None:
        if at <= now:
            self.make_ready(envelope)
        else:
            self.delayed.append((at, envelope))

    # Sending

    def refusal(self, sent: list[Envelope[Any]]) -> RateEnvelopeQueueError | None:
        if self.state == "terminated":
            return QueueTerminatedError()
        if self.state in ("stopping", "stopped"):
            return QueueNotRunningError()
        for envelope in sent:
            if envelope.type in self.blacklist:
                return EnvelopeBlacklistedError(envelope.type)
        occupied, new = self.names(), {name_of(envelope) for envelope in sent}
        needed = len([name for name in new if name not in occupied])
        if self.capacity and needed and len(occupied) + needed > self.capacity:
            return CapacityExceededError(capacity=self.capacity, occupied=len(occupied), needed=needed)
        return None

    def send(self, envelope: Envelope[Any], delay: float, first_at: float, beat: Any, now: float) -> None:
        self.come_due(now)
        name, at = name_of(envelope), now + delay
        for run in self.running:
            if name_of(run.envelope) == name:
                self.counts["added"] += run.again is None
                run.again_at = min(run.again_at, at) if run.again else at
                run.again = envelope
                return
        if name in [name_of(each) for each in self.ready]:
            return
        for entry in self.delayed:
            if name_of(entry[1]) == name:
                if delay == 0 or at < entry[0]:
                    self.delayed.remove(entry)
                    self.wait(entry[1], at, now)
                return
        self.counts["added"] += 1
        self.failures[name], self.beats[name] = 0, beat
        self.wait(envelope, first_at, now)

    # Running

    def opens_at(self, envelope: Envelope[Any], now: float) -> float:
        """When this one may start; infinity while that depends on one that runs."""
        alike = [run for run in self.running if run.envelope.type == envelope.type]
        if len(alike) >= self.limits.concurrency.get(envelope.type, inf):
            return inf
        own = self.buckets.get(envelope.type)
        return max(self.whole.opens_at(now), own.opens_at(now) if own else now)

    def take(self, now: float) -> Running | None:
        self.come_due(now)
        if not self.is_dispatching():
            return None
        for envelope in sorted(self.ready, key=lambda each: -each.priority):  # stable: arrival decides
            if self.opens_at(envelope, now) <= now:
                self.ready.remove(envelope)
                self.running.append(Running(envelope))
                for bucket in filter(None, [self.whole, self.buckets.get(envelope.type)]):
                    bucket.tokens -= 1
                return self.running[-1]
        return None

    def settle(
        self, run: Running, ending: Ending, choice: Choice | None, at: float | None, beat: Any, now: float
    ) -> None:
        """`at` is when it is to run again, `choice` what was decided on an error (a back-off is a retry)."""
        self.running.remove(run)
        self.come_due(now)
        envelope, again, name = run.envelope, run.again, name_of(run.envelope)
        is_retry = ending is Ending.ERROR and choice is not Choice.DROP
        self.counts["done"] += ending is Ending.SUCCESS
        self.counts["failed"] += ending in (Ending.ERROR, Ending.PANIC)
        self.counts["panicked"] += ending is Ending.PANIC
        self.counts["dropped"] += ending is Ending.ERROR and at is None
        if ending is Ending.RATE_LIMITED and at is not None:
            bucket = self.buckets.setdefault(envelope.type, Bucket(None)) if envelope.type else self.whole
            bucket.cool_until = max(bucket.cool_until, at)
        if ending is Ending.STOP_TYPE and envelope.type:
            self.blacklist.add(envelope.type)
            self.drop_waiting(lambda each: each.type == envelope.type)
        if self.state == "terminated":
            at = None
        if at is not None and (run.is_last or envelope.type in self.blacklist):
            self.counts["dropped"] += 1
            at = None
        if again is not None and again.type in self.blacklist:
            self.counts["dropped"] += 1
            again = None
        if at is None:
            self.failures[name], self.beats[name] = 0, None
        else:
            self.counts["retried"] += is_retry
            self.failures[name] += ending is Ending.ERROR
            self.failures[name] *= ending is not Ending.SUCCESS
            self.beats[name] = self.beats[name] if beat is None else beat
        if again is not None and run.again_at <= now:
            self.make_ready(again)
        elif again is not None or at is not None:
            soonest = min(inf if at is None else at, inf if again is None else run.again_at)
            if self.state == "stopping":
                self.delayed.append((soonest, again or envelope))
            else:
                self.wait(again or envelope, soonest, now)
        self.drop_leftovers()

    # Giving up

    def drop_waiting(self, is_unwanted: Any) -> int:
        before = len(self.ready) + len(self.delayed)
        self.ready = [each for each in self.ready if not is_unwanted(each)]
        self.delayed = [(at, each) for at, each in self.delayed if not is_unwanted(each)]
        dropped = before - len(self.ready) - len(self.delayed)
        self.counts["dropped"] += dropped
        return dropped

    def drop_leftovers(self) -> None:
        if self.state == "stopping" and not self.keeps:
            delayed = [envelope for _, envelope in self.delayed]
            self.drop_waiting(lambda each: each in delayed or not self.is_dispatching())

    def cancel(self, envelope: Envelope[Any]) -> bool:
        for run in self.running:
            if name_of(run.envelope) == name_of(envelope):
                run.is_last, run.again = True, None
                return True
        return self.drop_waiting(lambda each: name_of(each) == name_of(envelope)) > 0

    # The life of the queue

    def stop(self, *, drains: bool, keeps: bool, now: float) -> None:
        self.come_due(now)
        if self.state == "running":
            self.state, self.drains, self.keeps = "stopping", drains, keeps
        elif self.state == "stopping":
            self.drains, self.keeps = self.drains and drains, self.keeps and keeps
        self.drop_leftovers()

    def terminate(self) -> list[Envelope[Any]]:
        unrun = [*self.ready, *(envelope for _, envelope in self.delayed)]
        unrun += [run.again for run in self.running if run.again is not None]
        for run in self.running:
            run.again = None
        self.state, self.ready, self.delayed = "terminated", [], []
        self.beats = dict.fromkeys(self.beats)
        return unrun
