"""Signals: the first of a name wins, none is lost, and each wait has one outcome, whatever it races with."""

from __future__ import annotations

from contextlib import closing

import pytest

from ...model.durable import MOST_SIGNALS, Received, ReceivedKind, SignalAnswer
from ...model.job import JobStatus, Move
from ...stores.base import News, Store
from ..harness import StoreHarness, from_all_sides
from ..reading import look
from ..tools import BOOM, bring_to, finish, new_job, put, rescue_after, started, take, take_one
from .tools import send, sleep, state, wait

NOTHING, TIMED_OUT = Received(ReceivedKind.NOTHING), Received(ReceivedKind.TIMED_OUT)
GOT = Received(ReceivedKind.SIGNAL, b"1")


class Signals:
    def test_signal_before_the_wait_is_kept(self, store: Store) -> None:
        put(store, new_job("a"))
        assert send(store, payload=1) is SignalAnswer.ACCEPTED
        claim = take_one(store)
        assert store.receive(claim.lease, "other") == NOTHING
        assert store.receive(claim.lease, "go") == GOT
        assert store.receive(claim.lease, "go") == GOT
        (signal,) = state(store).signals
        assert (signal.name, signal.payload, signal.is_used) == ("go", b"1", True)
        assert signal.sent_at == pytest.approx(look(store, "a").created_at.timestamp(), abs=60)

    def test_signal_between_the_question_and_the_wait_is_not_lost(self, store: Store) -> None:
        claim = started(store, "a")
        assert store.receive(claim.lease, "go") == NOTHING
        assert send(store, payload=1) is SignalAnswer.ACCEPTED
        assert wait(store, claim)
        assert look(store, "a").status is JobStatus.QUEUED
        claim = take_one(store)
        assert store.receive(claim.lease, "go") == GOT

    def test_signal_while_it_waits_queues_the_job(self, store: Store) -> None:
        wait(store, started(store, "a"), seconds=60)
        assert send(store, payload=1) is SignalAnswer.ACCEPTED
        job = look(store, "a")
        assert job.status is JobStatus.QUEUED
        claim = take_one(store)
        assert claim.attempts == 1
        assert store.receive(claim.lease, "go") == GOT
        finish(store, claim)
        assert send(store, payload=1) is SignalAnswer.SAME

    def test_signal_of_another_name_does_not_wake_it(self, store: Store) -> None:
        wait(store, started(store, "a"))
        assert send(store, name="other") is SignalAnswer.ACCEPTED
        assert look(store, "a").status is JobStatus.WAITING
        assert take(store) == []

    def test_signal_of_a_sleeping_job_is_kept(self, store: Store) -> None:
        sleep(store, started(store, "a"))
        assert send(store, payload=1) is SignalAnswer.ACCEPTED
        assert look(store, "a").status is JobStatus.SCHEDULED

    def test_first_of_a_name_wins(self, store: Store) -> None:
        put(store, new_job("a"))
        assert send(store, payload={"x": 1, "y": 2}) is SignalAnswer.ACCEPTED
        assert send(store, payload={"y": 2, "x": 1}) is SignalAnswer.SAME
        assert send(store, payload={"x": 1, "y": 3}) is SignalAnswer.CONFLICT
        (kept,) = state(store).signals
        assert kept.payload == b'{"x":1,"y":2}'

    @pytest.mark.parametrize(
        "status", [JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.EXPIRED]
    )
    def test_finished_job_takes_no_signal(self, store: Store, status: JobStatus) -> None:
        bring_to(store, "a", status)
        assert send(store) is SignalAnswer.FINISHED
        assert state(store).signals == ()
        assert send(store, "unknown") is None

    def test_number_of_signals_is_bounded(self, store: Store) -> None:
        put(store, new_job("a"))
        for n in range(MOST_SIGNALS):
            assert send(store, name=f"s{n}") is SignalAnswer.ACCEPTED
        assert send(store, name="one-more") is SignalAnswer.FULL
        assert send(store, name="s0") is SignalAnswer.SAME
        assert len(state(store).signals) == MOST_SIGNALS

    def test_signal_after_the_timeout_is_refused(self, store: Store, harness: StoreHarness) -> None:
        wait(store, started(store, "a"), seconds=10)
        harness.elapse(11)
        assert send(store) is SignalAnswer.TIMED_OUT
        claim = take_one(store)
        assert store.receive(claim.lease, "go") == TIMED_OUT
        assert store.receive(claim.lease, "go") == TIMED_OUT
        assert send(store) is SignalAnswer.TIMED_OUT
        assert state(store).signals == ()
        finish(store, claim, Move.RETRY, error=BOOM)
        assert store.receive(take_one(store).lease, "go") == TIMED_OUT

    def test_signal_that_came_in_time_wins_over_the_timeout(
        self, store: Store, harness: StoreHarness
    ) -> None:
        wait(store, started(store, "a"), seconds=10)
        harness.elapse(5)
        assert send(store, payload=1) is SignalAnswer.ACCEPTED
        harness.elapse(10)
        assert store.receive(take_one(store).lease, "go") == GOT

    def test_retry_by_hand_forgets_the_timeout(self, store: Store, harness: StoreHarness) -> None:
        wait(store, started(store, "a"), seconds=10)
        harness.elapse(11)
        claim = take_one(store)
        store.receive(claim.lease, "go")
        finish(store, claim, Move.FAIL, error=BOOM)
        store.retry(["a"])
        claim = take_one(store)
        assert store.receive(claim.lease, "go") == NOTHING
        wait(store, claim, seconds=10)
        assert send(store, payload=1) is SignalAnswer.ACCEPTED
        assert store.receive(take_one(store).lease, "go") == GOT

    def test_worker_that_lost_its_lease_receives_nothing(self, store: Store, harness: StoreHarness) -> None:
        late = started(store, "a", lease=10)
        rescue_after(store, harness, 11)
        send(store, payload=1)
        assert store.receive(late.lease, "go") == Received(ReceivedKind.LOST)
        claim = take_one(store)
        assert store.receive(late.lease, "go") == Received(ReceivedKind.LOST)
        assert not state(store).signals[0].is_used
        assert store.receive(claim.lease, "go") == GOT

    def test_of_many_at_once_one_is_accepted(self, store: Store, harness: StoreHarness) -> None:
        wait(store, started(store, "a"))
        answers = from_all_sides(harness, lambda each, n: send(each, payload=n))
        assert sorted(set(map(str, answers))) == ["accepted", "conflict"]
        assert answers.count(SignalAnswer.ACCEPTED) == 1
        claim = take_one(store)
        winner = answers.index(SignalAnswer.ACCEPTED)
        assert store.receive(claim.lease, "go").payload == str(winner).encode()
        assert take(store) == []

    def test_signals_that_race_the_wait_wake_every_job(self, store: Store, harness: StoreHarness) -> None:
        ids = [f"j{n}" for n in range(8)]
        put(store, *(new_job(id) for id in ids))
        claims = {claim.id: claim for claim in take(store, 8)}

        def call(each: Store, n: int) -> object:
            id = ids[n // 2]
            return wait(each, claims[id]) if n % 2 else send(each, id)

        from_all_sides(harness, call, 16)
        assert [look(store, id).status for id in ids] == [JobStatus.QUEUED] * 8
        assert {claim.id for claim in take(store, 9)} == set(ids)

    def test_signal_that_wakes_a_job_is_work(self, store: Store) -> None:
        wait(store, started(store, "a"))
        with closing(store.watch(News.WORK)) as watch:
            while watch.wait(0):
                pass
            send(store)
            assert watch.wait(30)
