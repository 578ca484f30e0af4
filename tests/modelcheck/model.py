"""A small model of the store's verbs, for every order in which two workers can use them on two jobs.

It has what the promises are about and nothing else: the status as the transition table of the service moves it, the
attempts, the lease with its token, and what each worker believes. Replies get lost, leases run out, workers die.
Everything is a value; `canonical` renames tokens, jobs and workers, so that states that differ in names only are one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from jobpipe.model.job import FINISHED, TRANSITIONS, JobStatus, Move

MAX_RETRIES = 1
TABLE = {
    status.value: {move.value: after.value for move, after in moves.items()}
    for status, moves in TRANSITIONS.items()
}
"""The transition table of the service. Why as plain text: half a million states are looked up by it."""
ENDS = frozenset(status.value for status in FINISHED)
QUEUED, RUNNING = JobStatus.QUEUED.value, JobStatus.RUNNING.value
COME_DUE, CLAIM, CANCEL = Move.COME_DUE.value, Move.BEGIN.value, Move.CANCEL.value
FAIL, RETRY, SNOOZE = Move.FAIL.value, Move.RETRY.value, Move.SNOOZE.value
RELEASE, RESCUE, EXPIRE = Move.RELEASE.value, Move.RESCUE.value, Move.EXPIRE.value
OUTCOMES = (Move.SUCCEED.value, FAIL, RETRY, SNOOZE, CANCEL)
HELD, SETTLED, OLD, NEW = 1, 2, 3, 4
"""Tokens, as `canonical` names them: of the lease, of the last settlement, of none of both; and one that never was."""


class Broken(Exception):
    """A step that no promise allows."""


class Job(NamedTuple):
    """What the store knows of a job, and what only the checker counts (`runs`, `ends`)."""

    status: str = QUEUED
    attempts: int = 0
    token: int = 0
    """Of the lease; 0 unless it runs."""
    settled: int = 0
    """The token of the last settlement, until the next claim."""
    is_expired: bool = False
    is_cancel_asked: bool = False
    is_suspect: bool = False
    """Has somebody seen that its lease has run out, and is about to rescue it?"""
    runs: int = 0
    """Runs begun, without those that were given back."""
    ends: int = 0
    """Outcomes recorded."""


class View(NamedTuple):
    """What a worker believes to hold: a job, by a token. With a move, it has told what came of it, and heard nothing."""

    job: int
    token: int
    told: str = ""


NOTHING = View(-1, 0)


class State(NamedTuple):
    """The store and the workers."""

    jobs: tuple[Job, Job]
    workers: tuple[View, View]


class Step(NamedTuple):
    """What can happen next."""

    label: str
    state: State


START = State((Job(), Job()), (NOTHING, NOTHING))


@dataclass(frozen=True, slots=True)
class Rules:
    """How the store works; each can be taken away, to see that it is needed."""

    has_fence: bool = True
    """Does a settlement, an extension or a release need the token of the lease?"""
    counts_at_claim: bool = True
    gives_back: bool = True
    """Does a release cost no attempt?"""
    checks_again: bool = True
    """Does a rescue look again whether the lease has run out?"""
    rescues: bool = True
    remembers: bool = True
    """Does the store know a settlement that it is told again?"""

    @property
    def start(self) -> State:
        return START

    def check(self, state: State) -> None:
        for job in state.jobs:
            check(job)

    def canonical(self, state: State) -> State:
        return canonical(state)

    def is_ended(self, state: State) -> bool:
        return all(job.status in ENDS for job in state.jobs)

    def steps(self, state: State) -> Iterator[Step]:
        """All that can happen; Broken if something happens that must not."""
        for number in range(len(state.jobs)):
            yield from self._by_itself(state, number)
        for worker, view in enumerate(state.workers):
            yield from self._take(state, worker) if view == NOTHING else self._hold(state, worker, view)

    # What happens to a job without its worker

    def _by_itself(self, state: State, number: int) -> Iterator[Step]:
        job = state.jobs[number]

        def to(label: str, new: Job) -> Step:
            return Step(f"{label} {number}", _with_job(state, number, new))

        if COME_DUE in TABLE[job.status]:
            yield to("come due", _moved(job, COME_DUE))
        if job.status == RUNNING:
            if not job.is_expired:
                yield to("lease runs out", job._replace(is_expired=True))
            elif not job.is_suspect and self.rescues:
                yield to("look for lost", job._replace(is_suspect=True))
            if not job.is_cancel_asked:
                yield to("ask to cancel", job._replace(is_cancel_asked=True))
        elif CANCEL in TABLE[job.status]:
            yield to("cancel", _moved(job, CANCEL))
        if EXPIRE in TABLE[job.status] and not job.runs:
            yield to("expire", _moved(job, EXPIRE))
        if job.is_suspect:
            yield to("rescue", self._rescued(job))

    def _rescued(self, job: Job) -> Job:
        job = job._replace(is_suspect=False)
        if job.status != RUNNING or (self.checks_again and not job.is_expired):
            return job
        if not job.is_expired:
            raise Broken("a job was taken from a worker whose lease was alive")
        return _ended(job, FAIL if job.attempts > MAX_RETRIES else RESCUE)

    # What workers do

    def _take(self, state: State, worker: int) -> Iterator[Step]:
        for number, job in enumerate(state.jobs):
            if CLAIM not in TABLE[job.status]:
                continue
            if job.token:
                raise Broken("a job came to have two leases")
            claimed = _moved(job, CLAIM)._replace(
                attempts=job.attempts + self.counts_at_claim,
                runs=job.runs + 1,
                token=NEW,
                settled=0,
                is_expired=False,
                is_cancel_asked=False,
            )
            after = _with_job(state, number, claimed)
            yield Step(f"worker {worker} claims {number}", _with_view(after, worker, View(number, NEW)))
            yield Step(f"worker {worker} claims {number}, reply lost", after)

    def _hold(self, state: State, worker: int, view: View) -> Iterator[Step]:
        number, job = view.job, state.jobs[view.job]
        is_held = job.status == RUNNING and (job.token == view.token or not self.has_fence)

        def to(label: str, new: Job, believed: View) -> Step:
            if new != job and job.token != view.token:
                raise Broken("a worker that lost its lease changed something")
            after = _with_view(_with_job(state, number, new), worker, believed)
            return Step(f"worker {worker} {label} {number}", after)

        yield to("dies with", job, NOTHING)
        for move in OUTCOMES if not view.told else (view.told,):
            if self._has_to_fail(job, view, move):
                continue
            recorded, is_true = self._settled(job, view, move, is_held=is_held)
            if view.token == job.token != 0 and not is_true:
                raise Broken("an outcome of a worker with the lease was refused")
            yield to(f"settles ({move})", recorded, NOTHING)
            yield to(f"settles ({move}), reply lost,", recorded, view._replace(told=move))
        if is_held:
            extended = job._replace(is_expired=False)
            yield to("extends", extended, view)
        elif not view.told:
            yield to("hears that it lost", job, NOTHING)
        if not view.told:
            released = _ended(job, RELEASE, given_back=self.gives_back) if is_held else job
            yield to("gives back", released, NOTHING)

    @staticmethod
    def _has_to_fail(job: Job, view: View, move: str) -> bool:
        """A worker asks for a retry only where one is left: it knows the attempts from its claim."""
        return move == RETRY and view.token == job.token and job.attempts > MAX_RETRIES

    def _settled(self, job: Job, view: View, move: str, *, is_held: bool) -> tuple[Job, bool]:
        if not is_held:
            is_known = job.settled == view.token
            if view.told and is_known and not self.remembers:
                raise Broken("an outcome that was recorded was refused when it was told again")
            return job, is_known
        if view.told and job.settled == view.token:
            raise Broken("an outcome was recorded twice")
        return _ended(job, move)._replace(settled=view.token), True


def check(job: Job) -> None:
    """What holds in every state; Broken where it does not."""
    if job.ends > 1 or (job.status in ENDS) != (job.ends == 1):
        raise Broken(f"a job that is {job.status} has {job.ends} outcomes")
    if job.status == JobStatus.EXPIRED.value and job.runs:
        raise Broken("a job that was run has expired")
    if job.runs > 1 + MAX_RETRIES:
        raise Broken(f"a job with {MAX_RETRIES} retries runs for the {job.runs}th time")
    if job.attempts != job.runs:
        raise Broken(f"a job was begun {job.runs} times, and {job.attempts} attempts are counted")
    if (job.status == RUNNING) != (job.token != 0):
        raise Broken(f"a job that is {job.status} has a lease, or has none")


def _moved(job: Job, move: str) -> Job:
    status = TABLE[job.status][move]
    return job._replace(status=status, ends=job.ends + (status in ENDS))


def _ended(job: Job, move: str, *, given_back: bool = True) -> Job:
    """A run ends; a wish to cancel wins over what it came to."""
    is_uncounted = move in (SNOOZE, RELEASE)
    ended = _moved(job, CANCEL if job.is_cancel_asked else move)
    return ended._replace(
        attempts=job.attempts - (is_uncounted and given_back),
        runs=job.runs - is_uncounted,
        token=0,
        is_expired=False,
        is_cancel_asked=False,
    )


def _with_job(state: State, number: int, job: Job) -> State:
    return State((state.jobs[0], job) if number else (job, state.jobs[1]), state.workers)


def _with_view(state: State, worker: int, view: View) -> State:
    return State(state.jobs, (state.workers[0], view) if worker else (view, state.workers[1]))


def canonical(state: State) -> State:
    """The one of all states that differ in the names of jobs, workers and tokens only."""
    (first, second), (one, two) = state
    one, two = _named(one, state.jobs), _named(two, state.jobs)
    first, second = _plain(first), _plain(second)
    if first < second:
        return State((first, second), _sorted(one, two))
    turned = _sorted(_turned(one), _turned(two))
    if first > second:
        return State((second, first), turned)
    return State((first, second), min(turned, _sorted(one, two)))


def _named(view: View, jobs: tuple[Job, Job]) -> View:
    """Why a token that is neither of the two needs no name of its own: it never will be one of them again."""
    if view.job < 0:
        return view
    job = jobs[view.job]
    token = HELD if view.token == job.token else SETTLED if view.token == job.settled else OLD
    return View(view.job, token, view.told)


def _plain(job: Job) -> Job:
    token, settled = job.token and HELD, job.settled and SETTLED
    return job if (token, settled) == (job.token, job.settled) else job._replace(token=token, settled=settled)


def _turned(view: View) -> View:
    return view if view.job < 0 else View(1 - view.job, view.token, view.told)


def _sorted(one: View, two: View) -> tuple[View, View]:
    return (one, two) if one <= two else (two, one)
