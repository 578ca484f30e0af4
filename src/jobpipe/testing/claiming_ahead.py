"""Claiming ahead: a job that a worker has at hand is queued until it begins, and to lose it costs no attempt."""

from __future__ import annotations

from typing import Any

import pytest

from ..model.gate import Limit
from ..model.job import JobStatus, Move, Progress
from ..model.lease import Claim, Lease, LeaseState, Outcome, Rescued, Settlement
from ..stores.base import Store
from .harness import StoreHarness
from .reading import ids, look, seconds_between, tally, totals
from .tools import BOOM, LOST, finish, new_job, put, rescue_after, take, take_one

DONE = Outcome(move=Move.SUCCEED)


def take_ahead(
    store: Store, limit: int = 1, begin: int = 0, *, limits: tuple[Limit, ...] = ()
) -> list[Claim]:
    return store.claim("w1", ["work"], limit, 60, limits, begin).claims


def take_one_ahead(store: Store) -> Claim:
    (claim,) = take_ahead(store)
    return claim


def claimed_ahead(store: Store, **options: Any) -> Claim:
    """A new job `a`."""
    put(store, new_job("a", **options))
    return take_one_ahead(store)


class ClaimingAhead:
    def test_only_the_first_begin_with_the_claim(self, store: Store) -> None:
        put(store, *(new_job(id) for id in "abc"))
        claims = take_ahead(store, 3, begin=1)
        assert ids(claims) == ["a", "b", "c"]
        assert [(claim.has_begun, claim.attempts) for claim in claims] == [(True, 1), (False, 1), (False, 1)]
        jobs = [look(store, id) for id in "abc"]
        assert [(job.attempts, job.started_at is None) for job in jobs] == [(1, False), (0, True), (0, True)]
        assert [job.status for job in jobs] == [JobStatus.RUNNING, JobStatus.QUEUED, JobStatus.QUEUED]
        assert tally(store) == {JobStatus.RUNNING: 1, JobStatus.QUEUED: 2}
        assert take(store, 10, worker="w2") == [], "no other worker gets it"

    def test_begin_makes_it_run(self, store: Store, harness: StoreHarness) -> None:
        claim = claimed_ahead(store)
        harness.elapse(10)
        assert store.begin([claim.lease], [claim.started_at + 8]) == [LeaseState.HELD]
        job = look(store, "a")
        assert (job.status, job.attempts) == (JobStatus.RUNNING, 1)
        assert seconds_between(job.created_at, job.started_at) == pytest.approx(8, abs=0.5)
        assert finish(store, claim)
        assert [run.number for run in look(store, "a").history] == [1]

    def test_begin_twice_is_begin_once(self, store: Store, harness: StoreHarness) -> None:
        claim = claimed_ahead(store)
        store.begin([claim.lease], [0.0])
        before = look(store, "a")
        harness.elapse(5)
        assert store.begin([claim.lease], [0.0]) == [LeaseState.HELD]
        assert look(store, "a") == before
        store.cancel(["a"])
        assert store.begin([claim.lease], [0.0]) == [LeaseState.CANCELLING]

    def test_begin_answers_for_each_lease(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        first, second = take_ahead(store, 2)
        stranger = Lease("unknown", 1, "w1", "no-token")
        answers = store.begin([second.lease, stranger, first.lease], [0.0, 0.0, 0.0])
        assert answers == [LeaseState.HELD, LeaseState.LOST, LeaseState.HELD]
        assert store.begin([], []) == []

    def test_what_is_settled_has_begun(self, store: Store, harness: StoreHarness) -> None:
        claim = claimed_ahead(store)
        harness.elapse(10)
        settlement = Settlement(claim.lease, Outcome(move=Move.SUCCEED, result=b"7"), claim.started_at + 8)
        assert store.settle([settlement]) == [True]
        job = look(store, "a")
        assert (job.status, job.attempts, job.result) == (JobStatus.DONE, 1, 7)
        (run,) = job.history
        assert (run.number, run.worker) == (1, "w1")
        assert seconds_between(run.began_at, run.ended_at) == pytest.approx(2, abs=0.5)
        assert job.started_at == run.began_at
        assert totals(store) == {JobStatus.QUEUED: 1, JobStatus.RUNNING: 1, JobStatus.DONE: 1}
        events = [event.status for event in store.events(0, 10)]
        assert events == [JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.DONE]
        assert store.settle([settlement]) == [True]
        assert look(store, "a") == job

    def test_every_outcome_of_one_that_was_claimed_ahead(self, store: Store) -> None:
        """Settled together with one that has begun."""
        put(store, *(new_job(id) for id in "abcde"))
        claims = take_ahead(store, 5, begin=1)
        ends = (
            (DONE, JobStatus.DONE, 1),
            (Outcome(move=Move.FAIL, error=BOOM), JobStatus.FAILED, 1),
            (Outcome(move=Move.RETRY, error=BOOM, delay=5), JobStatus.SCHEDULED, 1),
            (Outcome(move=Move.SNOOZE, delay=5), JobStatus.SCHEDULED, 0),
            (Outcome(move=Move.CANCEL), JobStatus.CANCELLED, 1),
        )
        settlements = [Settlement(claim.lease, end[0]) for claim, end in zip(claims, ends, strict=True)]
        assert store.settle(settlements) == [True] * 5
        for id, (outcome, status, attempts) in zip("abcde", ends, strict=True):
            job = look(store, id)
            assert (job.status, job.attempts, len(job.history)) == (status, attempts, attempts), outcome.move

    def test_release_puts_it_back_where_it_was(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        before = look(store, "a")
        first, second = take_ahead(store, 2)
        assert store.release([first.lease, second.lease]) == [True, True]
        assert look(store, "a") == before
        assert store.release([first.lease]) == [False]
        assert store.begin([first.lease], [0.0]) == [LeaseState.LOST]
        assert store.settle([Settlement(first.lease, DONE)]) == [False]
        assert ids(take(store, 2)) == ["a", "b"]

    def test_lease_of_what_has_not_begun_is_extended(self, store: Store, harness: StoreHarness) -> None:
        claim = claimed_ahead(store)
        store.progress([(claim.lease, Progress(value=0.5))])
        assert look(store, "a").progress is None
        harness.elapse(40)
        assert store.extend([claim.lease], 60) == [LeaseState.HELD]
        assert rescue_after(store, harness, 40) == []
        assert store.begin([claim.lease], [0.0]) == [LeaseState.HELD]

    def test_lost_worker_costs_no_attempt(self, store: Store, harness: StoreHarness) -> None:
        claim = claimed_ahead(store, max_retries=0)
        assert rescue_after(store, harness) == [Rescued("a", "w1", JobStatus.QUEUED, "work", 0)]
        assert store.rescue() == []
        job = look(store, "a")
        assert (job.status, job.attempts, job.error, job.history) == (JobStatus.QUEUED, 0, None, ())
        assert not finish(store, claim)
        assert finish(store, take_one(store, worker="w2"))

    def test_suspect_begins_with_its_next_claim(self, store: Store, harness: StoreHarness) -> None:
        """It may have killed its worker before this could be stored: that must not happen for ever."""
        put(store, new_job("poison", max_retries=1))
        statuses = []
        for begin in (0, 1, 1):
            (claim,) = take_ahead(store, begin=begin)
            assert claim.has_begun == bool(begin)
            statuses += [rescued.status for rescued in rescue_after(store, harness)]
        assert statuses == [JobStatus.QUEUED, JobStatus.QUEUED, JobStatus.FAILED]
        job = look(store, "poison")
        assert (job.attempts, job.error, [run.number for run in job.history]) == (2, LOST, [1, 2])

    @pytest.mark.parametrize("limits", [(), (Limit(type="work", concurrency=9),)], ids=["free", "limited"])
    def test_no_suspect_is_claimed_ahead(
        self, store: Store, harness: StoreHarness, limits: tuple[Limit, ...]
    ) -> None:
        """Else all that were lost together would lose an attempt when the one among them kills the next worker."""
        put(store, *(new_job(id) for id in "abc"))
        take_ahead(store, 2)
        assert len(rescue_after(store, harness)) == 2
        answer = store.claim("w1", ["work"], 3, 60, limits, 0)
        assert (answer.claims, answer.has_more) == ([], True)
        answer = store.claim("w1", ["work"], 3, 60, limits, 1)
        assert (ids(answer.claims), answer.has_more) == (["a"], True)
        claims = take_ahead(store, 3, 1, limits=limits)
        assert [(claim.id, claim.has_begun) for claim in claims] == [("b", True), ("c", False)]

    def test_suspect_is_cleared_when_it_is_settled(self, store: Store, harness: StoreHarness) -> None:
        claimed_ahead(store)
        rescue_after(store, harness)
        (claim,) = take_ahead(store, begin=1)
        finish(store, claim, Move.RETRY, error=BOOM)
        assert not take_one_ahead(store).has_begun

    def test_cancel_ends_it_at_once(self, store: Store) -> None:
        claim = claimed_ahead(store)
        assert store.cancel(["a"]) == [JobStatus.QUEUED]
        job = look(store, "a")
        assert (job.status, job.attempts) == (JobStatus.CANCELLED, 0)
        assert store.begin([claim.lease], [0.0]) == [LeaseState.LOST]
        assert store.extend([claim.lease], 60) == [LeaseState.LOST]
        assert store.settle([Settlement(claim.lease, DONE)]) == [False]
        assert look(store, "a") == job
        store.retry(["a"])
        assert finish(store, take_one(store))

    def test_place_under_a_limit_is_held_until_it_ends(self, store: Store) -> None:
        limits = (Limit(type="work", concurrency=1),)
        put(store, new_job("a"), new_job("b"))
        (claim,) = take_ahead(store, 2, limits=limits)
        assert take_ahead(store, limits=limits) == []
        store.begin([claim.lease], [0.0])
        assert take_ahead(store, limits=limits) == []
        finish(store, claim)
        assert ids(take_ahead(store, limits=limits)) == ["b"]

    @pytest.mark.parametrize("end", ["release", "cancel", "rescue"])
    def test_place_under_a_limit_is_free_again(self, store: Store, harness: StoreHarness, end: str) -> None:
        limits = (Limit(type="work", concurrency=1, is_keyed=True),)
        put(store, new_job("a", key="k"), new_job("b", key="k"))
        (claim,) = take_ahead(store, 2, limits=limits)
        if end == "release":
            store.release([claim.lease])
        elif end == "cancel":
            store.cancel([claim.id])
        else:
            rescue_after(store, harness)
        (following,) = take_ahead(store, 2, begin=1, limits=limits)
        assert following.id == ("b" if end == "cancel" else "a")

    def test_job_that_may_start_later_begins_with_the_claim(self, store: Store) -> None:
        limits = (Limit(type="work", interval=0.05),)
        put(store, new_job("a"), new_job("b"))
        now, later = take_ahead(store, 2, begin=2, limits=limits)
        assert (now.has_begun, later.has_begun) == (True, True)
        assert later.starts_in == pytest.approx(0.05, abs=0.02)

    def test_claim_says_whether_there_may_be_more(self, store: Store) -> None:
        """Whatever a store brings at once at the most, a worker that asks on finds all."""
        put(store, *(new_job(f"j{n}") for n in range(2_500)))
        found: list[str] = []
        while True:
            result = store.claim("w1", ["work"], 1_016, 60, (), 16)
            found += ids(result.claims)
            if not result.has_more:
                break
            assert result.claims
        assert found == [f"j{n}" for n in range(2_500)]
