"""Sleeps and waits: a suspended job holds nothing, and goes on when its time has come."""

from __future__ import annotations

from contextlib import closing

import pytest

from ...model.gate import Limit
from ...model.job import JobStatus, Move
from ...stores.base import News, Store
from ..harness import StoreHarness
from ..reading import look, seconds_between, tally
from ..tools import BOOM, finish, new_job, put, started, take, take_one
from .tools import send, sleep, state, wait


class Suspending:
    def test_sleeping_job_is_scheduled_and_goes_on_in_time(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a")
        assert sleep(store, claim, "nap", 60)
        job = look(store, "a")
        assert (job.status, job.attempts, job.history) == (JobStatus.SCHEDULED, 0, ())
        assert job.started_at is not None
        (nap,) = state(store).sleeps
        assert nap.name == "nap"
        assert nap.until == pytest.approx(job.run_at.timestamp(), abs=1e-3)
        assert state(store).sleep_until(job.run_at.timestamp()) == nap
        harness.elapse(59)
        assert take(store) == []
        harness.elapse(1.5)
        again = take_one(store)
        assert (again.id, again.attempts) == ("a", 1)
        assert again.started_at >= nap.until

    def test_sleep_that_is_recorded_keeps_its_end(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a")
        sleep(store, claim, "nap", 60)
        run_at = look(store, "a").run_at
        store.cancel(["a"])
        store.retry(["a"])
        harness.elapse(10)
        sleep(store, take_one(store), "nap", 60)
        assert abs(seconds_between(run_at, look(store, "a").run_at)) < 0.01

    def test_waiting_job_comes_due_when_its_time_is_over(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a")
        assert wait(store, claim, "go", 30)
        job = look(store, "a")
        assert (job.status, job.attempts, job.history) == (JobStatus.WAITING, 0, ())
        (waits,) = state(store).waits
        assert (waits.name, waits.is_timed_out) == ("go", False)
        assert waits.until == pytest.approx(job.run_at.timestamp(), abs=1e-3)
        assert state(store).pending_wait() == waits
        assert store.claim("w", ["work"], 1, 10).due_in == pytest.approx(30, abs=5)
        harness.elapse(29)
        assert take(store) == []
        harness.elapse(1.5)
        assert look(store, "a").status is JobStatus.QUEUED
        assert take_one(store).attempts == 1

    def test_waiting_job_without_a_timeout_waits(self, store: Store, harness: StoreHarness) -> None:
        wait(store, started(store, "a"))
        harness.elapse(11 * 366 * 86_400)
        assert take(store) == []
        assert look(store, "a").status is JobStatus.WAITING
        assert send(store) == "accepted"
        assert take_one(store).id == "a"

    def test_wait_that_is_recorded_keeps_its_end(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a", lease=10)
        wait(store, claim, "go", 100)
        first = look(store, "a").run_at
        harness.elapse(20)
        # Another wait takes its place: the code of the handler has changed.
        send(store, name="other")
        store.cancel(["a"])
        assert [each.name for each in state(store).waits] == ["go"]
        store.retry(["a"])
        assert state(store).waits == ()
        wait(store, take_one(store), "go", 100)
        assert seconds_between(first, look(store, "a").run_at) == pytest.approx(20, abs=5)

    def test_new_wait_takes_the_place_of_one_that_has_not_timed_out(
        self, store: Store, harness: StoreHarness
    ) -> None:
        put(store, new_job("a"))
        wait(store, take_one(store), "first", 5)
        harness.elapse(6)
        claim = take_one(store)
        assert store.receive(claim.lease, "first").kind == "timed out"
        wait(store, claim, "second", 5)
        harness.elapse(6)
        wait(store, take_one(store), "third", 5)
        assert [(each.name, each.is_timed_out) for each in state(store).waits] == [
            ("first", True),
            ("third", False),
        ]
        assert send(store, name="second") == "accepted"
        assert look(store, "a").status is JobStatus.WAITING

    @pytest.mark.parametrize("suspend", [sleep, wait], ids=["sleep", "wait"])
    def test_suspended_job_holds_no_slot_and_no_lease(
        self, store: Store, harness: StoreHarness, suspend: object
    ) -> None:
        limits = [Limit(type="work", concurrency=1), Limit(queue="q", concurrency=1)]
        put(store, new_job("a", queue="q"), new_job("b", queue="q"))
        (claim,) = take(store, 5, limits=limits)
        suspend(store, claim)  # type: ignore[operator]
        assert [each.id for each in take(store, 5, limits=limits)] == ["b"]
        assert store.extend([claim.lease], 10) == ["lost"]
        harness.elapse(59)
        assert [each.id for each in store.rescue() if each.id == "a"] == []

    @pytest.mark.parametrize("suspend", [sleep, wait], ids=["sleep", "wait"])
    def test_settlement_that_suspends_is_recorded_once(self, store: Store, suspend: object) -> None:
        claim = started(store, "a")
        assert suspend(store, claim)  # type: ignore[operator]
        before = look(store, "a")
        assert suspend(store, claim)  # type: ignore[operator]
        assert look(store, "a") == before

    @pytest.mark.parametrize("suspend", [sleep, wait], ids=["sleep", "wait"])
    def test_worker_that_lost_its_lease_suspends_nothing(
        self, store: Store, harness: StoreHarness, suspend: object
    ) -> None:
        late = started(store, "a", lease=10)
        harness.elapse(11)
        store.rescue()
        assert not suspend(store, late)  # type: ignore[operator]
        claim = take_one(store)
        assert not suspend(store, late)  # type: ignore[operator]
        assert state(store) == type(state(store))()
        assert look(store, "a").status is JobStatus.RUNNING
        finish(store, claim)

    @pytest.mark.parametrize("suspend", [sleep, wait], ids=["sleep", "wait"])
    def test_cancelling_wins_over_suspending(self, store: Store, suspend: object) -> None:
        claim = started(store, "a")
        store.cancel(["a"])
        assert suspend(store, claim)  # type: ignore[operator]
        job = look(store, "a")
        assert (job.status, job.finished_at is not None) == (JobStatus.CANCELLED, True)
        assert send(store) == "finished"

    def test_job_that_was_claimed_ahead_may_be_suspended(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        first, second = take(store, 2, begin=0)
        sleep(store, first)
        wait(store, second)
        assert tally(store) == {JobStatus.SCHEDULED: 1, JobStatus.WAITING: 1}
        assert [look(store, id).attempts for id in "ab"] == [0, 0]
        assert all(look(store, id).started_at is not None for id in "ab")

    def test_suspended_job_keeps_the_error_and_history_of_earlier_runs(self, store: Store) -> None:
        finish(store, started(store, "a"), Move.RETRY, error=BOOM)
        sleep(store, take_one(store), seconds=0)
        job = look(store, "a")
        assert (job.error, len(job.history), job.attempts) == (BOOM, 1, 1)
        wait(store, take_one(store))
        job = look(store, "a")
        assert (job.error, len(job.history), job.attempts) == (BOOM, 1, 1)

    def test_waiting_job_can_be_cancelled_retried_and_not_deleted(self, store: Store) -> None:
        wait(store, started(store, "a"))
        assert store.retry(["a"]) == [JobStatus.WAITING]
        assert store.delete(["a"]) == [JobStatus.WAITING]
        assert store.cancel(["a"]) == [JobStatus.WAITING]
        assert look(store, "a").status is JobStatus.CANCELLED
        assert store.retry(["a"]) == [JobStatus.CANCELLED]
        assert take_one(store).id == "a"

    @pytest.mark.parametrize("suspend", [sleep, wait], ids=["sleep", "wait"])
    def test_suspended_job_of_a_unique_name_counts_as_running(
        self, store: Store, harness: StoreHarness, suspend: object
    ) -> None:
        put(store, new_job("a", unique="u", on_duplicate="keep"))
        suspend(store, take_one(store))  # type: ignore[operator]
        (receipt,) = put(store, new_job("b", unique="u", on_duplicate="keep"))
        assert (receipt.id, receipt.is_new) == ("b", True)
        assert store.running_of("u") == "a"
        assert take(store) == []
        send(store)
        harness.elapse(61)
        claim = take_one(store)
        assert claim.id == "a"
        assert take(store) == []
        finish(store, claim)
        assert take_one(store).id == "b"

    @pytest.mark.parametrize("suspend", [sleep, wait], ids=["sleep", "wait"])
    def test_job_that_goes_on_passes_the_rate_again(
        self, store: Store, harness: StoreHarness, suspend: object
    ) -> None:
        limits = [Limit(type="work", interval=100.0)]
        put(store, new_job("a"))
        (claim,) = take(store, limits=limits)
        suspend(store, claim)  # type: ignore[operator]
        send(store)
        harness.elapse(61)
        assert take(store, limits=limits) == []
        harness.elapse(40)
        (claim,) = take(store, limits=limits)
        assert (claim.id, claim.attempts) == ("a", 1)

    def test_suspended_job_does_not_expire(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a", expires_in=5.0)
        wait(store, claim)
        harness.elapse(10)
        assert look(store, "a").status is JobStatus.WAITING
        send(store)
        sleep(store, take_one(store))
        harness.elapse(61)
        assert take_one(store).id == "a"

    def test_waiting_jobs_count_with_the_scheduled_and_not_with_the_ready(self, store: Store) -> None:
        wait(store, started(store, "a"))
        (answer,) = store.insert([[new_job("b")]], capacity=1)
        assert isinstance(answer, list)
        (answer,) = store.insert([[new_job("c", delay=60)]], scheduled=1)
        assert not isinstance(answer, list)
        (answer,) = store.insert([[new_job("c", delay=60)]], scheduled=2)
        assert isinstance(answer, list)

    def test_suspending_is_news(self, store: Store) -> None:
        claim = started(store, "a")
        last = store.last_event()
        with closing(store.watch(News.CHANGES)) as watch:
            while watch.wait(0):
                pass
            wait(store, claim)
            assert watch.wait(30)
        send(store)
        assert [event.status for event in store.events(last, 10)] == ["waiting", "queued"]
