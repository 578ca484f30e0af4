"""Steering: cancel and retry in every status, and pruning."""

from __future__ import annotations

import pytest

from ..model.counts import Filter
from ..model.job import FINISHED, PENDING, JobStatus, Move, Progress
from ..model.json import encode
from ..model.lease import LeaseState, Outcome, Settlement
from ..model.newjob import NewPayload
from ..stores.base import Store
from .harness import StoreHarness
from .reading import ids, look, page_ids, tally, totals
from .tools import BOOM, bring_one_to_each, bring_to, finish, new_job, put, started, take, take_one

HOSTILE_IDS = ["", "' OR 1=1 --", "a' UNION SELECT 1 --", "*", "%", "a\r\nDEL x", "\U0001f680", "a" * 5_000]


class Managing:
    def test_waiting_job_is_cancelled_at_once(self, store: Store, harness: StoreHarness) -> None:
        for status in (JobStatus.SCHEDULED, JobStatus.QUEUED):
            bring_to(store, status.value, status)
            assert store.cancel([status.value]) == [status]
            job = look(store, status.value)
            assert (job.status, job.attempts, job.history) == (JobStatus.CANCELLED, 0, ())
            assert job.finished_at is not None
        harness.elapse(7_200)
        assert take(store) == []
        assert tally(store) == {JobStatus.CANCELLED: 2}

    @pytest.mark.parametrize("verb", ["cancel", "retry"])
    def test_other_jobs_are_not_touched(self, store: Store, verb: str) -> None:
        """By cancel those that have finished, by retry all that have not failed and were not cancelled."""
        retried = (JobStatus.FAILED, JobStatus.CANCELLED)
        untouched = sorted(FINISHED if verb == "cancel" else {*JobStatus} - {*retried})
        bring_one_to_each(store)
        before, last = [look(store, status.value) for status in untouched], store.last_event()
        assert getattr(store, verb)([status.value for status in untouched]) == untouched
        assert [look(store, status.value) for status in untouched] == before
        assert store.last_event() == last

    def test_running_job_is_told_and_ends_cancelled(self, store: Store) -> None:
        claim = started(store, "a")
        for _ in range(2):
            assert store.cancel(["a"]) == [JobStatus.RUNNING]
        assert look(store, "a").status is JobStatus.RUNNING
        assert look(store, "a").finished_at is None
        for _ in range(2):
            assert store.extend([claim.lease], 60) == [LeaseState.CANCELLING]
        assert finish(store, claim, Move.CANCEL)
        job = look(store, "a")
        assert job.status is JobStatus.CANCELLED
        assert job.finished_at is not None
        assert len(job.history) == 1

    def test_request_to_cancel_wins_over_the_outcome(self, store: Store, harness: StoreHarness) -> None:
        for outcome in (
            Outcome(move=Move.SUCCEED, result=b"1"),
            Outcome(move=Move.FAIL, error=BOOM),
            Outcome(move=Move.RETRY, error=BOOM, delay=1),
            Outcome(move=Move.CANCEL),
            Outcome(move=Move.SNOOZE, delay=1),
        ):
            id = outcome.move.value
            settlement = Settlement(started(store, id).lease, outcome)
            store.cancel([id])
            for _ in range(2):
                assert store.settle([settlement]) == [True], id
            job = look(store, id)
            assert (job.status, job.result, job.error) == (JobStatus.CANCELLED, None, outcome.error), id
            assert job.finished_at is not None
        harness.elapse(60)
        assert tally(store) == {JobStatus.CANCELLED: 5}
        assert take(store) == []

    def test_request_to_cancel_does_not_outlive_the_job(self, store: Store) -> None:
        claim = started(store, "a")
        store.cancel(["a"])
        finish(store, claim, Move.CANCEL)
        store.retry(["a"])
        again = take_one(store)
        assert store.extend([again.lease], 60) == [LeaseState.HELD]
        finish(store, again, result="at last")
        assert look(store, "a").status is JobStatus.DONE

    @pytest.mark.parametrize("status", [JobStatus.FAILED, JobStatus.CANCELLED])
    def test_ended_job_runs_again_from_the_beginning(
        self, store: Store, harness: StoreHarness, status: JobStatus
    ) -> None:
        put(store, new_job("a"), new_job("ahead"))
        claim = take_one(store)
        store.progress([(claim.lease, Progress(value=0.5))])
        finish(store, claim, Move.FAIL if status is JobStatus.FAILED else Move.CANCEL, error=BOOM)
        harness.elapse(5)
        assert store.retry(["a"]) == [status]
        job = look(store, "a")
        assert (job.status, job.attempts) == (JobStatus.QUEUED, 0)
        assert (job.error, job.result, job.progress) == (None, None, None)
        assert (job.started_at, job.finished_at) == (None, None)
        assert len(job.history) == 1
        assert ids(take(store, 2)) == ["ahead", "a"]

    def test_retried_job_takes_a_new_payload_and_its_key(self, store: Store) -> None:
        first = new_job("a", {"old": 1}, key="k1")
        put(store, first, new_job("done"), new_job("waits", {"old": 3}))
        finish(store, take_one(store), Move.FAIL, error=BOOM)
        finish(store, take_one(store))
        long = {"new": "x" * 3_000}
        found = store.retry(["a", "done", "waits", "?"], NewPayload(encode(long), "k2"))
        assert found == [JobStatus.FAILED, JobStatus.DONE, JobStatus.QUEUED, None]
        assert (look(store, "a").payload, store.key_of("a")) == (long, "k2")
        assert (look(store, "done").payload, look(store, "waits").payload) == (None, {"old": 3})
        claim, waits = sorted(take(store, 2), key=lambda each: each.id)
        assert (claim.id, claim.payload) == ("a", encode(long))
        assert (waits.id, waits.payload) == ("waits", encode({"old": 3}))
        finish(store, claim, Move.FAIL, error=BOOM)
        store.retry(["a"])
        assert (look(store, "a").payload, store.key_of("a")) == (long, "k2"), "kept by a plain retry"
        store.cancel(["a"])
        store.retry(["a"], NewPayload(b"null"))
        assert (look(store, "a").payload, store.key_of("a")) == (None, None)
        assert put(store, first)[0].is_new is False, "the id stands for what was first sent"

    def test_history_numbers_go_on_after_a_revival(self, store: Store) -> None:
        put(store, new_job("a", max_retries=0))
        for _ in range(3):
            claim = take_one(store)
            assert claim.attempts == 1
            finish(store, claim, Move.FAIL, error=BOOM)
            store.retry(["a"])
        assert [run.number for run in look(store, "a").history] == [1, 2, 3]

    def test_revived_job_does_not_believe_an_old_lease(self, store: Store) -> None:
        claim = started(store, "a")
        finish(store, claim, Move.FAIL, error=BOOM)
        store.retry(["a"])
        assert store.extend([claim.lease], 60) == [LeaseState.LOST]
        assert store.release([claim.lease]) == [False]
        take_one(store)
        assert not finish(store, claim, result="old")
        assert look(store, "a").status is JobStatus.RUNNING

    def test_many_are_steered_in_one_call(self, store: Store) -> None:
        ids = bring_one_to_each(store)
        assert store.cancel([*ids, "unknown"]) == [*JobStatus, None]
        others = dict.fromkeys((JobStatus.RUNNING, JobStatus.DONE, JobStatus.EXPIRED), 1)
        assert tally(store) == others | {JobStatus.FAILED: 1, JobStatus.CANCELLED: 4}
        assert store.retry(["unknown", *ids])[0] is None
        assert tally(store) == others | {JobStatus.QUEUED: 5}

    def test_id_twice_in_a_call_is_steered_once(self, store: Store) -> None:
        put(store, new_job("a", delay=3_600))
        store.cancel(["a", "a"])
        assert totals(store) == {JobStatus.SCHEDULED: 1, JobStatus.CANCELLED: 1}
        assert store.retry(["a", "a"])[0] is JobStatus.CANCELLED
        assert totals(store) == {JobStatus.SCHEDULED: 1, JobStatus.CANCELLED: 1, JobStatus.QUEUED: 1}
        assert take_one(store).id == "a", "whatever its delay was"

    def test_hostile_ids_are_only_unknown(self, store: Store) -> None:
        bring_to(store, "a", JobStatus.QUEUED)
        bring_to(store, "b", JobStatus.CANCELLED)
        before = look(store, "a"), look(store, "b")
        for id in HOSTILE_IDS:
            assert store.get(id) is None, id
            assert store.cancel([id]) == store.retry([id]) == [None], id
        assert (look(store, "a"), look(store, "b")) == before

    def test_only_finished_jobs_are_deleted(self, store: Store) -> None:
        ids = bring_one_to_each(store)
        assert store.delete([*ids, "unknown"]) == [*JobStatus, None]
        assert tally(store) == dict.fromkeys((*PENDING, JobStatus.RUNNING), 1)
        assert store.delete(ids) == [*list(JobStatus)[:4], *[None] * len(FINISHED)]

    def test_deleted_id_is_free_again(self, store: Store) -> None:
        claim = started(store, "a")
        finish(store, claim)
        assert store.delete(["a", "a"]) == [JobStatus.DONE, None]
        assert store.get("a") is None
        assert not finish(store, claim)
        (receipt,) = put(store, new_job("a", "other", tags=("t",)))
        assert receipt.is_new
        store.cancel(["a"])
        assert store.delete(["a"]) == [JobStatus.CANCELLED]
        assert page_ids(store, Filter(tag="t")) == []

    def test_prune_deletes_what_finished_long_ago(self, store: Store, harness: StoreHarness) -> None:
        bring_one_to_each(store, "old-")
        harness.elapse(100)
        put(store, new_job("young"))
        store.cancel(["young"])
        assert store.prune(keep=1_000) == 0
        assert store.prune(keep=50) == 4
        assert store.prune(keep=50) == 0
        assert sorted(page_ids(store)) == [
            "old-queued",
            "old-running",
            "old-scheduled",
            "old-waiting",
            "young",
        ]
        assert store.get("old-done") is None

    def test_failed_jobs_may_be_kept_for_longer_or_shorter(self, store: Store, harness: StoreHarness) -> None:
        bring_one_to_each(store)
        harness.elapse(100)
        assert store.prune(50, keep_failed=200) == 3
        assert "failed" in page_ids(store)
        assert store.prune(50, keep_failed=200) == 0
        bring_to(store, "again", JobStatus.CANCELLED)
        harness.elapse(10)
        assert store.prune(500, keep_failed=50) == 1
        assert store.get("failed") is None
        assert look(store, "again").status is JobStatus.CANCELLED

    def test_prune_deletes_no_more_than_asked(self, store: Store, harness: StoreHarness) -> None:
        ids = [f"j{n}" for n in range(5)]
        put(store, *(new_job(id) for id in ids))
        store.cancel(ids)
        harness.elapse(10)
        assert [store.prune(5, limit=2) for _ in range(4)] == [2, 2, 1, 0]
        assert tally(store) == {}

    def test_pruned_id_is_free_again_and_totals_stay(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a")
        finish(store, claim)
        put(store, new_job("b"))
        harness.elapse(10)
        store.prune(5)
        assert totals(store) == {JobStatus.QUEUED: 2, JobStatus.RUNNING: 1, JobStatus.DONE: 1}
        assert not finish(store, claim)
        (receipt,) = put(store, new_job("a", "other"))
        assert receipt.is_new
        job = look(store, "a")
        assert (job.payload, job.attempts, job.history) == ("other", 0, ())

    def test_revived_job_is_kept_as_what_it_became(self, store: Store, harness: StoreHarness) -> None:
        bring_to(store, "a", JobStatus.FAILED)
        harness.elapse(100)
        store.retry(["a"])
        assert store.prune(50) == 0
        store.cancel(["a"])
        assert store.prune(50) == 0
        store.retry(["a"])
        finish(store, take_one(store))
        harness.elapse(10)
        assert store.prune(50, keep_failed=5) == 0
        assert store.prune(5, keep_failed=50) == 1
