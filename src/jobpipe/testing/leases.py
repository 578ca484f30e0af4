"""Leases: extended, given back, lost; and that who lost one changes nothing."""

from __future__ import annotations

from contextlib import closing

import pytest

from ..model.job import JobStatus, Move, Progress
from ..model.lease import Lease, LeaseState, Outcome, Rescued, Settlement
from ..stores.base import Store
from .harness import StoreHarness
from .reading import ids, look, seconds_between, tally, totals
from .tools import BOOM, LOST, finish, new_job, put, rescue_after, started, take, take_one


class Leases:
    def test_live_lease_is_not_rescued(self, store: Store, harness: StoreHarness) -> None:
        started(store, "a", lease=60)
        assert store.rescue() == []
        assert rescue_after(store, harness, 40) == []
        assert look(store, "a").status is JobStatus.RUNNING

    def test_lost_worker_costs_the_attempt(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a", worker="w1", lease=60)
        assert rescue_after(store, harness) == [Rescued("a", "w1", JobStatus.QUEUED, "work", 1)]
        assert store.rescue() == []
        job = look(store, "a")
        assert (job.status, job.attempts, job.error, job.finished_at) == (JobStatus.QUEUED, 1, LOST, None)
        (run,) = job.history
        assert (run.number, run.worker, run.error) == (1, "w1", LOST)
        assert seconds_between(run.began_at, run.ended_at) >= 60
        again = take_one(store, worker="w2")
        assert again.attempts == 2
        assert again.lease.token != claim.lease.token

    def test_poison_job_fails_at_its_last_attempt(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("poison", max_retries=2))
        statuses = []
        for _ in range(3):
            take_one(store)
            statuses += [rescued.status for rescued in rescue_after(store, harness)]
        assert statuses == [JobStatus.QUEUED, JobStatus.QUEUED, JobStatus.FAILED]
        job = look(store, "poison")
        assert (job.status, job.attempts, job.error) == (JobStatus.FAILED, 3, LOST)
        assert job.finished_at is not None
        assert [run.number for run in job.history] == [1, 2, 3]
        assert take(store) == []

    def test_rescue_with_cancel_asked_ends_the_job(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a"), new_job("last", max_retries=0))
        take(store, 2)
        store.cancel(["a", "last"])
        rescued = {each.id: each.status for each in rescue_after(store, harness)}
        assert rescued == {"a": JobStatus.CANCELLED, "last": JobStatus.CANCELLED}
        job = look(store, "a")
        assert (job.status, job.error) == (JobStatus.CANCELLED, LOST)
        assert job.finished_at is not None

    def test_rescue_takes_back_no_more_than_asked(self, store: Store, harness: StoreHarness) -> None:
        put(store, *(new_job(f"j{n}") for n in range(6)))
        take(store, 5)
        harness.elapse(61)
        found = [rescued.id for limit in (2, 2, 2, 2) for rescued in store.rescue(limit)]
        assert sorted(found) == [f"j{n}" for n in range(5)]
        assert tally(store) == {JobStatus.QUEUED: 6}
        claims = take(store, 6)
        assert ids(claims) == [f"j{n}" for n in range(6)]
        assert [claim.attempts for claim in claims] == [2, 2, 2, 2, 2, 1]

    def test_extension_counts_from_now(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a", lease=60)
        for _ in range(3):
            harness.elapse(40)
            assert store.extend([claim.lease], 60) == [LeaseState.HELD]
            assert store.extend([claim.lease], 60) == [LeaseState.HELD]
            assert store.rescue() == []
        assert ids(rescue_after(store, harness)) == ["a"]
        claim = take_one(store, lease=1_000)
        store.extend([claim.lease], 30)
        assert ids(rescue_after(store, harness, 31)) == ["a"], "it may be shortened, too"

    def test_extension_tells_each_lease_what_it_is(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"), new_job("c"))
        first, second, third = take(store, 3)
        store.cancel(["b"])
        finish(store, third)
        states = store.extend([third.lease, second.lease, first.lease], 60)
        assert states == [LeaseState.LOST, LeaseState.CANCELLING, LeaseState.HELD]

    def test_only_the_lease_that_was_extended_lives_on(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a"), new_job("b"))
        first, _ = take(store, 2)
        harness.elapse(40)
        store.extend([first.lease], 60)
        assert ids(rescue_after(store, harness, 21)) == ["b"]

    @pytest.mark.parametrize("is_taken_again", [False, True], ids=["waiting", "taken again"])
    def test_who_lost_the_lease_changes_nothing(
        self, store: Store, harness: StoreHarness, is_taken_again: bool
    ) -> None:
        """The worker was stopped past its lease and goes on as if nothing had happened, in its own process."""
        late = started(store, "a", worker="late").lease
        rescue_after(store, harness)
        if is_taken_again:
            take_one(store, worker="next")
        before, counted, last = look(store, "a"), totals(store), store.last_event()
        with closing(harness.open()) as other:
            for move in (Move.SUCCEED, Move.FAIL, Move.RETRY, Move.SNOOZE, Move.CANCEL):
                assert other.settle([Settlement(late, Outcome(move=move))]) == [False]
            assert other.extend([late], 1_000) == [LeaseState.LOST]
            assert other.release([late]) == [False]
            other.progress([(late, Progress(value=1.0, note="late"))])
        assert look(store, "a") == before
        assert (totals(store), store.last_event()) == (counted, last)
        assert len(rescue_after(store, harness)) == is_taken_again

    def test_same_worker_with_its_old_lease_is_refused_too(self, store: Store, harness: StoreHarness) -> None:
        old = started(store, "a", worker="w1")
        rescue_after(store, harness)
        new = take_one(store, worker="w1")
        assert not finish(store, old, result="old")
        assert finish(store, new, result="new")
        assert not finish(store, old, result="old")
        assert look(store, "a").result == "new"

    def test_release_gives_the_attempt_back(self, store: Store) -> None:
        claim = started(store, "a", max_retries=0)
        assert store.release([claim.lease]) == [True]
        job = look(store, "a")
        assert (job.status, job.attempts, job.error, job.history) == (JobStatus.QUEUED, 0, None, ())
        assert store.release([claim.lease]) == [False], "it is void"
        assert store.extend([claim.lease], 60) == [LeaseState.LOST]
        assert store.settle([Settlement(claim.lease, Outcome(move=Move.SUCCEED))]) == [False]
        assert look(store, "a") == job
        again = take_one(store)
        assert again.attempts == 1
        finish(store, again)
        assert [run.number for run in look(store, "a").history] == [1]

    def test_released_job_is_where_it_was_before(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a"))
        harness.elapse(5)
        put(store, new_job("b"))
        before = look(store, "a")
        claim = take_one(store)
        harness.elapse(5)
        store.release([claim.lease])
        waits = [seconds_between(job.created_at, job.run_at) for job in (before, look(store, "a"))]
        assert waits[0] == waits[1]
        assert ids(take(store, 2)) == ["a", "b"]

    def test_release_keeps_what_earlier_runs_left(self, store: Store) -> None:
        finish(store, started(store, "a"), Move.RETRY, error=BOOM)
        store.release([take_one(store).lease])
        job = look(store, "a")
        assert (job.attempts, job.error, len(job.history)) == (1, BOOM, 1)
        finish(store, take_one(store))
        assert [run.number for run in look(store, "a").history] == [1, 2]

    def test_strangers_are_passed_over_among_many_in_one_call(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        first, second = take(store, 2)
        leases = [second.lease, Lease("nobody", 1, "w1", "no-token"), first.lease]
        reports = [Progress(value=0.3, note="x"), Progress(value=0.2), Progress(value=0.1)]
        store.progress(list(zip(leases, reports, strict=True)))
        assert (look(store, "a").progress, look(store, "b").progress) == (reports[2], reports[0])
        assert store.release(leases) == [True, False, True]

    def test_release_with_cancel_asked_ends_the_job(self, store: Store) -> None:
        """Somebody was told that it will end cancelled: it must not run again."""
        claim = started(store, "a")
        store.cancel(["a"])
        assert store.release([claim.lease]) == [True]
        job = look(store, "a")
        assert job.status is JobStatus.CANCELLED
        assert job.finished_at is not None
        assert take(store) == []

    def test_progress_is_kept_until_the_next_claim(self, store: Store) -> None:
        claim = started(store, "a")
        store.progress([(claim.lease, Progress(value=0.25, note="page 1"))])
        store.progress([(claim.lease, Progress(value=0.5))])
        assert look(store, "a").progress == Progress(value=0.5)
        finish(store, claim, Move.RETRY, error=BOOM)
        assert look(store, "a").progress == Progress(value=0.5)
        take_one(store)
        assert look(store, "a").progress is None

    def test_settlement_brings_the_last_progress_along(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        first, second = take(store, 2)
        store.progress([(claim.lease, Progress(value=0.5)) for claim in (first, second)])
        told = Outcome(move=Move.SUCCEED, progress=Progress(value=1.0, note="all"))
        store.settle([Settlement(first.lease, told), Settlement(second.lease, Outcome(move=Move.SUCCEED))])
        assert look(store, "a").progress == Progress(value=1.0, note="all")
        assert look(store, "b").progress == Progress(value=0.5)
