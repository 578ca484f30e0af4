"""Settling: what each outcome makes of a job, its history, and replies that were lost."""

from __future__ import annotations

import pytest

from ..model.gate import Limit
from ..model.job import KEPT_HISTORY, JobError, JobStatus, Move, Progress
from ..model.json import encode
from ..model.lease import Lease, Outcome, Settlement
from ..stores.base import Store
from .harness import StoreHarness
from .limiting import ONE, ONE_EACH, SLOW_EACH, put_some
from .reading import ids, look, seconds_between, totals
from .tools import BOOM, finish, new_job, put, rescue_after, started, take, take_one

OUTCOMES = [
    (Outcome(move=Move.SUCCEED, result=b'{"x":1}'), JobStatus.DONE),
    (Outcome(move=Move.FAIL, error=BOOM), JobStatus.FAILED),
    (Outcome(move=Move.RETRY, error=BOOM, delay=60), JobStatus.SCHEDULED),
    (Outcome(move=Move.SNOOZE, delay=60), JobStatus.SCHEDULED),
    (Outcome(move=Move.CANCEL), JobStatus.CANCELLED),
]


class Settling:
    def test_success_keeps_the_result(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a")
        harness.elapse(5)
        assert finish(store, claim, result={"sum": 3})
        job = look(store, "a")
        assert (job.status, job.result, job.error, job.attempts) == (JobStatus.DONE, {"sum": 3}, None, 1)
        assert job.is_finished
        assert 5 <= seconds_between(job.started_at, job.finished_at) < 15
        assert store.settle([Settlement(started(store, "b").lease, Outcome(move=Move.SUCCEED))]) == [True]
        assert (look(store, "b").status, look(store, "b").result) == (JobStatus.DONE, None)

    def test_retry_is_scheduled_after_its_delay(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a")
        harness.elapse(10)
        assert finish(store, claim, Move.RETRY, error=BOOM, delay=30)
        job = look(store, "a")
        assert (job.status, job.error, job.attempts) == (JobStatus.SCHEDULED, BOOM, 1)
        assert job.finished_at is None
        assert 39 < seconds_between(job.created_at, job.run_at) < 50
        assert take(store) == []
        harness.elapse(31)
        assert take_one(store).attempts == 2

    def test_retry_is_recorded_as_told_even_beyond_the_last(self, store: Store) -> None:
        assert finish(store, started(store, "a", max_retries=0), Move.RETRY, error=BOOM)
        assert look(store, "a").status is JobStatus.QUEUED
        assert take_one(store).attempts == 2, "without a delay it can be claimed at once"

    def test_success_after_a_retry_clears_the_error_but_not_the_history(self, store: Store) -> None:
        finish(store, started(store, "a", worker="w1"), Move.RETRY, error=BOOM)
        finish(store, take_one(store, worker="w2"), result=1)
        job = look(store, "a")
        assert (job.status, job.error, job.attempts) == (JobStatus.DONE, None, 2)
        runs = [(run.number, run.worker, run.error) for run in job.history]
        assert runs == [(1, "w1", BOOM), (2, "w2", None)]

    def test_snooze_gives_the_attempt_back_without_a_trace(self, store: Store, harness: StoreHarness) -> None:
        finish(store, started(store, "a"), Move.RETRY, error=BOOM)
        assert finish(store, take_one(store), Move.SNOOZE, delay=30)
        job = look(store, "a")
        assert (job.status, job.attempts, job.error) == (JobStatus.SCHEDULED, 1, BOOM)
        assert len(job.history) == 1
        assert take(store) == []
        harness.elapse(31)
        claim = take_one(store)
        assert claim.attempts == 2
        finish(store, claim, result=1)
        assert [run.number for run in look(store, "a").history] == [1, 2]

    def test_cancel_by_the_handler_keeps_its_reason_unless_it_was_asked_for(self, store: Store) -> None:
        reason = JobError(type="Cancel", message="not wanted any more")
        put(store, *(new_job(id) for id in "abc"))
        first, second, asked = take(store, 3)
        store.cancel(["c"])
        assert finish(store, first, Move.CANCEL, error=reason)
        assert finish(store, second, Move.CANCEL)
        assert finish(store, asked, Move.CANCEL, error=BOOM)
        for id, error in (("a", reason), ("b", None), ("c", None)):
            job = look(store, id)
            assert (job.status, job.error) == (JobStatus.CANCELLED, error), id
            assert job.finished_at is not None
            assert [run.error for run in job.history] == [error], id

    def test_failure_keeps_the_error_and_tells_of_its_run(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a", worker="host-1:77")
        harness.elapse(5)
        assert finish(store, claim, Move.FAIL, error=BOOM)
        job = look(store, "a")
        assert (job.status, job.error, job.result) == (JobStatus.FAILED, BOOM, None)
        assert job.finished_at is not None
        (run,) = job.history
        assert (run.number, run.worker, run.error) == (1, "host-1:77", BOOM)
        assert (run.began_at, run.ended_at) == (job.started_at, job.finished_at)

    def test_history_keeps_the_last_runs_and_their_numbers(self, store: Store) -> None:
        put(store, new_job("a", max_retries=100))
        for number in range(1, KEPT_HISTORY + 6):
            error = JobError(type="Boom", message=str(number))
            assert finish(store, take_one(store), Move.RETRY, error=error)
        history = look(store, "a").history
        numbers = list(range(6, KEPT_HISTORY + 6))
        assert [run.number for run in history] == numbers
        assert [run.error.message for run in history if run.error] == [str(number) for number in numbers]

    def test_many_are_settled_in_one_call(self, store: Store) -> None:
        put(store, *(new_job(f"j{n}", max_retries=9) for n in range(len(OUTCOMES))))
        claims = take(store, len(OUTCOMES))
        stranger = Lease("nobody", 1, "w1", "no-token")
        settlements = [
            Settlement(claim.lease, outcome) for claim, (outcome, _) in zip(claims, OUTCOMES, strict=True)
        ]
        settlements.insert(2, Settlement(stranger, OUTCOMES[0][0]))
        assert store.settle(settlements) == [True, True, False, True, True, True]
        for claim, (_, status) in zip(claims, OUTCOMES, strict=True):
            assert look(store, claim.id).status is status

    def test_lost_reply_and_settle_again_changes_nothing(self, store: Store, harness: StoreHarness) -> None:
        """Nor does anything else that is told by the lease, which ends with the settlement."""
        for outcome, status in OUTCOMES:
            id = outcome.move.value
            settlement = Settlement(lease := started(store, id).lease, outcome)
            earlier = totals(store).get(status, 0)
            assert store.settle([settlement, settlement]) == [True, True], id
            before, counted, last = look(store, id), totals(store), store.last_event()
            assert (before.status, counted[status]) == (status, earlier + 1), id
            assert len(before.history) == (outcome.move is not Move.SNOOZE), id
            assert store.extend([lease], 60) == ["lost"], id
            assert store.release([lease]) == [False], id
            store.progress([(lease, Progress(value=0.5, note="too late"))])
            assert look(store, id) == before, id
            harness.elapse(5)
            assert store.settle([settlement]) == [True], id
            told, again = (
                (
                    job.status,
                    job.attempts,
                    job.error,
                    job.result,
                    len(job.history),
                    job.run_at - job.created_at,
                )
                for job in (before, look(store, id))
            )
            assert told == again, id
            assert (totals(store), store.last_event()) == (counted, last), id
            store.cancel([id])

    def test_settled_run_cannot_be_settled_otherwise(self, store: Store) -> None:
        claim = started(store, "a")
        finish(store, claim, result="first")
        finish(store, claim, Move.FAIL, error=BOOM)
        job = look(store, "a")
        assert (job.status, job.result, job.error) == (JobStatus.DONE, "first", None)

    def test_old_settlement_is_refused_while_the_next_run_is_under_way(self, store: Store) -> None:
        first = started(store, "a")
        finish(store, first, Move.RETRY, error=BOOM)
        second = take_one(store)
        before = look(store, "a")
        assert not finish(store, first, Move.RETRY, error=BOOM)
        assert look(store, "a") == before
        assert finish(store, second, result=2)
        assert not finish(store, first, result=1)
        assert look(store, "a").result == 2

    def test_forged_leases_change_nothing(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        claim = take_one(store)
        other = take_one(store)
        before = look(store, "a")
        forged = [
            Lease("a", 1, "w1", "guessed"),
            Lease("a", 1, "w1", ""),
            Lease("unknown", 1, "w1", claim.lease.token),
            Lease("a", 1, "w1", other.lease.token),
        ]
        outcome = Outcome(move=Move.SUCCEED, result=encode("stolen"))
        assert store.settle([Settlement(lease, outcome) for lease in forged]) == [False] * 4
        assert store.extend(forged, 1_000) == ["lost"] * 4
        assert store.release(forged) == [False] * 4
        store.progress([(lease, Progress(value=1.0)) for lease in forged])
        assert look(store, "a") == before

    def test_empty_token_of_a_waiting_job_is_no_lease(self, store: Store) -> None:
        put(store, new_job("a"))
        lease = Lease("a", 0, "", "")
        assert store.settle([Settlement(lease, Outcome(move=Move.SUCCEED))]) == [False]
        assert store.extend([lease], 60) == ["lost"]
        assert store.release([lease]) == [False]
        assert look(store, "a").status is JobStatus.QUEUED

    def test_hostile_errors_notes_and_worker_names_come_back_equal(self, store: Store) -> None:
        text = "'; DROP TABLE jobs; -- \" \\ %s $1 {} \x1b[31m\r\n\u202e \U0001f469\u200d\U0001f680 \\u0000"
        error = JobError(type=text, message=text * 50, traceback=text)
        progress = Progress(value=0.1, note=text)
        claim = started(store, "a", worker=text)
        store.progress([(claim.lease, progress)])
        assert finish(store, claim, Move.FAIL, error=error)
        job = look(store, "a")
        assert (job.error, job.progress) == (error, progress)
        assert [(run.error, run.worker) for run in job.history] == [(error, text)]


class Cooling:
    """An outcome holds up all jobs of its type for a while, and no other."""

    @pytest.mark.parametrize("limits", [(), ONE, SLOW_EACH], ids=["none", "type", "key"])
    def test_cooling_holds_up_the_whole_type_and_no_other(
        self, store: Store, harness: StoreHarness, limits: tuple[Limit, ...]
    ) -> None:
        put(store, new_job("a", key="x"), new_job("b", key="y"), new_job("o", type="other"))
        (claim,) = take(store, 1, limits=limits)
        finish(store, claim, Move.SNOOZE, delay=30, cools=30)
        assert ids(take(store, 10, types=["work", "other"], limits=limits)) == ["o"]
        result = store.claim("w1", ["work"], 10, 60, limits)
        assert result.claims == []
        assert result.due_in == pytest.approx(25, abs=5)
        assert store.limits().cooling.keys() == {"work"}
        harness.elapse(31)
        assert "b" in ids(take(store, 10, limits=limits))
        assert store.limits().cooling == {}

    def test_nothing_is_worth_asking_for_while_a_type_cools(self, store: Store) -> None:
        put_some(store, 3, key="a")
        (claim,) = take(store, 1, limits=ONE_EACH)
        assert take(store, 10, limits=ONE_EACH) == []
        finish(store, claim, Move.SNOOZE, delay=100, cools=100)
        result = store.claim("w1", ["work"], 10, 60, ONE_EACH)
        assert result.claims == []
        assert result.due_in == pytest.approx(75, abs=25)

    def test_longest_cooling_counts(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 3)
        first, second = take(store, 2)
        finish(store, first, Move.SNOOZE, delay=0, cools=60)
        finish(store, second, Move.SNOOZE, delay=0, cools=5)
        harness.elapse(30)
        assert take(store, 10) == []
        harness.elapse(31)
        assert len(take(store, 10)) == 3

    def test_settlement_that_is_told_again_cools_no_longer(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 2)
        (claim,) = take(store, 1)
        assert finish(store, claim, Move.SNOOZE, delay=60, cools=20)
        harness.elapse(10)
        assert finish(store, claim, Move.SNOOZE, delay=60, cools=20)
        harness.elapse(11)
        assert ids(take(store, 10)) == ["j1"]

    def test_worker_that_lost_its_lease_cools_nothing(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 2)
        (claim,) = take(store, 1, lease=10)
        rescue_after(store, harness, 11)
        assert not finish(store, claim, Move.SNOOZE, delay=60, cools=60)
        assert len(take(store, 10)) == 2
