"""A small model of what runs record: one job of a step, a sleep and a wait, two workers, and a client that sends signals.

Each worker runs the same handler from its top, and is at one place of it: it loads what is recorded, does the effect of
the step, records it, sleeps, asks for the signal, waits, and ends. Replies get lost, leases run out, workers die, and
somebody cancels the job or retries it by hand. A sleep, and a wait, is over at any moment. That a settlement needs the
lease, and may be told twice, is the affair of the other model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from jobpipe.model.job import Move

from .model import (
    CANCEL,
    CLAIM,
    COME_DUE,
    ENDS,
    FAIL,
    HELD,
    MAX_RETRIES,
    NEW,
    OLD,
    QUEUED,
    RELEASE,
    RESCUE,
    RETRY,
    RUNNING,
    TABLE,
    Broken,
)

SUCCEED, REVIVE, SIGNAL = Move.SUCCEED.value, Move.REVIVE.value, Move.SIGNAL.value
SLEEP, WAIT = Move.SLEEP.value, Move.WAIT.value
SCHEDULED, WAITING = TABLE[RUNNING][SLEEP], TABLE[RUNNING][WAIT]
TIMEOUT = "timeout"
PAYLOADS = ("yes", "no")


class Span(IntEnum):
    """A sleep, or a wait."""

    NONE = 0
    BEGUN = 1
    OVER = 2
    TOLD = 3
    """It is over, and a run was told so: of a wait."""


class Place(IntEnum):
    """Where a run is in the handler: what it is about to do."""

    LOAD = 0
    EFFECT = 1
    RECORD = 2
    SLEEP = 3
    RECEIVE = 4
    WAIT = 5
    END = 6


_MOVES = {Place.SLEEP: SLEEP, Place.WAIT: WAIT, Place.END: SUCCEED}
_OTHER = dict(zip(PAYLOADS, reversed(PAYLOADS), strict=True))


class Job(NamedTuple):
    """What the store knows, and what only the checker counts (`runs`, `heard`)."""

    status: str = QUEUED
    attempts: int = 0
    token: int = 0
    """Of the lease; 0 unless it runs."""
    is_expired: bool = False
    is_recorded: bool = False
    sleep: Span = Span.NONE
    wait: Span = Span.NONE
    signal: str = ""
    is_used: bool = False
    is_suspended: bool = False
    """Is it scheduled because it sleeps?"""
    runs: int = 0
    """Runs begun, without those that were given back or suspended."""
    heard: str = ""
    """What a run was told of the wait."""


class View(NamedTuple):
    """A run: its token, and its place in the handler."""

    token: int = 0
    place: Place = Place.LOAD


NOTHING = View()


class State(NamedTuple):
    """The store and the workers."""

    job: Job
    workers: tuple[View, View]


class Step(NamedTuple):
    """What can happen next."""

    label: str
    state: State


@dataclass(frozen=True, slots=True)
class DurableRules:
    """How store and runner work; each can be taken away, to see that it is needed."""

    has_fence: bool = True
    """Does a record need the token of the lease?"""
    loads: bool = True
    """Does a run know what is recorded?"""
    records_first: bool = True
    """Is a step recorded before the run goes on?"""
    gives_back: bool = True
    """Does a suspension cost no attempt?"""
    wakes: bool = True
    """Does a signal queue the job that waits for it?"""
    looks_again: bool = True
    """Does a wait, when it is recorded, look whether the signal is there?"""
    first_wins: bool = True
    closes: bool = True
    """Is a signal refused once the wait for it is over?"""

    @property
    def start(self) -> State:
        return State(Job(), (NOTHING, NOTHING))

    def steps(self, state: State) -> Iterator[Step]:
        """All that can happen; Broken if something happens that must not."""
        for label, job in (*self._by_itself(state.job), *self._by_hand(state.job)):
            yield Step(label, state._replace(job=job))
        for worker, view in enumerate(state.workers):
            told = self._claims(state.job) if view == NOTHING else self._runs(state.job, view)
            for label, job, believed in told:
                workers = (state.workers[0], believed) if worker else (believed, state.workers[1])
                yield Step(f"worker {worker} {label}", State(job, workers))

    # What happens to the job without a worker

    def _by_itself(self, job: Job) -> Iterator[tuple[str, Job]]:
        if job.sleep is Span.BEGUN:
            yield "the sleep is over", job._replace(sleep=Span.OVER)
        if job.wait is Span.BEGUN:
            yield "the wait is over", job._replace(wait=Span.OVER)
        if job.status == SCHEDULED and not (job.is_suspended and job.sleep is Span.BEGUN):
            yield "comes due", _moved(job, COME_DUE)
        if job.status == WAITING and job.wait is Span.OVER:
            yield "comes due", _moved(job, COME_DUE)
        if job.status == RUNNING and not job.is_expired:
            yield "the lease runs out", job._replace(is_expired=True)
        elif job.status == RUNNING:
            yield "is rescued", _ended(job, FAIL if job.attempts > MAX_RETRIES else RESCUE)

    def _by_hand(self, job: Job) -> Iterator[tuple[str, Job]]:
        if CANCEL in TABLE[job.status] and job.status != RUNNING:
            yield "is cancelled", _moved(job, CANCEL)
        if REVIVE in TABLE[job.status]:
            again = _moved(job, REVIVE)._replace(attempts=0, runs=0, wait=Span.NONE)
            again = again._replace(heard="" if job.heard == TIMEOUT else job.heard)
            yield "is retried", again
            if job.is_used:
                again = again._replace(signal="", is_used=False)
            yield "is retried from the start", again._replace(is_recorded=False, sleep=Span.NONE, heard="")
        for payload in PAYLOADS:
            yield f"is sent {payload}", self._signalled(job, payload)

    def _signalled(self, job: Job, payload: str) -> Job:
        if job.signal and self.first_wins:
            return job
        if job.status in ENDS or (job.wait >= Span.OVER and self.closes):
            return job
        sent = job._replace(signal=payload)
        return _moved(sent, SIGNAL) if job.status == WAITING and self.wakes else sent

    # What workers do

    def _claims(self, job: Job) -> Iterator[tuple[str, Job, View]]:
        if CLAIM in TABLE[job.status]:
            claimed = _moved(job, CLAIM)._replace(attempts=job.attempts + 1, runs=job.runs + 1, token=NEW)
            yield "claims", claimed, View(NEW)
            yield "claims, reply lost", claimed, NOTHING

    def _runs(self, job: Job, view: View) -> Iterator[tuple[str, Job, View]]:
        has_lease = job.status == RUNNING and job.token == view.token
        for label, after, believed in self._does(job, view, has_lease=has_lease):
            if after != job and not has_lease:
                raise Broken("a worker that lost its lease changed something")
            yield label, after, believed
        yield "dies", job, NOTHING
        if has_lease:
            yield "extends", job._replace(is_expired=False), view
            yield "gives back", _ended(job, RELEASE), NOTHING

    def _does(self, job: Job, view: View, *, has_lease: bool) -> Iterator[tuple[str, Job, View]]:
        """The next thing in the handler; or the handler raises."""
        is_held = has_lease or not self.has_fence
        if has_lease:
            yield "fails", self._settled(job, FAIL if job.attempts > MAX_RETRIES else RETRY), NOTHING
        if view.place is Place.LOAD:
            place = Place.SLEEP if job.is_recorded and self.loads else Place.EFFECT
            yield "loads", job, view._replace(place=place)
        elif view.place is Place.EFFECT:
            if job.is_recorded and job.token == view.token:
                raise Broken("a step that is recorded was run again")
            yield "does the effect", job, view._replace(place=Place.RECORD)
        elif view.place is Place.RECORD:
            recorded = job._replace(is_recorded=True) if is_held else job
            yield "records", recorded, view._replace(place=Place.SLEEP) if is_held else NOTHING
            yield "records, reply lost", recorded, view
            if not self.records_first:
                yield "goes on", job, view._replace(place=Place.SLEEP)
        elif view.place is Place.RECEIVE:
            yield from self._receives(job, view, is_held=is_held)
        elif view.place is Place.SLEEP and job.sleep >= Span.OVER:
            yield "has slept", job, view._replace(place=Place.RECEIVE)
        else:
            move = _MOVES[view.place]
            yield f"settles ({move})", self._settled(job, move) if has_lease else job, NOTHING

    def _receives(self, job: Job, view: View, *, is_held: bool) -> Iterator[tuple[str, Job, View]]:
        if not is_held:
            yield "is refused", job, NOTHING
        elif job.signal or job.wait >= Span.OVER:
            heard = job.signal or TIMEOUT
            if job.heard not in ("", heard):
                raise Broken(f"a wait came to {job.heard}, and to {heard}")
            after = job._replace(heard=heard)
            after = after._replace(is_used=True) if job.signal else after._replace(wait=Span.TOLD)
            yield "receives", after, view._replace(place=Place.END)
            yield "receives, reply lost", after, view
        else:
            yield "receives nothing", job, view._replace(place=Place.WAIT)

    def _settled(self, job: Job, move: str) -> Job:
        if move == SUCCEED and not job.is_recorded:
            raise Broken("a job was done, and its step is not recorded")
        ended = _ended(job, move, gives_back=self.gives_back)
        if move == SLEEP:
            return ended._replace(sleep=job.sleep or Span.BEGUN, is_suspended=True)
        if move != WAIT:
            return ended
        waiting = ended._replace(wait=job.wait or Span.BEGUN)
        return _moved(waiting, SIGNAL) if job.signal and self.looks_again else waiting

    # What holds in every state

    def check(self, state: State) -> None:
        job = state.job
        if job.status == WAITING and job.signal:
            raise Broken("a job waits, and its signal is there")
        if job.heard == TIMEOUT and job.signal:
            raise Broken("a wait has timed out, and a signal for it was accepted")
        if job.attempts != job.runs:
            raise Broken(f"a job was begun {job.runs} times, and {job.attempts} attempts are counted")
        if job.runs > 1 + MAX_RETRIES:
            raise Broken(f"a job with {MAX_RETRIES} retries runs for the {job.runs}th time")
        if (job.status == RUNNING) != (job.token != 0):
            raise Broken(f"a job that is {job.status} has a lease, or has none")

    def canonical(self, state: State) -> State:
        """The one of all states that differ in the names of workers, tokens and payloads only."""
        job = state.job
        one, two = (_named(view, job) for view in state.workers)
        plain = job._replace(token=job.token and HELD)
        if job.signal == PAYLOADS[1]:
            plain = plain._replace(signal=PAYLOADS[0], heard=_OTHER.get(job.heard, job.heard))
        return State(plain, (one, two) if one <= two else (two, one))

    def is_ended(self, state: State) -> bool:
        return state.job.status == TABLE[RUNNING][SUCCEED]


def _moved(job: Job, move: str) -> Job:
    return job._replace(status=TABLE[job.status][move], is_suspended=False)


def _ended(job: Job, move: str, *, gives_back: bool = True) -> Job:
    """A run ends."""
    is_uncounted = move in (RELEASE, SLEEP, WAIT)
    return _moved(job, move)._replace(
        attempts=job.attempts - (is_uncounted and gives_back),
        runs=job.runs - is_uncounted,
        token=0,
        is_expired=False,
    )


def _named(view: View, job: Job) -> View:
    if view == NOTHING:
        return view
    return view._replace(token=HELD if view.token == job.token else OLD)
