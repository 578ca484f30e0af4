"""Expiring: a job that has not begun by its expires_at never begins, but ends as expired."""

from __future__ import annotations

import pytest

from ..model.counts import Filter
from ..model.gate import Limit
from ..model.job import JobStatus, Move
from ..model.lease import LeaseState
from ..stores.base import Store
from .harness import StoreHarness
from .reading import ids, look, page_ids, seconds_between, tally, totals
from .tools import BOOM, finish, new_job, put, rescue_after, take, take_one

EXPIRED = JobStatus.EXPIRED


class Expiring:
    @pytest.mark.parametrize("delay", [0.0, 5.0, 50.0], ids=["queued", "due", "scheduled"])
    def test_job_that_did_not_begin_ends_as_expired(
        self, store: Store, harness: StoreHarness, delay: float
    ) -> None:
        put(store, new_job("a", delay=delay, expires_in=10.0), new_job("b", delay=50.0, expires_in=100.0))
        after = store.last_event()
        harness.elapse(9)
        assert look(store, "a").status in (JobStatus.QUEUED, JobStatus.SCHEDULED)
        harness.elapse(2)
        assert take(store, 10) == []
        job = look(store, "a")
        assert (job.status, job.is_finished, job.attempts, job.history) == (EXPIRED, True, 0, ())
        assert seconds_between(job.created_at, job.finished_at) == pytest.approx(11, abs=0.01)
        assert (job.error, job.started_at) == (None, None)
        assert tally(store) == {JobStatus.SCHEDULED: 1, EXPIRED: 1}
        assert totals(store)[EXPIRED] == 1
        assert page_ids(store, Filter(status=EXPIRED)) == ["a"]
        assert store.events(after, 10)[-1].status is EXPIRED
        harness.elapse(50)
        assert ids(take(store, 10)) == ["b"]
        assert store.prune(10) == 1
        assert store.get("a") is None

    def test_expired_job_reads_so_in_every_verb(self, store: Store, harness: StoreHarness) -> None:
        put(store, *(new_job(id, expires_in=10.0) for id in ("a", "b", "c")))
        harness.elapse(10)
        (again,) = put(store, new_job("a", expires_in=10.0))
        assert (again.status, again.is_new) == (EXPIRED, False)
        assert store.ahead("c") == 0
        assert store.export(10) == []
        assert store.discard(["a"]) == 0
        assert store.retry(["a"]) == store.cancel(["a"]) == [EXPIRED]
        assert tally(store) == {EXPIRED: 3}

    def test_time_in_the_past_is_accepted_and_then_expired(self, store: Store) -> None:
        receipts = put(store, new_job("a", expires_at=0.0), new_job("b", expires_at=-1.0, delay=60))
        assert [receipt.status for receipt in receipts] == [JobStatus.QUEUED, JobStatus.SCHEDULED]
        assert take(store, 10) == []
        assert tally(store) == {EXPIRED: 2}

    def test_job_that_began_before_does_not_expire(self, store: Store, harness: StoreHarness) -> None:
        put(store, *(new_job(id, expires_in=10.0) for id in ("retried", "snoozed", "released", "lost")))
        retried, snoozed, released, _ = take(store, 10)
        finish(store, retried, Move.RETRY, error=BOOM, delay=5)
        finish(store, snoozed, Move.SNOOZE, delay=50)
        store.release([released.lease])
        rescue_after(store, harness)
        assert sorted(ids(take(store, 10))) == ["lost", "released", "retried", "snoozed"]

    def test_retry_by_hand_after_a_run_does_not_expire(self, store: Store, harness: StoreHarness) -> None:
        put(store, *(new_job(id, expires_in=10.0) for id in ("ran", "given-back", "never")))
        store.cancel(["never"])
        ran, given_back = take(store, 10)
        finish(store, ran, Move.FAIL, error=BOOM)
        finish(store, given_back, Move.SNOOZE, delay=60)
        store.cancel(["given-back"])
        harness.elapse(11)
        store.retry(["ran", "given-back", "never"])
        assert sorted(ids(take(store, 10))) == ["given-back", "ran"]
        assert look(store, "never").status is EXPIRED

    def test_claimed_ahead_it_begins_before_its_expiry_or_never(
        self, store: Store, harness: StoreHarness
    ) -> None:
        put(store, *(new_job(id, expires_in=10.0) for id in ("early", "late", "held")))
        claims = take(store, 3, begin=0)
        expiry = look(store, "early").expires_at
        assert expiry is not None
        assert [claim.expires_at for claim in claims] == [expiry.timestamp()] * 3
        harness.elapse(11)
        assert tally(store) == {JobStatus.QUEUED: 3}, "whether it began before, its worker knows"
        early, late, held = (claim.lease for claim in claims)
        states = store.begin([early, late], [expiry.timestamp() - 1, 0.0])
        assert states == [LeaseState.HELD, LeaseState.LOST]
        assert finish(store, claims[0])
        assert not finish(store, claims[1])
        assert store.release([held]) == [True]
        assert tally(store) == {JobStatus.DONE: 1, EXPIRED: 2}

    def test_lost_by_its_worker_before_it_began_it_expires(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a", expires_in=10.0))
        assert take(store, lease=5, begin=0)
        assert [rescued.status for rescued in rescue_after(store, harness, 11)] == [JobStatus.QUEUED]
        assert look(store, "a").status is EXPIRED

    def test_expired_job_holds_no_place(self, store: Store, harness: StoreHarness) -> None:
        limits = (Limit(type="work", concurrency=1, is_keyed=True),)
        put(store, *(new_job(id, key="k", expires_in=10.0) for id in ("ahead", "parked")))
        (claim,) = take(store, 2, limits=limits, begin=0)
        put(store, new_job("next", key="k"))
        harness.elapse(11)
        assert store.begin([claim.lease], [0.0]) == [LeaseState.LOST]
        assert tally(store) == {JobStatus.QUEUED: 1, EXPIRED: 2}
        assert ids(take(store, 2, limits=limits)) == ["next"]

    def test_adopted_it_expires_as_it_would_have(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a", expires_in=10.0), new_job("b", expires_in=10.0))
        finish(store, take_one(store), Move.RETRY, error=BOOM, delay=1)
        exported = store.export(10)
        store.discard(["a", "b"])
        store.adopt(exported)
        harness.elapse(11)
        assert ids(take(store, 10)) == ["a"]
        assert look(store, "b").status is EXPIRED
